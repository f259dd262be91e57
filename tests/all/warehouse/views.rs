//! Views over panes: what is known of each window now. On SQLite and the BigQuery emulator, by real rows.

use super::place::{Place, ids};
use preflight::row::{Column, ColumnType, Value};
use preflight::warehouse::{self, NewTable, NewView};
use preflight::window::{Accumulation, Function, Measure};
use rusqlite::Connection;
use std::fmt::Write as _;

/// Runs each part against each warehouse, as a test of its own.
macro_rules! views {
    ($($part:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $part() { super::$part(&super::Place::sqlite()).await })*
        }
        mod emulator {
            $(#[tokio::test] async fn $part() { super::$part(&super::Place::emulator()).await })*
        }
    };
}

views!(
    the_newest_pane_of_each_window_is_shown,
    what_was_discarded_is_added_up,
    every_type_has_its_least_and_greatest_value,
    numbers_are_compared_as_numbers,
    a_view_is_made_once_and_another_of_its_name_is_refused,
);

/// A pane: window, epoch, index, timing, measures, error.
type Pane<'a> = (&'a str, i64, i64, &'a str, Vec<Value>, Option<&'a str>);

struct Panes<'a> {
    place: &'a Place,
    view: NewView,
}

impl<'a> Panes<'a> {
    /// A table with these panes, and a view over it.
    async fn new(
        place: &'a Place,
        accumulation: Accumulation,
        measures: &[(&str, Function, ColumnType)],
        panes: Vec<Pane<'_>>,
    ) -> Self {
        let measure = |(name, function, input): &(&str, Function, ColumnType)| {
            ((*name).to_owned(), Measure { function: *function, input: Some(*input) })
        };
        let view = NewView {
            name: place.table("now"),
            table: place.table("panes"),
            groups: vec!["sku".into()],
            measures: measures.iter().map(measure).collect(),
            accumulation,
        };
        let warehouse = place.open().await;
        warehouse.add(table(&view), panes.into_iter().map(row).collect()).await.unwrap();
        warehouse.create_view(view.clone()).await.unwrap();
        Self { place, view }
    }

    /// A column of the view, by window.
    fn column(&self, name: &str) -> Vec<String> {
        self.place.values(&self.view.name, name, "window_id")
    }

    /// Some columns of the view, a line for each window.
    fn shown(&self, columns: &[&str]) -> Vec<String> {
        let mut lines = self.column("window_id");
        for column in columns {
            for (line, value) in lines.iter_mut().zip(self.column(column)) {
                write!(line, " {value}").unwrap();
            }
        }
        lines
    }
}

fn table(view: &NewView) -> NewTable {
    let text = |name: &str| Column::new(name, ColumnType::Text, true);
    let time = |name: &str| Column::new(name, ColumnType::Timestamp, true);
    let number = |name: &str| Column::new(name, ColumnType::Int64, true);
    let mut columns = vec![text("window_id"), time("window_start"), time("window_end"), text("sku")];
    columns.extend(view.measures.iter().map(|(name, measure)| Column::new(name, measure.output(), true)));
    columns.extend([text("timing"), number("pane_index"), number("epoch"), time("fired_at"), time("watermark")]);
    columns.push(text("error"));
    NewTable::plain(&view.table, columns)
}

fn row((id, epoch, index, timing, measures, error): Pane<'_>) -> Vec<Value> {
    let text = |text: &str| Value::Text(text.to_owned());
    let start = 1_700_000_000_000_000;
    let sku = if id.ends_with('0') { Value::Null } else { text(&format!("sku-{id}")) };
    let mut row = vec![text(id), Value::Timestamp(start), Value::Timestamp(start + 60_000_000), sku];
    row.extend(measures);
    row.extend([text(timing), Value::Int64(index), Value::Int64(epoch), Value::Timestamp(start), Value::Null]);
    row.push(error.map_or(Value::Null, text));
    row
}

fn n(number: i64) -> Vec<Value> {
    vec![Value::Int64(number)]
}

