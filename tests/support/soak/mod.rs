//! A soak: events are published, some twice, while workers are killed at random and their warehouse fails at random. In the
//! end every event is in exactly one place exactly once.
//!
//! Pub/Sub is Google's emulator, BigQuery the strict fake, which keeps every row that got in.

mod events;
mod publisher;
mod report;
mod trouble;

pub use report::Report;

use crate::bigquery::Fake;
use crate::bigquery::fake::Content;
use crate::bigquery::offvia::{BRONZE, QUARANTINE, SILVER};
use crate::pubsub::Feed;
use crate::{Pipeline, Running};
use anyhow::{Context, Result, bail, ensure};
use events::{Place, number_in, place};
use fastrand::Rng;
use publisher::{Published, publish};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tonic::Code;
use trouble::Trouble;

/// A last worker that writes nothing for so long has nothing left to write. The lease of a message that a killed worker held
/// runs out long before.
const QUIET: Duration = Duration::from_secs(90);
/// Longer than a last worker takes for all that is left.
const DRAINS: Duration = Duration::from_mins(10);

/// Soaks for so long. The same seed does the same to the workers, though not at the same moments.
pub fn run(duration: Duration, seed: u64, tell: fn(&str)) -> Result<Report> {
    let begun = Instant::now();
    let (fake, feed) = (Fake::start(), Feed::new());
    let refused = |row: &serde_json::Map<String, serde_json::Value>| {
        let number = number_in(row["booking_id"].as_str()?)?;
        (place(number) == Place::Refused).then(|| format!("booking {number} is not welcome"))
    };
    fake.refuse_rows(SILVER, Arc::new(refused));
    let mut report = Report::default();
    let mut rng = Rng::with_seed(seed);
    let (stop, publishing) = (AtomicBool::new(false), rng.fork());
    let published = thread::scope(|scope| {
        let publisher = scope.spawn(|| publish(&feed, &fake, &stop, publishing));
        let mut trouble = Trouble { fake: &fake, pipeline: pipeline(&feed, &fake), rng, report: &mut report };
        let mut troubled = Ok(());
        while troubled.is_ok() && begun.elapsed() < duration {
            troubled = trouble.round();
            let Report { workers, faults, .. } = *trouble.report;
            tell(&format!(
                "{:4.0} s: {} rows in silver, {} in quarantine; {workers} workers, {faults} faults",
                begun.elapsed().as_secs_f64(),
                fake.count(SILVER),
                fake.count(QUARANTINE)
            ));
        }
        stop.store(true, Ordering::Relaxed);
        let sent = publisher.join().map_err(|_| anyhow::anyhow!("the publisher failed"))?;
        troubled?;
        // The last one is left alone.
        trouble.report.faults += fake.stop_random();
        trouble.report.workers += 1;
        finish(&fake, &trouble.pipeline, &sent)?;
        anyhow::Ok(sent)
    })?;
    fake.content(|content| check(&content, &published, &mut report))?;
    report.took = begun.elapsed();
    Ok(report)
}

fn pipeline(feed: &Feed, fake: &Fake) -> Pipeline {
    fake.warehouse_of(feed.pipeline())
        .set("batch.max_events=200")
        .set("warehouse.bigquery.commit_interval=50 ms")
        .set("warehouse.bigquery.request_timeout=2 s")
        .set("run.drain_timeout=20 s")
        .set("dedup.by={ attribute = \"event_id\" }")
}

/// A worker that nothing happens to takes all that is left, and ends when it is asked to.
fn finish(fake: &Fake, pipeline: &Pipeline, published: &Published) -> Result<()> {
    let (mut run, _stdin) = Running::start_for(pipeline, DRAINS);
    loop {
        let there = |content: &Content<'_>| [BRONZE, SILVER, QUARANTINE].map(|table| content.count(table));
        let before = fake.content(|content| there(&content));
        if before[0] >= published.messages.len() && before[1] + before[2] >= published.events {
            break;
        }
        if run.has_ended() {
            bail!("the last worker ended: {:?}", run.finish());
        }
        if !fake.wait_for(QUIET, |content| there(&content) != before) {
            // What is missing is told below.
            break;
        }
    }
    let ended = run.stop();
    ensure!(ended.code == Some(0), "the last worker failed: {ended:?}");
    Ok(())
}

/// Every event is where it must be, once.
fn check(content: &Content<'_>, published: &Published, report: &mut Report) -> Result<()> {
    let mut times = vec![[0_u32; 2]; published.events];
    for (index, (table, column)) in [(SILVER, "booking_id"), (QUARANTINE, "raw_payload")].into_iter().enumerate() {
        for row in content.rows(table) {
            let number = row.get(column).and_then(|value| number_in(value.as_str()?));
            let number = number.with_context(|| format!("{table} has a row of no event: {row:?}"))?;
            let of_event =
                times.get_mut(number).with_context(|| format!("{table} has an event that nobody sent: {row:?}"))?;
            of_event[index] += 1;
        }
    }
    let mut wrong = Vec::new();
    for (number, times) in times.into_iter().enumerate() {
        let expected = match place(number) {
            Place::Silver => [1, 0],
            Place::Quarantine | Place::Refused => [0, 1],
        };
        report.refused += usize::from(place(number) == Place::Refused);
        if times != expected {
            wrong.push(format!("event {number} is {times:?} times in silver and quarantine, and not {expected:?}"));
        }
    }
    let mut raw = content.places(BRONZE, "message_id");
    for id in &published.messages {
        match raw.remove(id).map_or(0, |places| places.len()) {
            1 => {}
            times => wrong.push(format!("message {id} is {times} times in bronze")),
        }
    }
    wrong.extend(raw.keys().map(|id| format!("message {id} in bronze was never published")));
    ensure!(wrong.is_empty(), "{} of the events are wrong:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    let appends: Vec<_> =
        [BRONZE, SILVER, QUARANTINE].map(|table| content.appends(table)).into_iter().flatten().collect();
    report.appends = appends.len();
    report.repeats = appends.iter().filter(|append| append.answer == Some(Code::AlreadyExists)).count();
    report.events = published.events;
    report.messages = published.messages.len();
    (report.silver, report.quarantine) = (content.count(SILVER), content.count(QUARANTINE));
    Ok(())
}
