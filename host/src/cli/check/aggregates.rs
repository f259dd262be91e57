//! What `preflight check` says of aggregates: durations as they are written in a pipeline file.

use crate::config::units::shown;
use crate::config::{AggregateConfig, Config, Follows, MeasureConfig};
use crate::time::Micros;
use crate::window::{Accumulation, LateTrigger, Windowing};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// For a person: a line for the watermark, and one for each aggregate. Nothing without aggregates.
pub(super) fn text(config: &Config) -> String {
    if config.aggregates.is_empty() {
        return String::new();
    }
    let watermark = &config.watermark;
    let mut text = match watermark.follows {
        Follows::PublishTime => {
            format!("  the watermark is {} behind the publish times\n", shown(watermark.out_of_orderness))
        }
        Follows::EndOfInput => "  the watermark waits for the end of the source: no event is late\n".to_owned(),
    };
    for aggregate in &config.aggregates {
        text.push_str(&line(aggregate));
    }
    text
}

fn line(aggregate: &AggregateConfig) -> String {
    let AggregateConfig { name, tier, windowing, trigger, accumulation, allowed_lateness, group_by, write, .. } =
        aggregate;
    let mut parts = vec![window(*windowing)];
    if *allowed_lateness > 0 {
        parts.push(format!("{} of lateness", span(*allowed_lateness)));
    }
    if let Some(early) = trigger.early {
        parts.push(format!("early every {}", span(early)));
    }
    if let LateTrigger::Every(late) = trigger.late {
        parts.push(format!("late every {}", span(late)));
    }
    if *accumulation == Accumulation::Discarding {
        parts.push(accumulation.to_string());
    }
    if !group_by.is_empty() {
        parts.push(format!("by {}", group_by.join(" and ")));
    }
    format!("  aggregate {name}: {}, {write} to {}\n", parts.join(", "), tier.table)
}

/// For a program: the keys are those of the pipeline file.
pub(super) fn json(config: &Config) -> Vec<Value> {
    let aggregate = |aggregate: &AggregateConfig| {
        let measures: Map<String, Value> = aggregate.measures.iter().map(measure).collect();
        json!({
            "name": aggregate.name,
            "table": aggregate.tier.table,
            "view": aggregate.view(),
            "event_time": aggregate.event_time,
            "window": window_json(aggregate.windowing),
            "allowed_lateness": span(aggregate.allowed_lateness),
            "accumulation": aggregate.accumulation,
            "early": aggregate.trigger.early.map(span),
            "late": match aggregate.trigger.late {
                LateTrigger::Each => "each".to_owned(),
                LateTrigger::Every(every) => span(every),
            },
            "group_by": aggregate.group_by,
            "measures": measures,
            "write": aggregate.write.to_string(),
        })
    };
    config.aggregates.iter().map(aggregate).collect()
}

fn measure(MeasureConfig { name, function, column }: &MeasureConfig) -> (String, Value) {
    let value = match column {
        Some(column) => json!({ function.as_str(): column }),
        None => json!(function.as_str()),
    };
    (name.clone(), value)
}

fn window(windowing: Windowing) -> String {
    let shifted = |offset: Micros| if offset == 0 { String::new() } else { format!(", shifted by {}", span(offset)) };
    match windowing {
        Windowing::Fixed { size, offset } => format!("windows of {}{}", span(size), shifted(offset)),
        Windowing::Sliding { size, every, offset } => {
            format!("windows of {} every {}{}", span(size), span(every), shifted(offset))
        }
        Windowing::Session { gap } => format!("sessions with a gap of {}", span(gap)),
    }
}

fn window_json(windowing: Windowing) -> Value {
    match windowing {
        Windowing::Fixed { size, offset } => json!({ "fixed": span(size), "offset": span(offset) }),
        Windowing::Sliding { size, every, offset } => {
            json!({ "sliding": span(size), "every": span(every), "offset": span(offset) })
        }
        Windowing::Session { gap } => json!({ "session": span(gap) }),
    }
}

/// Durations of a pipeline file are whole milliseconds.
fn span(micros: Micros) -> String {
    shown(Duration::from_micros(micros.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;
    use std::fs;

    fn config() -> Config {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.toml");
        let text = r#"
            name = "p"
            source.file = { path = "e", format = "envelope" }
            rules.components.1 = "r.wasm"
            warehouse.sqlite.path = "d.db"
            silver.table = "s"
            quarantine.table = "q"
            late_data.table = "l"
            watermark.follows = "publish_time"
            [aggregates.day]
            table = "gold.day"
            window = { fixed = "1 d", offset = "22 h" }
            allowed_lateness = "4 m"
            early = "10 s"
            late = "90 s"
            accumulation = "discarding"
            group_by = ["sku", "region"]
            measures = { orders = "count", revenue = { sum = "price" } }
            [aggregates.visits]
            table = "visits"
            window.session = "30 m"
            write = "upsert"
            measures.events = "count"
        "#;
        fs::write(&file, text).unwrap();
        Config::from_layers(&Layers::load(&file, &[] as &[&str], &[]).unwrap()).unwrap()
    }

    #[test]
    fn an_aggregate_is_a_line() {
        let expected = "  the watermark is 10 s behind the publish times\n\
            \x20 aggregate day: windows of 1 d, shifted by 22 h, 4 m of lateness, early every 10 s, late every 90 s, discarding, \
            by sku and region, panes to gold.day\n\
            \x20 aggregate visits: sessions with a gap of 30 m, upsert to visits\n";
        assert_eq!(text(&config()), expected);
    }

    #[test]
    fn a_program_reads_the_keys_of_the_pipeline_file() {
        let expected = json!({
            "name": "day",
            "table": "gold.day",
            "view": "gold.day_latest",
            "event_time": null,
            "window": { "fixed": "1 d", "offset": "22 h" },
            "allowed_lateness": "4 m",
            "accumulation": "discarding",
            "early": "10 s",
            "late": "90 s",
            "group_by": ["sku", "region"],
            "measures": { "orders": "count", "revenue": { "sum": "price" } },
            "write": "panes",
        });
        let json = json(&config());
        assert_eq!(json[0], expected);
        assert_eq!(json[1]["view"], Value::Null);
    }
}