async fn the_newest_pane_of_each_window_is_shown(place: &Place) {
    let panes = vec![
        ("w0", 0, 2, "LATE", n(4), None),
        ("w0", 0, 0, "EARLY", n(1), None),
        ("w0", 0, 1, "ON_TIME", n(3), None),
        // Merged into another session.
        ("w1", 0, 0, "ON_TIME", n(5), None),
        ("w1", 0, 1, "RETRACTED", vec![Value::Null], None),
        // Computed again.
        ("w2", 1, 0, "ON_TIME", n(8), None),
        ("w2", 0, 11, "LATE", n(9), None),
        // Taken back in one epoch, there in the next.
        ("w3", 0, 1, "RETRACTED", vec![Value::Null], None),
        ("w3", 1, 0, "EARLY", n(6), None),
        // The other way round.
        ("w4", 0, 0, "ON_TIME", n(6), None),
        ("w4", 1, 0, "RETRACTED", vec![Value::Null], None),
        ("w5", 0, 9, "LATE", n(1), None),
        ("w5", 0, 10, "LATE", vec![Value::Null], Some("`m` is beyond INT64")),
    ];
    let measures = [("m", Function::Sum, ColumnType::Int64)];
    let panes = Panes::new(place, Accumulation::Accumulating, &measures, panes).await;
    assert_eq!(
        panes.shown(&["sku", "m", "timing", "pane_index", "epoch", "error"]),
        [
            "w0 null 4 LATE 2 0 null",
            "w2 sku-w2 8 ON_TIME 0 1 null",
            "w3 sku-w3 6 EARLY 0 1 null",
            "w5 sku-w5 null LATE 10 0 `m` is beyond INT64",
        ]
    );
}

async fn what_was_discarded_is_added_up(place: &Place) {
    let values = |count: i64, sum: Option<i64>, least: Option<f64>| {
        let sum = sum.map_or(Value::Null, Value::Int64);
        vec![Value::Int64(count), sum, least.map_or(Value::Null, Value::Float64)]
    };
    let panes = vec![
        ("w0", 0, 1, "ON_TIME", values(2, Some(20), Some(1.5)), None),
        ("w0", 0, 2, "LATE", values(1, None, None), None),
        ("w0", 0, 0, "EARLY", values(1, Some(-5), Some(0.5)), None),
        ("w1", 0, 0, "ON_TIME", values(1, Some(1), Some(1.0)), None),
        ("w1", 0, 1, "RETRACTED", vec![Value::Null, Value::Null, Value::Null], None),
        // Of the newest epoch only.
        ("w2", 0, 7, "LATE", values(100, Some(100), Some(-100.0)), Some("old")),
        ("w2", 1, 0, "EARLY", values(1, Some(1), Some(2.5)), None),
        ("w2", 1, 1, "ON_TIME", values(1, Some(2), Some(3.5)), None),
        ("w3", 0, 0, "RETRACTED", vec![Value::Null, Value::Null, Value::Null], None),
        ("w3", 1, 0, "ON_TIME", values(3, Some(3), Some(3.5)), None),
        // What one pane lacks the sum would lack too.
        ("w4", 0, 0, "EARLY", values(1, None, Some(1.0)), Some("`total` is beyond INT64")),
        ("w4", 0, 1, "ON_TIME", values(1, Some(1), Some(1.0)), None),
        ("w5", 0, 0, "ON_TIME", values(0, None, None), None),
    ];
    let measures = [
        ("events", Function::Count, ColumnType::Text),
        ("total", Function::Sum, ColumnType::Int64),
        ("least", Function::Min, ColumnType::Float64),
    ];
    let panes = Panes::new(place, Accumulation::Discarding, &measures, panes).await;
    assert_eq!(
        panes.shown(&["sku", "events", "total", "least", "timing", "pane_index", "epoch", "error"]),
        [
            "w0 null 4 15 0.5 LATE 2 0 null",
            "w2 sku-w2 2 3 2.5 ON_TIME 1 1 null",
            "w3 sku-w3 3 3 3.5 ON_TIME 0 1 null",
            "w4 sku-w4 null null null ON_TIME 1 0 `total` is beyond INT64",
            "w5 sku-w5 0 null null ON_TIME 0 0 null",
        ]
    );
}

/// A column as text, the same in every warehouse.
fn as_text(place: &Place, name: &str, kind: ColumnType) -> String {
    match (place, kind) {
        (Place::Sqlite(_), ColumnType::Boolean) => format!("CASE {name} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"),
        (Place::Sqlite(_), _) => name.to_owned(),
        (_, ColumnType::Bytes) => format!("SAFE_CONVERT_BYTES_TO_STRING({name})"),
        (_, ColumnType::Timestamp) => format!("FORMAT_TIMESTAMP('%Y-%m-%dT%H:%M:%E6SZ', {name})"),
        _ => format!("CAST({name} AS STRING)"),
    }
}

