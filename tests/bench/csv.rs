//! How fast records of a CSV file become what rules see: reading and splitting, which one thread does, and making the JSON
//! objects, which all cores do.

use crate::Effort;
use crate::report::Report;
use anyhow::{Result, ensure};
use futures::executor::block_on;
use preflight::config::{BatchConfig, Format, SourceConfig};
use preflight::running_time::RunningTime;
use preflight::source::{self, Settings};
use preflight::stop::Stop;
use preflight::time::SystemClock;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Measures and reports.
pub(crate) fn measure(effort: Effort, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("orders.csv");
    std::fs::write(&path, orders(effort.events))?;
    let (mut split, mut objects, mut both) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        let (reading, making) = read(&path, effort.events)?;
        let rate = |time: Duration| effort.events as f64 / time.as_secs_f64();
        split.push(rate(reading));
        objects.push(rate(making));
        both.push(rate(reading + making));
    }
    report.add("csv: read and split, one thread, 7 columns", "/s", split, None);
    report.add("csv: JSON objects of the records, a core", "/s", objects, None);
    report.add("csv: both, on one core", "/s", both, Some(">= 1,000,000"));
    Ok(())
}

/// Orders with seven columns, one in a hundred with quotes.
fn orders(count: usize) -> String {
    let mut text = String::from("order_id,customer_id,channel,order_ts,status,currency,promo_id\n");
    for number in 0..count {
        let channel = if number % 100 == 0 { "\"web, mobile\"" } else { "marketplace" };
        let (customer, minute, promo) = (number * 7 % 5_000, number % 60, number % 90);
        writeln!(text, "{number},{customer},{channel},2025-09-18 07:{minute:02}:52,Delivered,EUR,{promo}")
            .expect("a string grows");
    }
    text
}

/// How long it takes to read all records, and then to make an object of each. Micro-batches wait for nobody: they are
/// received when all are there.
fn read(path: &Path, count: usize) -> Result<(Duration, Duration)> {
    let settings = Settings {
        source: SourceConfig::File { path: path.to_owned(), format: Format::Csv(Arc::default()) },
        batch: BatchConfig::default(),
        max_payload: preflight::config::DEFAULT_MAX_PAYLOAD,
        is_recorded: false,
        is_replacing: false,
        clock: Arc::new(SystemClock),
        running_time: RunningTime::start(),
    };
    let mut running = block_on(source::open(settings, |_| Ok(None)))?.start(Stop::default())?;
    let (mut batches, began) = (Vec::new(), Instant::now());
    while let Some(batch) = running.batches.blocking_recv() {
        batches.push(batch?.events);
    }
    let reading = began.elapsed();
    ensure!(batches.iter().map(Vec::len).sum::<usize>() == count, "every record is there");
    let began = Instant::now();
    for batch in batches {
        let bad = batch.iter().filter(|event| event.document().is_err()).count();
        ensure!(bad == 0, "{bad} records are none");
    }
    Ok((reading, began.elapsed()))
}
