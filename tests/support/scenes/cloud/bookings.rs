//! Many bookings, while the worker is killed.

use super::worker::Worker;
use super::{Cloud, PROJECT};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;

impl Cloud<'_> {
    /// The worker is killed while it writes, and another one goes on: every message is in silver or in quarantine, once.
    pub fn killed_worker(&mut self) -> Result<()> {
        let count = self.settings.bookings;
        self.operator
            .tell(&format!("{count} bookings are published; one in ten has no fare, one in seventeen is cut off."));
        let before = self.written()?;
        let ids = self.publisher.publish((0..count).map(booking))?;
        self.published.extend(ids);
        let some = before + u64::try_from(count)? / 10;
        self.wait("the first of them", |cloud| Ok(cloud.written()? >= some))?;
        let worker = self.worker.take().context("a worker runs")?;
        worker.kill()?;
        let written = self.written()?;
        self.operator.tell(&format!("\n$ kill -9 WORKER     # {written} rows are written"));
        self.operator.tell(
            "\nAnother one is started on its ledger. It sends first what the ledger has promised; what was never \
             acknowledged comes again, and of that it recognises what is written.",
        );
        self.worker = Some(Worker::start(self)?);
        let all = u64::try_from(self.published.len())?;
        self.wait("all of them", |cloud| Ok(cloud.written()? >= all))?;
        self.each_once()?;
        self.operator.tell(&format!("\nAll {all} messages are in silver or in quarantine, each exactly once."));
        Ok(())
    }

    /// Rows of silver and quarantine.
    fn written(&self) -> Result<u64> {
        self.count(&format!("SELECT COUNT(*) FROM ({})", message_ids()))
    }

    fn each_once(&self) -> Result<()> {
        let rows = self.query(&message_ids());
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for id in rows.iter().filter_map(|row| row["source_message_id"].as_str()) {
            *found.entry(id).or_default() += 1;
        }
        if let Some((id, times)) = found.iter().find(|(_, times)| **times > 1) {
            bail!("message {id} is there {times} times");
        }
        let missing = self.published.iter().find(|id| !found.contains_key(id.as_str()));
        ensure!(missing.is_none(), "message {missing:?} is in neither silver nor quarantine");
        ensure!(found.len() == self.published.len(), "there are rows of messages that were never published");
        Ok(())
    }
}

fn message_ids() -> String {
    format!(
        "SELECT source_message_id FROM `{PROJECT}.offvia_silver.fact_bookings`
         UNION ALL SELECT source_message_id FROM `{PROJECT}.offvia_quarantine.poisoned_events`"
    )
}

/// A booking by its number.
fn booking(number: usize) -> String {
    let fare = if number % 10 == 3 { String::new() } else { format!("\"fare\": \"{}.50\",", 50 + number % 900) };
    let booking = format!(
        "{{\"booking_id\": \"BK-{number}\", \"passenger_id\": \"PAX-{}\", \"flight_number\": \"OF-{}\", \
         \"origin\": \"JFK\", \"destination\": \"LHR\", {fare} \"event_time\": \"2026-10-07T14:10:00Z\"}}",
        number % 977,
        100 + number % 900
    );
    if number % 17 == 5 { booking[..booking.len() / 2].to_owned() } else { booking }
}
