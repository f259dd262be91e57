//! One core: the rule in the sandbox, metered and not, compiled natively, and in Python.

use crate::payloads::{self, SAMPLE};
use crate::report::Report;
use crate::{Effort, python};
use anyhow::{Result, anyhow, ensure};
use bytes::Bytes;
use preflight::event::{Event, Form};
use preflight::rules::cache::CodeCache;
use preflight::rules::judge::Isolation;
use preflight::rules::metering::Metering;
use preflight::rules::{Judge, Limits, Rule, Sandbox, load};
use preflight::verdict::Verdict;
use preflight_sdk::row::Row;
use preflight_tests::paths;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A rule in a sandbox, ready to judge on this thread.
struct Bench {
    judge: Judge,
    rule: Arc<Rule>,
}

impl Bench {
    fn new(metering: Metering, isolation: Isolation, rule: &str, cache: &CodeCache) -> Result<Self> {
        let sandbox = Sandbox::with_metering(metering).map_err(|error| anyhow!("{error:#}"))?;
        let rule = load::file(&sandbox, &Limits::default(), cache, &paths::rule(rule))?;
        Ok(Self { judge: Judge::new(Arc::new(sandbox), Limits::default(), isolation), rule: Arc::new(rule) })
    }

    /// Events a second over these, each accepted.
    fn rate(&mut self, events: &[Event], time: Duration) -> Result<f64> {
        let (mut judged, started) = (0_u64, Instant::now());
        while started.elapsed() < time {
            for event in events {
                let verdict = self.judge.judge(&self.rule, event)?.verdict;
                ensure!(matches!(verdict, Ok(Verdict::Accept(_))), "the sample is not accepted: {verdict:?}");
                judged += 1;
            }
            self.judge.end_batch();
        }
        Ok(judged as f64 / started.elapsed().as_secs_f64())
    }
}

/// Measures and reports.
pub(crate) fn measure(effort: Effort, python: &str, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let cache = CodeCache::new(directory.path().join("code"));
    let payloads = directory.path().join("payloads.ndjson");
    std::fs::write(&payloads, payloads::lines(SAMPLE))?;
    let events: Vec<Event> = (0..SAMPLE).map(|number| event(payloads::booking(number))).collect();
    let smallest = vec![event("ok".to_owned()); SAMPLE];
    let native: Vec<preflight_sdk::event::Event> =
        (0..SAMPLE).map(|number| preflight_sdk::event::Event::new(payloads::booking(number))).collect();

    let mut metered = Bench::new(Metering::On, Isolation::Batch, "offvia-booking", &cache)?;
    let mut unmetered = Bench::new(Metering::Off, Isolation::Batch, "offvia-booking", &cache)?;
    let mut fresh = Bench::new(Metering::On, Isolation::Event, "offvia-booking", &cache)?;
    let mut call = Bench::new(Metering::On, Isolation::Batch, "hostile-rule", &cache)?;

    let mut rates: [Vec<f64>; 6] = Default::default();
    for _ in 0..effort.rounds {
        rates[0].push(metered.rate(&events, effort.time)?);
        rates[1].push(unmetered.rate(&events, effort.time)?);
        rates[2].push(native_rate(&native, effort.time)?);
        rates[3].push(python::events_per_second(python, &payloads, effort.time)?);
        rates[4].push(fresh.rate(&events[..500], effort.time)?);
        rates[5].push(call.rate(&smallest, effort.time)?);
    }
    let [metered, unmetered, native, python, fresh, call] = rates;
    report.add("Offvia rule in the sandbox, metered, one core", "/s", metered.clone(), Some(">= 300 k"));
    report.add("  the same component unmetered", "/s", unmetered.clone(), None);
    report.add("  the same rule compiled natively", "/s", native.clone(), None);
    report.add("  the seed's Python function in a bare loop", "/s", python.clone(), None);
    report.ratio("  metered / unmetered", &metered, &unmetered, Some(">= 0.70"));
    report.ratio("  metered / native", &metered, &native, Some(">= 0.12"));
    report.ratio("  metered / Python", &metered, &python, Some(">= 4"));
    let micros = |rates: &[f64]| rates.iter().map(|rate| 1e6 / rate).collect::<Vec<f64>>();
    report.add("a call with the smallest event and an eight-column row", "µs", micros(&call), None);
    report.add("a fresh store for every event, with its event", "µs", micros(&fresh), None);
    Ok(())
}

fn event(payload: String) -> Event {
    Event {
        payload: Bytes::from(payload),
        attributes: Vec::new(),
        message_id: "1".to_owned(),
        publish_time: 0,
        received_time: 0,
        ordering_key: None,
        delivery_attempt: None,
        form: Form::Whole,
    }
}

/// The rule as a native function, up to the values of its row.
fn native_rate(events: &[preflight_sdk::event::Event], time: Duration) -> Result<f64> {
    let (mut judged, started) = (0_u64, Instant::now());
    while started.elapsed() < time {
        for event in events {
            let row = offvia_booking::validate(black_box(event)).map_err(|_| anyhow!("the sample is not accepted"))?;
            black_box(row.into_values().map_err(|error| anyhow!("{error:?}"))?);
            judged += 1;
        }
    }
    Ok(judged as f64 / started.elapsed().as_secs_f64())
}
