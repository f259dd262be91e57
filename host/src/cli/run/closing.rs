//! The closing table.

use crate::cli::output;
use crate::config::{Config, SourceConfig};
use crate::pipeline::{Report, SilverBy};
use crate::warehouse;

/// Values whose rows are shown; `--json` has more.
const VALUES: usize = 20;

/// The closing table: rows per tier, rejections per stage.
pub(super) fn closing(config: &Config, report: &Report) -> String {
    let tier = |name: &str, table: &str, count: u64| {
        [name.to_owned(), warehouse::table_name(&config.warehouse, table), count.to_string()]
    };
    let mut rows = Vec::new();
    if let (Some(bronze), Some(count)) = (&config.bronze, report.bronze) {
        rows.push(tier("bronze", &bronze.table, count));
    }
    rows.push(tier("silver", &config.silver.tier.table, report.silver));
    rows.extend(report.silver_by.iter().flat_map(by_value));
    if let Some(table) = config.quarantine.table_name() {
        rows.push(tier("quarantine", table, report.quarantine));
    }
    if let Some(file) = report.run.as_ref().and_then(|run| run.rejects.as_ref()) {
        rows.push(["rejects".into(), file.display().to_string(), report.quarantine.to_string()]);
    }
    for rejected in report.rejected.iter() {
        let code = rejected.code.as_ref().map_or_else(String::new, |code| format!(" ({code})"));
        rows.push([String::new(), format!("  {}{code}", rejected.stage), rejected.events.to_string()]);
    }
    rows.extend(of_windows(config, report));
    rows.push(["ignored".into(), String::new(), report.ignored.to_string()]);
    for (name, count) in [("duplicates", report.duplicates), ("redelivered", report.redelivered)] {
        if count > 0 {
            rows.push([name.into(), String::new(), count.to_string()]);
        }
    }
    let table = output::counts(["tier", "table", "rows"], rows);
    let stopped = match (&config.source, report.complete) {
        (_, true) => "",
        // It has no end.
        (SourceConfig::Pubsub(_), false) => ", stopped",
        (_, false) => ", stopped before the end of the source",
    };
    let mut text = format!(
        "{}: {} events in {:.1} s ({:.0}/s){stopped}\n{table}\n",
        report.pipeline, report.events, report.seconds, report.events_per_second
    );
    if report.resumed_commits > 0 {
        text.push_str(&format!("sent first: {} commits that an earlier run had left\n", report.resumed_commits));
    }
    match &report.run {
        Some(run) if !run.published => {
            let again = match config.source {
                SourceConfig::Stdin { .. } => "standard input cannot be read again, so the next run begins anew",
                _ => "run it again to go on from here, or with --restart to begin anew",
            };
            text.push_str(&format!(
                "nothing was published, the tables have the rows they had (run {}): {again}\n",
                run.id
            ));
        }
        Some(run) => text.push_str(&format!("published by run {}\n", run.id)),
        None => {}
    }
    if report.recovered_faults > 0 {
        text.push_str(&format!(
            "{} events were judged twice: their first fault did not stand\n",
            report.recovered_faults
        ));
    }
    text
}

/// Rows of silver by value: the most frequent, and the others together.
fn by_value(counts: &SilverBy) -> Vec<[String; 3]> {
    let values = counts.by_frequency();
    let (shown, rest) = values.split_at(values.len().min(VALUES));
    let others = counts.others + rest.iter().map(|(_, rows)| rows).sum::<u64>();
    let others = Some(("(others)", others)).filter(|(_, rows)| *rows > 0);
    // The column's name once, beside the first of its values.
    let names = std::iter::once(format!("  {}", counts.column)).chain(std::iter::repeat(String::new()));
    let values = shown.iter().copied().chain(others);
    names
        .zip(values)
        .map(|(name, (value, rows))| [name, format!("  {}", output::one_line(value)), rows.to_string()])
        .collect()
}

