//! Windows while a worker runs: time alone fires them, a kill loses none, a message that comes again counts once.

use preflight::time::{Clock as _, SystemClock, format_micros};
use preflight_tests::orders;
use preflight_tests::pubsub::{Feed, message};
use preflight_tests::{Pipeline, Running, http, tables};
use rustix::process::Signal;
use std::io::Write as _;

/// Orders per article and second, told early as well.
const PER_SECOND: &str = r#"
[aggregates.per_second]
table = "per_second"
create = "if_needed"
window = { fixed = "1 s" }
allowed_lateness = "1 h"
early = "200 ms"
group_by = ["sku"]
measures = { orders = "count", pieces = { sum = "quantity" } }
"#;

const BY_SQL: &str = "
    SELECT sku, substr(occurred_at, 1, 19) || '.000000Z', COUNT(*), SUM(quantity) FROM orders GROUP BY 1, 2";
const BY_WINDOWS: &str = "SELECT sku, window_start, orders, pieces FROM per_second_latest";

fn order(number: usize) -> String {
    let now = format_micros(SystemClock.now());
    format!(
        r#"{{"event_id":"E{number}","sku":"S{}","channel":"app","quantity":{},"revenue":"1.00","occurred_at":"{now}"}}"#,
        number % 7,
        1 + number % 3
    )
}

fn number(pipeline: &Pipeline, sql: &str) -> u64 {
    // Before its first commit the worker has made no tables.
    std::panic::catch_unwind(|| tables::query(&pipeline.database(), sql)[0]["n"].as_u64().unwrap_or(0)).unwrap_or(0)
}

fn counted(pipeline: &Pipeline) -> u64 {
    match tables::newest_rowid(&pipeline.database(), "per_second") {
        Some(_) => number(pipeline, "SELECT SUM(orders) AS n FROM per_second_latest"),
        None => 0,
    }
}

#[test]
fn from_a_subscription_each_order_counts_once_whatever_is_killed_and_delivered_again() {
    const ORDERS: usize = 3_000;
    let feed = Feed::new();
    let pipeline = orders::live(&feed, &[PER_SECOND]);
    for round in 0..3 {
        let (mut run, _stdin) = Running::start(&pipeline);
        let numbers = round * ORDERS / 3..(round + 1) * ORDERS / 3;
        feed.publish(numbers.map(|number| message(order(number))));
        let silver = || tables::newest_rowid(&pipeline.database(), "orders").unwrap_or(0);
        // Some of what it has taken is acknowledged by then, and some is not.
        run.wait_patiently_until(|| silver() > (round * ORDERS / 3 + ORDERS / 6) as u64);
        run.signal(Signal::KILL);
        assert!(run.finish().was_killed());
    }
    let (mut run, _stdin) = Running::start(&pipeline);
    run.wait_patiently_until(|| counted(&pipeline) == ORDERS as u64);
    // All windows close although nothing comes any more.
    let on_time = "SELECT COUNT(DISTINCT window_id) AS n FROM per_second WHERE timing = 'ON_TIME'";
    let windows = "SELECT COUNT(DISTINCT window_id) AS n FROM per_second";
    run.wait_patiently_until(|| number(&pipeline, on_time) == number(&pipeline, windows));
    run.stop().expect(0);
    assert_eq!(tables::count(&pipeline.database(), "orders"), ORDERS as u64);
    assert_eq!(tables::count(&pipeline.database(), "late_orders"), 0);
    for (left, right) in [(BY_SQL, BY_WINDOWS), (BY_WINDOWS, BY_SQL)] {
        let sql = format!("SELECT COUNT(*) AS n FROM (SELECT * FROM ({left}) EXCEPT SELECT * FROM ({right}))");
        assert_eq!(number(&pipeline, &sql), 0, "{left}");
    }
    let twice = "SELECT COUNT(*) AS n FROM (SELECT 1 FROM per_second GROUP BY window_id, epoch, pane_index HAVING COUNT(*) > 1)";
    assert_eq!(number(&pipeline, twice), 0);
}

#[test]
fn processing_time_alone_fires_an_early_pane_and_the_state_of_event_time_can_be_asked_for() {
    let pipeline = orders::from_stdin(&[PER_SECOND]).set("admin.listen=127.0.0.1:0");
    let (mut run, mut stdin) = Running::start(&pipeline);
    let line = format!("{{\"data\":{:?},\"publish_time\":\"{}\"}}\n", order(1), format_micros(SystemClock.now()));
    stdin.write_all(line.as_bytes()).unwrap();
    run.wait_until(|| counted(&pipeline) == 1);
    assert_eq!(tables::column(&pipeline.database(), "per_second", "timing"), ["EARLY"]);
    let admin = run.admin();
    let status = http::get(&admin, "/status").body;
    for part in ["\"per_second\"", "\"watermark\"", "\"out_of_orderness"] {
        assert!(status.contains(part), "{part} is missing in {status}");
    }
    let metrics = http::get(&admin, "/metrics").body;
    assert!(metrics.contains("aggregate=\"per_second\""), "{metrics}");
    drop(stdin);
    run.finish().expect(0);
    let timings = tables::column(&pipeline.database(), "per_second", "timing");
    assert_eq!(timings, ["EARLY", "ON_TIME"]);
}
