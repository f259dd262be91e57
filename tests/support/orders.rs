//! Lumen & Loom's orders in any number, the same for the same number, and a pipeline that measures them over windows.

use crate::pubsub::Feed;
use crate::{Pipeline, paths};
use preflight::time::{Micros, format_micros};
use std::fmt::Write as _;

/// 2024-05-01T14:00:00Z, when the first order is published: the clock, which bounds the watermark, is behind it.
pub const BEGAN: Micros = 1_714_572_000_000_000;

/// Orders that come one after the other, and happened up to a while before.
#[derive(Debug, Clone, Copy)]
pub struct Orders {
    /// How many.
    pub count: usize,
    /// Articles they are of.
    pub skus: usize,
    /// From the first to the last that is published.
    pub within: Micros,
    /// What happened at most so long before it was published.
    pub shuffled: Micros,
}

/// Spreads numbers without a random source.
fn spread(number: usize) -> usize {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17
}

fn micros(number: usize) -> Micros {
    Micros::try_from(number).expect("it is no larger than the file")
}

impl Orders {
    /// As envelopes, in the order in which they are published.
    pub fn lines(&self) -> String {
        let mut lines = String::with_capacity(self.count * 260);
        for number in 0..self.count {
            let published = BEGAN + self.within / micros(self.count) * micros(number);
            let happened = published - micros(spread(number)) % (self.shuffled + 1);
            let payload = self.payload(number, happened).replace('"', "\\\"");
            let published = format_micros(published);
            writeln!(lines, "{{\"data\":\"{payload}\",\"message_id\":\"{number}\",\"publish_time\":\"{published}\"}}")
                .expect("a string takes any text");
        }
        lines
    }

    /// One order. Every hundredth is not good, some have no region.
    fn payload(&self, number: usize, happened: Micros) -> String {
        let sku = spread(number + 7) % self.skus;
        let region = match spread(number + 3) % 5 {
            0 => String::new(),
            region => format!("\"region\":\"R{region}\","),
        };
        let quantity = if number % 100 == 99 { 0 } else { 1 + spread(number + 1) % 9 };
        let cents = spread(number + 2) % 1_000_000;
        format!(
            "{{\"event_id\":\"E{number}\",\"sku\":\"S{sku}\",{region}\"channel\":\"web\",\"quantity\":{quantity},\
             \"revenue\":\"{}.{:02}\",\"occurred_at\":\"{}\"}}",
            cents / 100,
            cents % 100,
            format_micros(happened)
        )
    }
}

/// The pipeline, without aggregates; `RULE` is replaced.
const PIPELINE: &str = r#"
name = "test"
[source.file]
path = "input.ndjson"
format = "envelope"
[rules.components]
"1" = RULE
[rules]
event_version = { attribute = "event_version", default = "1" }
[warehouse.sqlite]
path = "warehouse.db"
[silver]
table = "orders"
create = "if_needed"
[quarantine]
table = "rejected_orders"
create = "if_needed"
"#;

/// Tables of late events, and what moves the watermark.
const EVENT_TIME: &str = r#"
[watermark]
follows = "publish_time"
out_of_orderness = "2 m"
[late_data]
table = "late_orders"
create = "if_needed"
"#;

/// An aggregate per article and minute, with these measures.
macro_rules! per_minute {
    ($measures:literal) => {
        concat!(
            r#"
[aggregates.per_minute]
table = "per_minute"
create = "if_needed"
window = { fixed = "1 m" }
allowed_lateness = "4 m"
group_by = ["sku"]
measures = "#,
            $measures,
            "\n"
        )
    };
}

/// Orders per article and minute.
pub const PER_MINUTE: &str = per_minute!(
    r#"{ orders = "count", pieces = { sum = "quantity" }, revenue = { sum = "revenue" }, last = { max = "event_id" } }"#
);

/// The same with the measures of the seed alone.
pub const OF_THE_SEED: &str = per_minute!(r#"{ orders = "count", revenue = { sum = "revenue" } }"#);

/// Orders per region in the last five minutes, every minute.
pub const PER_REGION: &str = r#"
[aggregates.per_region]
table = "per_region"
create = "if_needed"
window = { sliding = "5 m", every = "1 m" }
group_by = ["region"]
measures = { orders = "count", pieces = { sum = "quantity" } }
"#;

/// Visits per article: orders that are less than five minutes apart.
pub const PER_VISIT: &str = r#"
[aggregates.per_visit]
table = "per_visit"
create = "if_needed"
window = { session = "5 m" }
group_by = ["sku"]
measures = { orders = "count" }
"#;

/// An envelope of one piece of an article for 1.00, so many seconds behind [`BEGAN`].
pub fn order(id: &str, sku: &str, happened: i64, published: i64) -> String {
    let at = |seconds: i64| format_micros(BEGAN + seconds * 1_000_000);
    let (happened, published) = (at(happened), at(published));
    let payload = serde_json::json!({
        "event_id": id, "sku": sku, "channel": "web", "quantity": 1, "revenue": "1.00", "occurred_at": happened,
    });
    let line = serde_json::json!({ "data": payload.to_string(), "message_id": id, "publish_time": published });
    format!("{line}\n")
}

/// A pipeline over orders with these aggregates, if there are any.
pub fn pipeline(aggregates: &[&str], input: impl AsRef<[u8]>) -> Pipeline {
    let rule = format!("{:?}", paths::rule("lumen-loom-orders").display().to_string());
    let mut toml = PIPELINE.replace("RULE", &rule);
    if !aggregates.is_empty() {
        toml.push_str(EVENT_TIME);
        toml.push_str(&aggregates.concat());
    }
    Pipeline::with_file(&toml, input).warm()
}

/// The same from standard input.
pub fn from_stdin(aggregates: &[&str]) -> Pipeline {
    with_source(aggregates, "[source.stdin]\nformat = \"envelope\"")
}

/// The same from a subscription. The watermark is half a second behind, and follows the clock a second after the last order.
pub fn live(feed: &Feed, aggregates: &[&str]) -> Pipeline {
    let source =
        format!("[source.pubsub]\nsubscription = {:?}\nendpoint = {:?}", feed.subscription(), feed.front().address());
    with_source(aggregates, &source).set("watermark.out_of_orderness=500 ms").set("watermark.idle=1 s")
}

fn with_source(aggregates: &[&str], source: &str) -> Pipeline {
    let pipeline = pipeline(aggregates, "");
    let file = std::fs::read_to_string(pipeline.file()).expect("the file was written");
    let changed = file.replace("[source.file]\npath = \"input.ndjson\"\nformat = \"envelope\"", source);
    assert_ne!(changed, file, "the pipeline has a file");
    std::fs::write(pipeline.file(), changed).expect("it can be written to");
    pipeline
}
