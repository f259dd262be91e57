//! What is refused of the watermark, of late data and of aggregates, and the defaults.

use super::{load, load_google, on_bigquery};
use crate::config::{AggregateConfig, Config, Create, Follows, Layers, MeasureConfig, WriteMode};
use crate::window::{Accumulation, Function, LateTrigger, Trigger, Windowing};
use std::path::Path;
use std::time::Duration;

const SECOND: i64 = 1_000_000;
const LATE: &str = "late_data.table=q.late_events";
const TABLE: &str = "aggregates.a.table=gold.a";
const WINDOW: &str = "aggregates.a.window.fixed=1 m";
const COUNT: &str = "aggregates.a.measures.events=count";

/// The pipeline of the other tests with one aggregate, and some keys set.
fn aggregated(sets: &[&str]) -> Result<Config, String> {
    load(&[&[LATE, TABLE, WINDOW, COUNT], sets].concat())
}

fn refused(sets: &[&str], key: &str, what: &str) {
    let error = aggregated(sets).unwrap_err();
    assert!(error.contains(&format!("--set: {key}: ")) && error.contains(what), "{sets:?}: {error}");
}

fn one(sets: &[&str]) -> AggregateConfig {
    aggregated(sets).unwrap().aggregates.remove(0)
}

#[test]
fn an_aggregate_needs_a_table_a_window_and_a_measure() {
    let expected = AggregateConfig {
        name: "a".into(),
        tier: crate::config::TierConfig {
            table: "gold.a".into(),
            create: Create::Never,
            write: crate::config::Write::Append,
            partition_by: None,
            cluster_by: Vec::new(),
            description: None,
        },
        event_time: None,
        windowing: Windowing::Fixed { size: 60 * SECOND, offset: 0 },
        trigger: Trigger { early: None, late: LateTrigger::Each },
        accumulation: Accumulation::Accumulating,
        allowed_lateness: 0,
        group_by: Vec::new(),
        measures: vec![MeasureConfig { name: "events".into(), function: Function::Count, column: None }],
        write: WriteMode::Panes,
    };
    let config = aggregated(&[]).unwrap();
    assert_eq!(config.aggregates, [expected]);
    assert_eq!(config.late_data.unwrap().table, "q.late_events");
    assert_eq!(config.max_open_windows, 1_000_000);
    assert!(load(&[LATE, TABLE, COUNT]).unwrap_err().contains("aggregates.a: missing field `window`"));
    assert!(load(&[LATE, TABLE, WINDOW]).unwrap_err().contains("aggregates.a.measures: measure something"));
}

#[test]
fn every_key_of_an_aggregate_is_taken() {
    let aggregate = one(&[
        "aggregates.a.event_time=occurred_at",
        "aggregates.a.window={ sliding = \"5 m\", every = \"1 m\", offset = \"2 s\" }",
        "aggregates.a.allowed_lateness=4 m",
        "aggregates.a.early=10 s",
        "aggregates.a.late=1 s",
        "aggregates.a.group_by=[\"sku\", \"region\"]",
        "aggregates.a.write=upsert",
        "aggregates.a.create=if_needed",
        "aggregates.a.measures.revenue.sum=price",
        "aggregates.a.measures.buyers.approx_count_distinct=customer",
        "aggregates.a.measures.paid.count=payment",
    ]);
    assert_eq!(aggregate.event_time.as_deref(), Some("occurred_at"));
    let windowing = Windowing::Sliding { size: 300 * SECOND, every: 60 * SECOND, offset: 2 * SECOND };
    assert_eq!(aggregate.windowing, windowing);
    assert_eq!(aggregate.trigger, Trigger { early: Some(10 * SECOND), late: LateTrigger::Every(SECOND) });
    assert_eq!((aggregate.allowed_lateness, aggregate.group_by.len()), (240 * SECOND, 2));
    assert_eq!((aggregate.write, aggregate.tier.create), (WriteMode::Upsert, Create::IfNeeded));
    assert_eq!((aggregate.view(), aggregate.key("late")), (None, "aggregates.a.late".into()));
    let measures: Vec<(&str, Function, Option<&str>)> =
        aggregate.measures.iter().map(|m| (m.name.as_str(), m.function, m.column.as_deref())).collect();
    let expected = [
        ("buyers", Function::ApproxCountDistinct, Some("customer")),
        ("events", Function::Count, None),
        ("paid", Function::Count, Some("payment")),
        ("revenue", Function::Sum, Some("price")),
    ];
    assert_eq!(measures, expected, "by name, whatever their order in the file");
    assert_eq!(one(&[]).view().as_deref(), Some("gold.a_latest"));
}

