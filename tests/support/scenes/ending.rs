//! The end: the feeder stops, the worker writes what it has, and the counts must add up.

use super::stage::Stage;
use super::timeline;
use anyhow::{Context, Result, ensure};
use preflight::digest::Digest;
use std::collections::BTreeMap;

/// Ends a play. Fails if an event is lost or doubled, or was judged by a component that was not active for it.
pub fn end(stage: Stage) -> Result<()> {
    let Stage { operator, warehouse, process, feeder, judged, .. } = stage;
    operator.tell("The feeder stops; the worker writes what it has read, and ends.");
    let fed = feeder.finish().context("the feeder")?;
    let report = process.finish()?;
    let counted = |key: &str| report[key].as_u64().with_context(|| format!("`{key}` in the worker's report {report}"));
    let (read, silver, quarantine, ignored) =
        (counted("events")?, counted("silver")?, counted("quarantine")?, counted("ignored")?);
    operator.tell(&format!("\n{fed} events fed = {silver} silver + {quarantine} quarantine + {ignored} ignored"));
    ensure!(read == fed, "the worker read {read} events, {fed} were fed");
    ensure!(silver + quarantine + ignored == fed, "the worker's counts do not add up to {fed}");

    let replayed = timeline::replayed_once(&warehouse)?;
    if replayed > 0 {
        operator.tell(&format!("{replayed} of the quarantine were replayed since: they are in silver, each once."));
    }
    let rows = timeline::rows(&warehouse)?;
    // No build ignores an event: all have a row.
    timeline::each_once(&rows, fed)?;
    let spans = timeline::spans(&rows);
    let rules: BTreeMap<Digest, String> =
        operator.store.history()?.into_iter().filter_map(|record| record.digest.zip(record.rule)).collect();
    operator.tell("Every event is there once. Who judged which, as the rows say:\n");
    operator.tell("version  events              component     silver  quarantine");
    for span in &spans {
        let digest: Option<Digest> = span.digest.as_deref().and_then(|text| text.parse().ok());
        let component = digest.map_or_else(|| "(nobody)".to_owned(), |digest| digest.short());
        let rule = digest.and_then(|digest| rules.get(&digest)).map_or("", String::as_str);
        let events = format!("{}–{}", span.first, span.last);
        operator.tell(&format!(
            "{:<7}  {events:<18}  {component:<12}  {:>6}  {:>10}  {rule}",
            span.version, span.silver, span.quarantine
        ));
    }
    let mut expected = judged;
    // By version; of each in the order of the story.
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    let found = spans.iter().filter_map(|span| Some((span.version.clone(), span.digest.clone()?)));
    let found: Vec<(String, String)> = found.collect();
    let expected: Vec<(String, String)> =
        expected.into_iter().map(|(version, digest)| (version, digest.to_string())).collect();
    ensure!(found == expected, "these judged: {found:?}\nand these were active: {expected:?}");
    operator.tell("\nThese are the components that were active, in the order in which they were.");
    Ok(())
}
