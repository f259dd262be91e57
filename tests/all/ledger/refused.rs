//! Rows that a table refuses although every check was made: they are taken out of what was promised, the events go to
//! quarantine once, and offsets stay without gaps, wherever the worker is killed meanwhile.

use preflight::config::{Config, Layers};
use preflight::failpoint;
use preflight::ledger::{Additions, Ledger};
use preflight::pipeline::deliver::Delivery;
use preflight::pipeline::evaluate::{Context, Evaluators};
use preflight::pipeline::facts::Admitted;
use preflight::pipeline::prepare;
use preflight::pipeline::retry::Patience;
use preflight::telemetry::status::Board;
use preflight::time::{Clock, SystemClock};
use preflight::warehouse;
use preflight_tests::tables::{self, Tiers};
use preflight_tests::{Pipeline, bookings, events};
use rusqlite::Connection;
use std::sync::Arc;
use std::time::Duration;

/// Five micro-batches of what is or is not refused.
const BATCHES: [&str; 5] = ["good good", "good refused good", "refused", "good bad refused", "good"];

/// An event by what will become of it. Each has its number as its fare.
fn line(kind: &str, number: usize) -> String {
    match kind {
        "bad" => "no json\n".to_owned(),
        kind => bookings::good(1).replace("BK-0", &format!("{kind}-{number}")),
    }
}

/// A pipeline whose silver table refuses bookings that are called `refused…`.
fn pipeline() -> Pipeline {
    let pipeline = Pipeline::offvia("").warm();
    Connection::open(pipeline.database())
        .unwrap()
        .execute_batch(
            "CREATE TABLE fact_bookings (booking_id TEXT NOT NULL CHECK (booking_id NOT LIKE 'refused%'),
             passenger_id TEXT, flight_number TEXT, origin_airport TEXT, destination_airport TEXT, fare_amount TEXT,
             currency TEXT, booking_status TEXT, event_timestamp TEXT, loyalty_tier TEXT, ingestion_timestamp TEXT,
             source_message_id TEXT)",
        )
        .unwrap();
    pipeline
}

/// The same with five commits in its ledger, of which nothing was sent.
fn with_undone_commits() -> Pipeline {
    let pipeline = pipeline();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(commit_batches(&pipeline));
    pipeline
}

async fn commit_batches(pipeline: &Pipeline) {
    let layers = Layers::load(&pipeline.file(), &[""; 0], &pipeline.settings).unwrap();
    let config = Config::from_layers(&layers).unwrap();
    let prepared = prepare(&config).unwrap();
    let warehouse = warehouse::open(&config.warehouse).await.unwrap();
    let ledger = Ledger::open(&config.ledger, &config.name, warehouse.identity()).unwrap();
    for table in prepared.new_tables {
        warehouse.create_table(table).await.unwrap();
    }
    let plan = Arc::new(prepared.plan);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let board = Board::new([config.name.as_str()], &clock);
    let (metrics, status) = &board.pipelines()[0];
    let patience = Patience::new(Duration::ZERO, metrics, status);
    let delivery = Delivery::new(ledger, warehouse, Arc::clone(&plan), patience, metrics.clone());
    let evaluators =
        Evaluators::start(&prepared.sandbox, &config.limits, config.rules.isolation, config.threads, None, metrics)
            .unwrap();
    let context = Context { rules: prepared.rules, plan, pairs: [].into() };
    for (batch, kinds) in BATCHES.into_iter().enumerate() {
        let lines: String = kinds.split(' ').enumerate().map(|(at, kind)| line(kind, batch * 10 + at)).collect();
        let events = events::from_lines(&format!("batch-{batch}"), &lines);
        let judged = evaluators.submit(Admitted { events, ..Admitted::default() }, &context).await.unwrap();
        for part in judged.parts.iter().filter(|part| !part.rows.is_empty()) {
            delivery.ensure_stream(part.tier).await.unwrap();
        }
        delivery
            .ledger
            .call(move |ledger| ledger.commit(&judged.parts, &judged.originals, None, &Additions::default()))
            .await
            .unwrap();
    }
}

/// What must be in the tables in the end, and that every row is accounted for by a stream.
fn expect_exact(pipeline: &Pipeline, when: &str) -> Tiers {
    let database = pipeline.database();
    let column = |rows: &[serde_json::Map<String, serde_json::Value>], name: &str| -> Vec<String> {
        rows.iter().map(|row| row[name].as_str().unwrap_or_default().to_owned()).collect()
    };
    let tiers = tables::tiers(&database);
    let silver = column(&tiers.silver, "booking_id");
    assert_eq!(silver, ["good-0", "good-1", "good-10", "good-12", "good-30", "good-40"], "{when}");
    let quarantine = column(&tiers.quarantine, "source_message_id");
    assert_eq!(quarantine, ["batch-3:2", "batch-1:2", "batch-2:1", "batch-3:3"], "{when}");
    let stages = column(&tiers.quarantine, "error_stage");
    assert_eq!(stages, ["PARSE_JSON", "SINK_REJECTED", "SINK_REJECTED", "SINK_REJECTED"], "{when}");
    assert_eq!(tiers.bronze.len(), 10, "{when}");
    let streams = tables::query(
        &database,
        "SELECT table_name, sum(row_count) AS n FROM preflight_streams GROUP BY table_name ORDER BY table_name",
    );
    let counts: Vec<u64> = streams.iter().map(|stream| stream["n"].as_u64().unwrap()).collect();
    assert_eq!(counts, [6, 4, 10], "{when}: silver, quarantine, bronze by table name");
    tiers
}