#[test]
fn a_window_is_of_exactly_one_kind_and_its_durations_can_be_meant() {
    let window = |window: &str, key: &str, what: &str| {
        refused(&[&format!("aggregates.a.window={window}")], &format!("aggregates.a.window{key}"), what);
    };
    window("{ tumbling = \"1 m\" }", ".tumbling", "unknown key; known here: fixed, sliding, session, every, offset");
    window("{ slidin = \"1 m\" }", ".slidin", "did you mean `sliding`?");
    window("{ fixed = \"1 m\", session = \"1 m\" }", "", "exactly one of fixed, sliding and session");
    window("{ fixed = \"0 s\" }", ".fixed", "at least 1 ms");
    window("{ fixed = \"367 d\" }", ".fixed", "at most 366 d");
    window("{ fixed = \"1\" }", ".fixed", "unit");
    window("{ fixed = \"1 m\", every = \"1 s\" }", ".every", "only sliding windows have it");
    window("{ fixed = \"1 m\", offset = \"60 s\" }", ".offset", "less than the window");
    window("{ sliding = \"1 m\" }", "", "every = \"…\"");
    window("{ sliding = \"1 m\", every = \"0 s\" }", ".every", "at least 1 ms");
    window("{ sliding = \"5 m\", every = \"1 m\", offset = \"1 m\" }", ".offset", "less than `every`");
    window("{ sliding = \"1001 s\", every = \"1 s\" }", ".every", "1001 windows: at most 1000");
    window("{ sliding = \"1000001 ms\", every = \"1 s\" }", ".every", "1001 windows");
    window("{ session = \"0 s\" }", ".session", "at least 1 ms");
    window("{ session = \"1 m\", offset = \"1 s\" }", ".offset", "only fixed and sliding windows have it");
    window("{ session = \"1 m\", every = \"1 s\" }", ".every", "only sliding windows have it");
    refused(&["aggregates.a.window=1 m"], "aggregates.a.window", "expected a table, such as { fixed = \"1 m\" }");
    for taken in [
        "{ fixed = \"366 d\", offset = \"365 d\" }",
        "{ sliding = \"1000 s\", every = \"1 s\" }",
        "{ sliding = \"1 s\", every = \"1 m\", offset = \"59 s\" }",
        "{ session = \"366 d\" }",
    ] {
        aggregated(&[&format!("aggregates.a.window={taken}")]).unwrap();
    }
}

#[test]
fn triggers_lateness_and_modes_are_refused_by_key() {
    let set = |set: &str, what: &str| {
        let key = set.split_once('=').unwrap().0;
        refused(&[&format!("aggregates.a.{set}")], &format!("aggregates.a.{key}"), what);
    };
    set("early=0 s", "at least 1 ms");
    set("early=each", "not a duration");
    set("late=0 s", "at least 1 ms");
    set("late=never", "use \"each\" or a duration");
    set("late=10", "unit");
    set("allowed_lateness=367 d", "at most 366 d");
    set("allowed_lateness=soon", "unit");
    set("accumulation=retracting", "\"accumulating\" or \"discarding\"");
    set("write=append", "\"panes\" or \"upsert\"");
    set("event_time=a-b", "not a column name");
    set("create=maybe", "if_needed");
    set("measure=x", "did you mean `measures`?");
    let discarding = "aggregates.a.accumulation=discarding";
    one(&[discarding, "aggregates.a.measures.least.min=price"]);
    refused(
        &[discarding, "aggregates.a.write=upsert"],
        "aggregates.a.accumulation",
        "an upsert replaces the row by what came since the last pane: use accumulating, or write = \"panes\"",
    );
    for function in ["avg", "approx_count_distinct"] {
        let measure = format!("aggregates.a.measures.x.{function}=price");
        refused(&[discarding, &measure], "aggregates.a.measures.x", &format!("do not add up to {function}"));
    }
}

#[test]
fn columns_are_named_once_and_not_like_the_hosts() {
    let group = |columns: &str, what: &str| {
        refused(&[&format!("aggregates.a.group_by={columns}")], "aggregates.a.group_by", what);
    };
    group("[\"sku\", \"SKU\"]", "\"SKU\" is named twice");
    group("[\"a-b\"]", "not a column name");
    for column in crate::config::PANE_COLUMNS {
        group(&format!("[\"{}\"]", column.to_uppercase()), "a column that the host fills");
        let key = format!("aggregates.a.measures.{column}");
        refused(&[&format!("{key}=count")], &key, "a column that the host fills");
    }
    let measure = |measure: &str, key: &str, what: &str| {
        let group = "aggregates.a.group_by=[\"sku\"]";
        let set = format!("aggregates.a.measures.{measure}");
        refused(&[group, &set], &format!("aggregates.a.measures.{key}"), what);
    };
    measure("Sku=count", "Sku", "grouped by a column of this name");
    measure("EVENTS=count", "events", "but for its case");
    measure("\"a b\"=count", "\"a b\"", "not a column name");
    measure("x=sum", "x", "sum is of a column: write { sum = \"…\" }");
    measure("x=summ", "x", "\"summ\" is not a function; did you mean `sum`? (there are count, sum, min, max, avg, ");
    measure("x.median=price", "x.median", "\"median\" is not a function (there are count");
    measure("x.sum=a-b", "x.sum", "not a column name");
    measure("x={ sum = \"a\", min = \"b\" }", "x", "exactly one function");
    measure("x={}", "x", "exactly one function");
    measure("x=1", "x", "write \"count\", or a function and its column");
}

