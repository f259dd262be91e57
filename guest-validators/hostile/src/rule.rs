//! The exports: from a directive to what it asks for.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::allocator::{self, Misbehaviour};
use crate::bindings::exports::preflight::rules::validation::Guest;
use crate::bindings::preflight::rules::log::{self, Level};
use crate::bindings::preflight::rules::lookup;
use crate::bindings::preflight::rules::types::{Event, Manifest, Rejection, Value, Verdict};
use crate::directive::Directive;
use crate::rows::{column, fitting, of_arity, with};
use crate::{bindings, faults, manifest, rows};

struct HostileRule;

bindings::export!(HostileRule with_types_in bindings);

/// Calls of this instance so far.
static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Guest for HostileRule {
    fn describe() -> Manifest {
        manifest::manifest()
    }

    fn validate(event: Event) -> Verdict {
        allocator::behaving(move || judge(&event))
    }
}

fn judge(event: &Event) -> Verdict {
    // Whole texts, unlike the SDK's hook: a hostile rule does not clip.
    std::panic::set_hook(Box::new(|info| {
        log::panicked(info.payload_as_str().unwrap_or("no text"));
    }));
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    let directive = Directive::parse(&event.payload);

    die(&directive, call);
    consume(&directive);
    if let Some(verdict) = refusal(&directive) {
        return verdict;
    }
    Verdict::Accept(row(&directive, event, call))
}

/// What does not return.
fn die(directive: &Directive, call: usize) {
    match (directive.name.as_str(), &directive.argument) {
        ("spin", None) => faults::spin_for_ever(),
        ("allocate", None) => faults::allocate_for_ever(),
        ("recurse", None) => drop(faults::recurse(usize::MAX)),
        ("recurse-big", _) => drop(faults::recurse_big(0)),
        ("log", None) => loop {
            log::emit(Level::Info, "again");
        },
        ("trap", _) => faults::trap(),
        ("trap-after", _) if call > directive.size() => faults::trap(),
        ("panic", _) => panic!("{}", directive.text()),
        ("panic-long", _) => panic!("{}", rows::text(directive.size())),
        ("divide", _) => drop(faults::divide()),
        ("oob", _) => drop(faults::read_out_of_bounds()),
        _ => {}
    }
}

/// What takes a given amount of something and then goes on.
fn consume(directive: &Directive) {
    match (directive.name.as_str(), &directive.argument) {
        ("spin", Some(_)) => faults::spin(directive.size()),
        ("allocate", Some(_)) => faults::allocate(directive.size()),
        ("recurse", Some(_)) => drop(faults::recurse(directive.size())),
        ("log", Some(_)) => log_lines(directive.size()),
        ("log-long", _) => log::emit(Level::Info, &rows::text(directive.size())),
        ("lookup", _) => drop(lookup::get("no_such_table", &Value::Int64(1))),
        (name, _) => {
            if let Some(how) = Misbehaviour::named(name) {
                allocator::misbehave(how);
            }
        }
    }
}

fn log_lines(lines: usize) {
    for line in 0..lines {
        log::emit(Level::Info, &format!("line {line}"));
    }
}

/// Verdicts other than a row.
fn refusal(directive: &Directive) -> Option<Verdict> {
    let reject = |stage: String, reason: String| Some(Verdict::Reject(Rejection { stage, reason }));
    match directive.name.as_str() {
        "stage" => reject(directive.text().to_owned(), "as asked for".to_owned()),
        "reason" => reject("HOSTILE".to_owned(), rows::text(directive.size())),
        "bad-utf8-reason" => reject("HOSTILE".to_owned(), rows::bad_utf8()),
        "ignore" => Some(Verdict::Ignore(rows::text(directive.size()))),
        _ => None,
    }
}

/// Rows, few of which fit the manifest.
fn row(directive: &Directive, event: &Event, call: usize) -> Vec<Value> {
    match directive.name.as_str() {
        "ok" | "spin" | "allocate" | "recurse" | "log" | "log-long" | "lookup" | "trap-after" => fitting(1),
        name if Misbehaviour::named(name).is_some() => with(column::T, Value::Text(name.to_owned())),
        "count" => fitting(i64::try_from(call).expect("an instance is not called that often")),
        "arity" => of_arity(directive.size()),
        "values" => vec![Value::Int64(1); directive.size()],
        "type" => with(column::N, Value::Text("1".to_owned())),
        "null" => with(column::N, Value::Null),
        "nan" => with(column::F, Value::Float64(f64::NAN)),
        "inf" => with(column::F, Value::Float64(f64::INFINITY)),
        "numeric" => with(column::AMOUNT, Value::Numeric(directive.text().to_owned())),
        "time" => with(column::AT, Value::Timestamp(directive.number())),
        "date" => with(column::D, Value::Date(i32::try_from(directive.number()).expect("days fit 32 bits"))),
        "text" => with(column::T, Value::Text(rows::text(directive.size()))),
        "bytes" => with(column::B, Value::Bytes(vec![0xE9; directive.size()])),
        "json" => with(column::J, Value::Json(directive.text().to_owned())),
        "bad-utf8" => with(column::T, Value::Text(rows::bad_utf8())),
        "bad-pointer" => with(column::T, Value::Text(rows::out_of_memory_bounds())),
        "echo-attributes" => {
            let lines: Vec<_> = event.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
            with(column::T, Value::Text(lines.join("\n")))
        }
        "echo-id" => with(column::T, Value::Text(event.message_id.clone())),
        "echo-publish-time" => with(column::AT, Value::Timestamp(event.publish_time)),
        other => panic!("no such directive: {other}"),
    }
}