/// Panes of each aggregate by timing, and late events by aggregate.
fn of_windows(config: &Config, report: &Report) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    let table = |table: &str| warehouse::table_name(&config.warehouse, table);
    let part = |name: &str, count: u64| [String::new(), format!("  {name}"), count.to_string()];
    for aggregate in &config.aggregates {
        let panes = report.aggregates.get(&aggregate.name).map(|counts| &counts.panes);
        let by_timing: Vec<(&str, u64)> =
            panes.into_iter().flatten().map(|(timing, panes)| (*timing, *panes)).collect();
        let all: u64 = by_timing.iter().map(|(_, panes)| panes).sum();
        rows.push([aggregate.name.clone(), table(&aggregate.tier.table), all.to_string()]);
        rows.extend(by_timing.into_iter().filter(|(_, panes)| *panes > 0).map(|(timing, panes)| part(timing, panes)));
    }
    if let Some(late_data) = config.late_data.as_ref().filter(|_| !rows.is_empty()) {
        let late: Vec<(&str, u64)> =
            report.aggregates.iter().map(|(aggregate, counts)| (aggregate.as_str(), counts.late)).collect();
        let all: u64 = late.iter().map(|(_, events)| events).sum();
        rows.push(["late".into(), table(&late_data.table), all.to_string()]);
        rows.extend(
            late.into_iter().filter(|(_, events)| *events > 0).map(|(aggregate, events)| part(aggregate, events)),
        );
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Course;
    use crate::pipeline::report::ReplacingRun;
    use crate::row::ValueRef;
    use crate::telemetry::tally::{CountedVersion, Tally};
    use crate::telemetry::window_counts::WindowCounts;
    use crate::window::Timing;
    use std::time::Duration;

    fn report(windows: WindowCounts) -> Report {
        let mut tally = Tally::default();
        tally.windows = windows;
        of(&Config::with_aggregates(&[]), &tally)
    }

    fn of(config: &Config, tally: &Tally) -> Report {
        let took = Duration::from_millis(500);
        let course = Course { read: tally.read, complete: true, bytes: Some(700), took, ..Course::default() };
        Report::new(config, tally, course)
    }

    /// The rows of the table, words alone.
    fn rows(config: &Config, report: &Report) -> Vec<String> {
        let text = closing(config, report);
        let words =
            |line: &str| line.split_whitespace().filter(|word| !word.contains('│')).collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    }

    #[test]
    fn panes_are_told_by_aggregate_and_timing_and_late_events_by_aggregate() {
        let mut windows = WindowCounts::default();
        for timing in [Timing::OnTime, Timing::OnTime, Timing::Early] {
            windows.pane(&"b".into(), timing);
        }
        windows.begin(&"a".into());
        windows.late(&"b".into());
        let report = report(windows);
        let rows = rows(&Config::with_aggregates(&["a", "b"]), &report);
        let first = rows.iter().position(|row| row.starts_with("a gold_a")).expect("it is there");
        let expected = ["a gold_a 0", "b gold_b 3", "EARLY 1", "ON_TIME 2", "late late_events 1", "b 1", "ignored 0"];
        assert_eq!(rows[first..first + expected.len()], expected, "{rows:#?}");
        let json = serde_json::to_value(&report).expect("it is plain data");
        let expected = serde_json::json!({
            "a": {"panes": {"ON_TIME": 0}, "late": 0},
            "b": {"panes": {"EARLY": 1, "ON_TIME": 2}, "late": 1},
        });
        assert_eq!(json["aggregates"], expected);
    }

    #[test]
    fn a_run_that_replaces_says_whether_it_is_published_and_how_to_go_on() {
        let text = |published, source: &str| {
            let mut config = Config::with_aggregates(&[]);
            if source == "stdin" {
                config.source = SourceConfig::Stdin { format: crate::config::Format::Lines };
            }
            let run = Some(ReplacingRun { id: "17_ab".into(), published, rejects: Some("r/o.csv".into()) });
            closing(&config, &Report { run, ..report(WindowCounts::default()) })
        };
        assert!(text(true, "file").contains("published by run 17_ab\n") && text(true, "file").contains("r/o.csv"));
        assert!(text(false, "file").contains("nothing was published") && text(false, "file").contains("--restart"));
        assert!(text(false, "stdin").contains("the next run begins anew"));
    }

    #[test]
    fn of_a_pipeline_without_aggregates_nothing_is_told_of_windows() {
        let report = report(WindowCounts::default());
        let rows = rows(&Config::with_aggregates(&[]), &report);
        assert!(!rows.iter().any(|row| row.contains("late")), "{rows:#?}");
        let json = serde_json::to_value(&report).expect("it is plain data");
        assert_eq!(json.get("aggregates"), None);
    }

    #[test]
    fn rows_are_told_by_value_where_a_column_is_named_and_the_rate_is_of_what_was_read() {
        let mut config = Config::with_aggregates(&[]);
        config.silver.count_by = Some("status".to_owned());
        let mut tally = Tally::default();
        for number in 0..VALUES + 5 {
            for value in ["a\nb", &format!("v{number:02}")] {
                tally.read(0);
                tally.of(CountedVersion::new(Some("1"), true)).accepted += 1;
                tally.silver_by.count(ValueRef::Text(value));
            }
        }
        let report = of(&config, &tally);
        assert!(closing(&config, &report).starts_with("p: 50 events in 0.5 s (100/s)\n"));
        let rows = rows(&config, &report);
        let first = rows.iter().position(|row| row == "silver silver 50").expect("it is there") + 1;
        assert_eq!(rows[first..first + 2], ["status a b 25", "v00 1"], "{rows:#?}");
        assert_eq!(rows[first + VALUES..first + VALUES + 2], ["(others) 6", "quarantine quarantine 0"], "{rows:#?}");
        let json = serde_json::to_value(&report).expect("it is plain data");
        let by = &json["silver_by"];
        assert_eq!((&by["column"], &by["values"]["a\nb"], &by["others"]), (&"status".into(), &25.into(), &0.into()));
        assert_eq!((&json["bytes"], &json["events_per_second"]), (&700.into(), &100.0.into()));
    }
}