#[test]
fn an_aggregates_name_is_plain() {
    let named = |name: &str| {
        let key = format!("aggregates.{name}");
        let sets = ["table=t", "window.fixed=1 m", "measures.n=count"].map(|set| format!("{key}.{set}"));
        load(&[&[LATE], sets.each_ref().map(String::as_str).as_slice()].concat())
    };
    for name in ["a", "0", "per_minute_2", &"a".repeat(100)] {
        let quoted = if name == "0" { "\"0\"" } else { name };
        assert_eq!(named(quoted).unwrap().aggregates[0].name, name);
    }
    for name in ["_a", "A", "a-b", "\"\"", "\"a b\"", "\"é\"", &"a".repeat(101)] {
        let error = named(name).unwrap_err();
        assert!(error.contains("is not an aggregate's name") && error.contains("a-z, 0-9 and _"), "{name}: {error}");
    }
}

#[test]
fn late_events_need_a_table_and_may_have_one_without_aggregates() {
    let error = load(&[TABLE, WINDOW, COUNT]).unwrap_err();
    assert!(error.contains("aggregates: ") && error.contains("[late_data] table"), "{error}");
    let config = load(&[LATE, "watermark.idle=1 m"]).unwrap();
    assert!(config.aggregates.is_empty() && config.late_data.is_some());
    refused(&["limits.open_windows=0"], "limits.open_windows", "at least 1");
    assert_eq!(aggregated(&["limits.open_windows=1"]).unwrap().max_open_windows, 1);
}

#[test]
fn no_two_tables_and_no_view_have_the_same_name() {
    let same = |set: &str, key: &str, what: &str| refused(&[set], key, what);
    same("late_data.table=x.raw_bookings", "late_data.table", "another tier's table");
    same("aggregates.a.table=other.Fact_Bookings", "aggregates.a.table", "another tier's table");
    same("aggregates.a.table=q.late_events", "aggregates.a.table", "another tier's table");
    same("late_data.table=x.A_latest", "aggregates.a.table", "its view would be \"a_latest\"");
    same("rules.shadow.table=a_latest", "aggregates.a.table", "its view would be \"a_latest\"");
    let upsert = "aggregates.a.write=upsert";
    aggregated(&["late_data.table=x.a_latest", upsert]).expect("without panes there is no view");
    let b = "aggregates.b={ table = \"a_latest\", window = { fixed = \"1 m\" }, measures = { n = \"count\" } }";
    same(b, "aggregates.a.table", "its view would be");
    let twice = b.replace("a_latest", "other.a");
    same(&twice, "aggregates.b.table", "another tier's table");
    for table in ["d.late", "d.gold", "d.gold_latest"] {
        let bronze = format!("provision.bronze={{ subscription = \"bronze\", table = \"{table}\" }}");
        let gold = ["late_data.table=d.late", "aggregates.a.table=d.gold", WINDOW, COUNT, &bronze];
        let error = load_google(&gold).unwrap_err();
        assert!(error.contains("provision.bronze.table") && error.contains("another tier's table"), "{error}");
    }
}

#[test]
fn tables_of_aggregates_are_in_a_dataset_of_bigquery() {
    let error = on_bigquery(&["late_data.table=late", "aggregates.a.table=bare", WINDOW, COUNT]).unwrap_err();
    for problem in ["late_data.table: \"late\" has no dataset", "aggregates.a.table: \"bare\" has no dataset"] {
        assert!(error.contains(problem), "{error}");
    }
    on_bigquery(&[LATE, TABLE, WINDOW, COUNT]).unwrap();
}