/// A type, two values of which the first is less, and both as text.
type Pair = (ColumnType, Value, Value, [&'static str; 2]);

async fn every_type_has_its_least_and_greatest_value(place: &Place) {
    let text = |text: &str| Value::Text(text.into());
    let bytes = |text: &str| Value::Bytes(text.as_bytes().to_vec());
    let values = [
        (ColumnType::Boolean, Value::Boolean(false), Value::Boolean(true), ["false", "true"]),
        (ColumnType::Int64, Value::Int64(-10), Value::Int64(9), ["-10", "9"]),
        (ColumnType::Float64, Value::Float64(-10.5), Value::Float64(9.5), ["-10.5", "9.5"]),
        (ColumnType::Text, text("B"), text("a"), ["B", "a"]),
        (ColumnType::Bytes, bytes("B"), bytes("a"), ["B", "a"]),
        (
            ColumnType::Timestamp,
            Value::Timestamp(-1),
            Value::Timestamp(1),
            ["1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00.000001Z"],
        ),
        (ColumnType::Date, Value::Date(-1), Value::Date(1), ["1969-12-31", "1970-01-02"]),
    ];
    let names: Vec<[String; 2]> = values.iter().map(|v| ["min", "max"].map(|f| format!("{f}_{}", v.0))).collect();
    let functions = [Function::Min, Function::Max];
    let measures: Vec<(&str, Function, ColumnType)> = names
        .iter()
        .zip(&values)
        .flat_map(|(names, (kind, ..))| names.iter().zip(functions).map(|(name, f)| (name.as_str(), f, *kind)))
        .collect();
    let both = |of: &dyn Fn(&Pair) -> Value| values.iter().flat_map(|value| [of(value), of(value)]).collect::<Vec<_>>();
    let panes = vec![
        ("w1", 0, 0, "EARLY", both(&|_| Value::Null), None),
        ("w1", 0, 1, "ON_TIME", both(&|value| value.2.clone()), None),
        ("w1", 0, 2, "LATE", both(&|value| value.1.clone()), None),
    ];
    let panes = Panes::new(place, Accumulation::Discarding, &measures, panes).await;
    for (names, (kind, .., expected)) in names.iter().zip(&values) {
        let found = names.each_ref().map(|name| panes.column(&as_text(place, name, *kind)).remove(0));
        assert_eq!(found, *expected, "{kind}");
    }
}

/// In their order.
const NUMBERS: [&str; 16] = [
    "-99999999999999999999999999999.999999999",
    "-100",
    "-20.3",
    "-20.25",
    "-20",
    "-3",
    "-0.5",
    "-0.000000001",
    "0",
    "0.000000001",
    "0.45",
    "0.5",
    "9.5",
    "10",
    "10.05",
    "99999999999999999999999999999.999999999",
];

async fn numbers_are_compared_as_numbers(place: &Place) {
    // The emulator's NUMERIC has 15 digits before the point and 3 behind it.
    let taken = |number: &&&str| {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        !matches!(place, Place::Emulator(_)) || whole.len() < 15 && fraction.len() <= 3
    };
    let numbers: Vec<&str> = NUMBERS.iter().filter(taken).copied().collect();
    let both = |number: &str| vec![Value::Numeric(number.into()), Value::Numeric(number.into())];
    let ids: Vec<String> = (0..numbers.len() * numbers.len()).map(|number| format!("w{number:03}-")).collect();
    let (mut panes, mut least, mut greatest) = (Vec::new(), Vec::new(), Vec::new());
    for (number, id) in ids.iter().enumerate() {
        let (a, b) = (number / numbers.len(), number % numbers.len());
        panes.push((id.as_str(), 0, 0, "EARLY", both(numbers[a]), None));
        panes.push((id.as_str(), 0, 1, "EARLY", vec![Value::Null, Value::Null], None));
        panes.push((id.as_str(), 0, 2, "ON_TIME", both(numbers[b]), None));
        least.push(numbers[a.min(b)].to_owned());
        greatest.push(numbers[a.max(b)].to_owned());
    }
    panes.push(("x", 0, 0, "ON_TIME", vec![Value::Null, Value::Null], None));
    for list in [&mut least, &mut greatest] {
        list.push("null".to_owned());
    }
    let measures = [("least", Function::Min, ColumnType::Numeric), ("greatest", Function::Max, ColumnType::Numeric)];
    let panes = Panes::new(place, Accumulation::Discarding, &measures, panes).await;
    for (name, expected) in [("least", least), ("greatest", greatest)] {
        let found = panes.column(&as_text(place, name, ColumnType::Numeric));
        // The emulator shows zeros that say nothing.
        let trim = |text: &String| {
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.clone() }
        };
        assert_eq!(found.iter().map(trim).collect::<Vec<_>>(), expected, "{name}");
    }
}

async fn a_view_is_made_once_and_another_of_its_name_is_refused(place: &Place) {
    let measures = [("m", Function::Sum, ColumnType::Int64)];
    let Panes { view, .. } = Panes::new(place, Accumulation::Accumulating, &measures, vec![]).await;
    let warehouse = place.open().await;
    warehouse.create_view(view.clone()).await.unwrap();
    let other = NewView { groups: vec![], ..view.clone() };
    let error = warehouse.create_view(other.clone()).await.unwrap_err();
    assert!(error.text.contains("drop it") && error.text.contains("now") && !error.retryable, "{error}");
    let plain = place.table("plain");
    warehouse.create_table(ids(&plain)).await.unwrap();
    let error = warehouse.create_view(NewView { name: plain, ..view.clone() }).await.unwrap_err();
    assert!(error.text.contains("another name"), "{error}");
    let mean = Measure { function: Function::Avg, input: Some(ColumnType::Int64) };
    let accumulation = Accumulation::Discarding;
    let inexact = NewView { measures: vec![("m".into(), mean)], accumulation, name: place.table("mean"), ..view };
    let error = warehouse.create_view(inexact).await.unwrap_err();
    assert!(error.text.contains("`m` cannot be told") && !error.retryable, "{error}");
}

/// BigQuery tells the query of a view, so that a view with the same columns is not taken for it.
#[tokio::test]
async fn a_view_that_measures_something_else_is_another() {
    for place in [Place::sqlite(), Place::fake()] {
        let measure = |function| vec![("m".to_owned(), Measure { function, input: Some(ColumnType::Int64) })];
        let view = NewView {
            name: place.table("now"),
            table: place.table("panes"),
            groups: vec![],
            measures: measure(Function::Min),
            accumulation: Accumulation::Discarding,
        };
        let warehouse = place.open().await;
        for _ in 0..2 {
            warehouse.create_view(view.clone()).await.unwrap();
        }
        let other = NewView { measures: measure(Function::Max), ..view };
        assert!(warehouse.create_view(other).await.unwrap_err().text.contains("drop it"));
    }
}

#[tokio::test]
async fn a_view_that_cannot_be_made_now_is_made_later() {
    use preflight_tests::bigquery::fake::{Call, Fault};
    let place = Place::fake();
    let view = NewView {
        name: place.table("now"),
        table: place.table("panes"),
        groups: vec![],
        measures: vec![],
        accumulation: Accumulation::Accumulating,
    };
    let warehouse = place.open().await;
    super::fakes::fake(&place).when(Call::Query).once(Fault::answer(tonic::Code::Unavailable));
    let error = warehouse.create_view(view.clone()).await.unwrap_err();
    assert!(error.text.contains("cannot make view") && error.retryable, "{error}");
    warehouse.create_view(view).await.unwrap();
}

/// What `provision --dry-run` shows is what is made.
#[test]
fn the_statement_makes_the_view() {
    let place = Place::sqlite();
    let view = NewView {
        name: "dataset.now".into(),
        table: "dataset.panes".into(),
        groups: vec!["sku".into()],
        measures: vec![],
        accumulation: Accumulation::Accumulating,
    };
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&warehouse::create_statement(&place.config(), &table(&view)).unwrap()).unwrap();
    let statement = warehouse::create_view_statement(&place.config(), &view).unwrap();
    connection.execute_batch(&statement).unwrap();
    connection.prepare("SELECT sku, window_id FROM now").unwrap();
    let statement = warehouse::create_view_statement(&Place::fake().config(), &view).unwrap();
    assert!(statement.starts_with("CREATE VIEW IF NOT EXISTS `preflight-test.dataset.now` AS\n"), "{statement}");
    assert!(statement.contains("FROM `preflight-test.dataset.panes`"), "{statement}");
    let mean = Measure { function: Function::Avg, input: Some(ColumnType::Int64) };
    let accumulation = Accumulation::Discarding;
    let inexact = NewView { measures: vec![("m".into(), mean)], accumulation, ..view };
    for place in [place, Place::fake()] {
        assert!(warehouse::create_view_statement(&place.config(), &inexact).unwrap_err().contains("`m`"));
    }
}