#[test]
fn refused_rows_among_undone_commits_leave_no_gap() {
    let pipeline = with_undone_commits();
    let report = pipeline.run().expect(0).json();
    assert_eq!(report["resumed_commits"], 5);
    let tiers = expect_exact(&pipeline, "uninterrupted");
    let refused = &tiers.quarantine[1];
    assert_eq!(refused["error_code"], "refused_by_table");
    assert!(refused["error_reason"].as_str().unwrap().contains("CHECK constraint failed"), "{refused:?}");
    assert!(refused["raw_payload"].as_str().unwrap().contains("refused-11"), "the original is kept");
    assert!(refused["rule"].as_str().unwrap().starts_with("offvia-booking@"), "{refused:?}");
}

/// Rows for quarantine were laid out for the table as it is now, but bound to a stream that keeps the earlier layout:
/// values ended in columns of other names, or had no column.
#[test]
fn refused_rows_fit_the_quarantine_stream_of_the_run_before() {
    let pipeline = with_undone_commits();
    let database = Connection::open(pipeline.database()).unwrap();
    database
        .execute_batch(
            "ALTER TABLE poisoned_events RENAME TO old;
             CREATE TABLE poisoned_events (rule TEXT, extra TEXT, error_stage TEXT, source_message_id TEXT, raw_bytes BLOB,
               raw_size INTEGER, pipeline TEXT,
               error_reason TEXT, raw_payload TEXT, received_timestamp TEXT, error_code TEXT, attributes TEXT,
               publish_timestamp TEXT, ordering_key TEXT, delivery_attempt INTEGER, event_version TEXT, rule_digest TEXT);
             DROP TABLE old",
        )
        .unwrap();
    pipeline.run().expect(0);
    let tiers = expect_exact(&pipeline, "with a table of another order");
    for row in &tiers.quarantine[1..] {
        assert_eq!(row["error_code"], "refused_by_table", "{row:?}");
        assert!(row["error_reason"].as_str().unwrap().contains("CHECK constraint failed"), "{row:?}");
        assert!(row["rule"].as_str().unwrap().starts_with("offvia-booking@"), "{row:?}");
    }
}

/// The same when the pipeline file names another table by now.
#[test]
fn refused_rows_go_to_the_quarantine_table_that_their_stream_is_for() {
    let pipeline = with_undone_commits().set("quarantine.table=elsewhere");
    let database = Connection::open(pipeline.database()).unwrap();
    database.execute_batch("CREATE TABLE elsewhere (error_stage TEXT, error_reason TEXT, raw_payload TEXT)").unwrap();
    pipeline.run().expect(0);
    expect_exact(&pipeline, "with another table");
    assert_eq!(tables::count(&pipeline.database(), "elsewhere"), 0);
}

#[test]
fn killed_while_rows_are_refused_a_worker_ends_exact() {
    for (point, most) in [(failpoint::ENTRY_REPLACED, 3), (failpoint::ROWS_APPENDED, 11), (failpoint::ENTRY_DONE, 8)] {
        for pass in 1..=most {
            let mut pipeline = with_undone_commits();
            pipeline.environment = vec![(failpoint::VARIABLE.into(), format!("{point}={pass}"))];
            let ended = pipeline.run();
            assert!(ended.was_killed(), "{point}={pass} was not passed: {ended:?}");
            pipeline.environment.clear();
            pipeline.run().expect(0);
            expect_exact(&pipeline, &format!("{point}={pass}"));
        }
    }
}

#[test]
fn refused_rows_are_counted_as_quarantined_and_not_as_accepted() {
    let pipeline = pipeline().set("batch.max_events=3");
    let kinds = ["good", "refused", "good", "good", "bad", "refused", "good"];
    let input: String = kinds.iter().enumerate().map(|(number, kind)| line(kind, number)).collect();
    pipeline.write_input(input);
    let report = pipeline.run().expect(0).json();
    assert_eq!((&report["events"], &report["silver"], &report["quarantine"]), (&7.into(), &4.into(), &3.into()));
    let rejected = report["rejected"].as_array().unwrap();
    assert!(rejected.iter().any(|line| line["stage"] == "SINK_REJECTED" && line["events"] == 2), "{rejected:?}");
    assert_eq!(tables::count(&pipeline.database(), "fact_bookings"), 4);
    assert_eq!(tables::count(&pipeline.database(), "poisoned_events"), 3);
}

#[test]
fn a_quarantine_table_that_refuses_a_row_stops_the_run_and_keeps_it() {
    let pipeline = Pipeline::offvia("").warm();
    pipeline.run().expect(0);
    let connection = Connection::open(pipeline.database()).unwrap();
    connection
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON poisoned_events BEGIN SELECT RAISE(ABORT, 'quarantine is closed'); END",
        )
        .unwrap();
    pipeline.write_input(bookings::lines(20));
    for _ in 0..2 {
        let ended = pipeline.run().expect(1);
        assert!(ended.stderr.contains("cannot write to quarantine"), "{}", ended.stderr);
        assert!(ended.stderr.contains("quarantine is closed"), "{}", ended.stderr);
    }
    connection.execute_batch("DROP TRIGGER full").unwrap();
    pipeline.run().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "raw_bookings"), 20);
    let split = ["fact_bookings", "poisoned_events"].map(|table| tables::count(&pipeline.database(), table));
    assert_eq!(split.iter().sum::<u64>(), 20);
}