#[test]
fn the_watermark_follows_what_the_source_has() {
    let follows = |config: Result<Config, String>| config.map(|config| config.watermark.follows);
    let subscription = "source.pubsub.subscription=projects/p/subscriptions/s";
    let publish_time = "watermark.follows=publish_time";
    assert_eq!(follows(load(&[])), Ok(Follows::EndOfInput));
    assert_eq!(follows(load(&[subscription])), Ok(Follows::PublishTime));
    assert_eq!(follows(load(&["source.file.format=envelope", publish_time])), Ok(Follows::PublishTime));
    for source in ["source.file.format=lines", "source.stdin={}"] {
        let error = load(&[source, publish_time]).unwrap_err();
        assert!(error.contains("watermark.follows: lines have no publish times"), "{error}");
    }
    let error = load(&[subscription, "watermark.follows=end_of_input"]).unwrap_err();
    assert!(error.contains("watermark.follows: a subscription has no end"), "{error}");
    refused(&["watermark.follows=clock"], "watermark.follows", "\"publish_time\" or \"end_of_input\"");
}

#[test]
fn an_overlay_with_another_source_gets_the_default_of_that() {
    let mut layers = Layers::default();
    layers.lay_file(super::GOOGLE, "p.toml", Path::new("")).unwrap();
    assert_eq!(Config::from_layers(&layers).unwrap().watermark.follows, Follows::PublishTime);
    layers.lay_file("[source.file]\npath = \"e\"\n", "local.toml", Path::new("")).unwrap();
    assert_eq!(Config::from_layers(&layers).unwrap().watermark.follows, Follows::EndOfInput);
}

#[test]
fn the_watermark_has_defaults_and_bounds() {
    let watermark = load(&[]).unwrap().watermark;
    let seconds = [watermark.out_of_orderness, watermark.backlog, watermark.idle].map(|duration| duration.as_secs());
    assert_eq!(seconds, [10, 30, 120]);
    assert_eq!(load(&["watermark.out_of_orderness=0 s"]).unwrap().watermark.out_of_orderness, Duration::ZERO);
    for key in ["watermark.backlog", "watermark.idle"] {
        refused(&[&format!("{key}=0 s")], key, "at least 1 ms");
    }
    for key in ["watermark.out_of_orderness", "watermark.backlog", "watermark.idle"] {
        refused(&[&format!("{key}=367 d")], key, "at most 366 d");
        refused(&[&format!("{key}=soon")], key, "unit");
    }
}

#[test]
fn several_workers_on_a_subscription_are_refused_together_with_aggregates() {
    let gold = ["late_data.table=d.late", "aggregates.a.table=d.gold", WINDOW, COUNT];
    let with = |sets: &[&str]| load_google(&[&gold, sets].concat());
    with(&[]).unwrap();
    let error = with(&["source.pubsub.workers=2"]).unwrap_err();
    assert!(error.contains("source.pubsub.workers: with [aggregates] a subscription has one worker"), "{error}");
    let error = with(&["source.pubsub.workers=2", "dedup.by=payload"]).unwrap_err();
    assert_eq!(error.lines().count(), 2, "{error}");
}

#[test]
fn a_dedup_horizon_outlasts_the_windows_of_a_subscription() {
    let in_time = "watermark.out_of_orderness=0 s";
    let gold = ["late_data.table=d.late", "aggregates.a.table=d.gold", COUNT, "dedup.by=payload", in_time];
    let with = |sets: &[&str]| load_google(&[&gold, sets].concat());
    let behind = with(&["aggregates.a.window={ fixed = \"1 h\" }", "watermark.out_of_orderness=30 s"]).unwrap_err();
    assert!(behind.contains("dedup.horizon"), "a window closes so much later: {behind}");
    let lateness = "aggregates.a.allowed_lateness=4 m";
    for window in ["fixed = \"1 h\"", "sliding = \"1 h\", every = \"1 m\"", "session = \"1 h\""] {
        let window = format!("aggregates.a.window={{ {window} }}");
        with(&[&window]).unwrap();
        let error = with(&[&window, lateness]).unwrap_err();
        let what = "dedup.horizon: 1 h is less than window, allowed lateness and out_of_orderness of the aggregate `a` \
                    together, 64 m:";
        assert!(error.contains(what), "{error}");
        with(&[&window, lateness, "dedup.horizon=64 m"]).unwrap();
    }
    // Of a file the horizon is the run.
    aggregated(&["aggregates.a.window.fixed=1 d", "dedup.by=payload"]).unwrap();
}

#[test]
fn every_problem_of_an_aggregate_is_reported_at_once() {
    let error = aggregated(&[
        "aggregates.a.window.fixed=0 s",
        "aggregates.a.late=never",
        "aggregates.a.group_by=[\"epoch\"]",
        "aggregates.a.measures.x=sum",
        "aggregates.a.write=append",
        "watermark.idle=0 s",
    ]);
    assert_eq!(error.as_ref().unwrap_err().lines().count(), 6, "{error:?}");
}
