//! What is refused of windows, and what bounds them.

use preflight::failpoint;
use preflight_tests::orders::{self, Orders, PER_MINUTE};
use preflight_tests::tables;

const MINUTE: i64 = 60_000_000;

fn some_orders() -> Orders {
    Orders { count: 2_000, skus: 100, within: 10 * MINUTE, shuffled: MINUTE }
}

/// The counts of all windows together.
fn measured(pipeline: &preflight_tests::Pipeline) -> u64 {
    tables::query(&pipeline.database(), "SELECT SUM(orders) AS n FROM per_minute_latest")[0]["n"].as_u64().unwrap()
}

#[test]
fn a_file_with_more_windows_than_may_be_open_fails_and_is_finished_with_a_higher_limit() {
    let ends = ["watermark.follows=end_of_input", "batch.max_events=100"];
    let mut pipeline = orders::pipeline(&[PER_MINUTE], some_orders().lines());
    pipeline.settings.extend(ends.map(str::to_owned));
    pipeline.settings.push("limits.open_windows=200".into());
    let ended = pipeline.run().expect(1);
    assert!(ended.stderr.contains("limits.open_windows") && ended.stderr.contains("200"), "{}", ended.stderr);
    assert!(tables::count(&pipeline.database(), "orders") < 1_980);
    pipeline.settings.pop();
    pipeline.run().expect(0);
    assert_eq!((tables::count(&pipeline.database(), "orders"), measured(&pipeline)), (1_980, 1_980));
}

/// What is open in the ledger when a worker was killed is of the aggregate as it was.
#[test]
fn an_aggregate_with_open_windows_may_not_become_another() {
    let mut pipeline = orders::pipeline(&[PER_MINUTE], some_orders().lines()).set("batch.max_events=500");
    pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{}=2", failpoint::LEDGER_COMMITTED))];
    assert!(pipeline.run().was_killed());
    pipeline.environment.clear();
    let file = std::fs::read_to_string(pipeline.file()).unwrap();
    let rewrite = |from: &str, to: &str| {
        assert!(file.contains(from));
        std::fs::write(pipeline.file(), file.replace(from, to)).unwrap();
    };
    rewrite("fixed = \"1 m\"", "fixed = \"2 m\"");
    let ended = pipeline.run().expect(1);
    for part in ["per_minute", "open windows", "it is another", "--forget-windows", "preflight rebuild"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    rewrite("[aggregates.per_minute]", "[aggregates.other]");
    assert!(pipeline.run().expect(1).stderr.contains("it is gone"));
    // What fires when may change: it is not what windows hold.
    rewrite("allowed_lateness = \"4 m\"", "allowed_lateness = \"5 m\"\nearly = \"1 h\"");
    pipeline.run().expect(0);
    assert_eq!(measured(&pipeline), 1_980);
}

#[test]
fn open_windows_are_left_when_that_is_asked_for() {
    let mut pipeline = orders::pipeline(&[PER_MINUTE], some_orders().lines()).set("batch.max_events=500");
    pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{}=2", failpoint::LEDGER_COMMITTED))];
    assert!(pipeline.run().was_killed());
    pipeline.environment.clear();
    let file = std::fs::read_to_string(pipeline.file()).unwrap();
    std::fs::write(
        pipeline.file(),
        file.replace("measures = { orders = \"count\",", "measures = { orders = \"count\", more = \"count\","),
    )
    .unwrap();
    // Its table has no such column.
    pipeline.settings.push("aggregates.per_minute.table=other_minutes".into());
    pipeline.run().expect(1);
    let mut command = pipeline.command("run");
    command.arg("--forget-windows");
    preflight_tests::Ended::from_output(command.output().unwrap()).expect(0);
    let counted = &tables::query(&pipeline.database(), "SELECT SUM(orders) AS n FROM other_minutes_latest")[0]["n"];
    assert!(counted.as_u64().unwrap() < 1_980, "what was open is not in it: {counted}");
}

#[test]
fn aggregates_that_no_rule_fits_are_refused_before_the_first_event() {
    for (from, to, why) in [
        ("group_by = [\"sku\"]", "group_by = [\"colour\"]", "no rule produces column `colour`"),
        ("{ sum = \"revenue\" }", "{ sum = \"sku\" }", "sum takes no STRING"),
        ("{ sum = \"revenue\" }", "{ sum = \"income\" }", "no rule produces column `income`"),
        ("group_by", "event_time = \"sku\"\ngroup_by", "no NOT NULL TIMESTAMP"),
        ("group_by", "event_time = \"sold_at\"\ngroup_by", "does not produce column `sold_at`"),
        ("allowed_lateness", "accumulation = \"discarding\"\nallowed_lateness", "of NUMERIC"),
    ] {
        let aggregate = PER_MINUTE.replace(from, to);
        assert_ne!(aggregate, PER_MINUTE);
        let ended = orders::pipeline(&[&aggregate], "").run().expect(2);
        assert!(
            ended.stderr.contains(why) && ended.stderr.contains("aggregates.per_minute"),
            "{why}: {}",
            ended.stderr
        );
    }
}
