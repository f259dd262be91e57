//! The scenes after the first. Each begins with a good rule in service for version 1, and ends so.

use super::stage::{Repair, Stage};
use anyhow::{Context, Result, ensure};
use preflight::digest::Digest;
use preflight::releases::Record;
use preflight::releases::worker::Comparison;
use serde_json::Value;
use std::time::Instant;

/// The next version is staged, runs as a shadow, and is promoted; its guard passes.
pub fn next_version(stage: &mut Stage) -> Result<()> {
    stage.operator.tell(
        "0.2.0 writes airports in upper case, however they came, and rejects a flight back to where it starts. First it \
         runs beside the rule that serves: it sees the same events and writes nothing.",
    );
    let next = stage.operator.stage("offvia-booking-upper-case", "airports in upper case")?;
    stage.operator.run(&["shadow", &next.short(), "--events", "1", "--why", "what would change?"], 0)?;
    let pairs = stage.settings.pairs;
    let both = ["column origin_airport", "accept→reject BUSINESS_RULE_VALIDATION"];
    let shown = stage.wait("what the shadow differs in", |stage| {
        let comparison = comparison(stage, "shadow", &next)?;
        Ok(comparison.filter(|c| c.pairs >= pairs && both.iter().all(|kind| c.differences.contains_key(*kind))))
    })?;
    stage.operator.tell(&format!("\n`preflight rules status` shows what it would change:\n{}", differences(&shown)));
    let kept = stage.wait("a row of shadow_differences", |stage| {
        let kept = stage.warehouse.count("SELECT count(*) FROM shadow_differences WHERE comparison = 'shadow'", [])?;
        Ok((kept > 0).then_some(kept))
    })?;
    stage.operator.tell(&format!(
        "The table shadow_differences has both verdicts on {kept} of these events.\n\nThat is what was meant. It is \
         promoted, and for a while the old rule runs beside the new one."
    ));
    stage.promote(next, "1", "as meant")?;
    let passed = stage.wait("the end of the guard's time", |stage| {
        let guard = comparison(stage, "guard", &next)?;
        Ok(guard.filter(|guard| guard.guard.as_deref() == Some("passed")))
    })?;
    stage.operator.tell(&format!(
        "\nThe guard has passed: of {} events that both judged, {} are no longer accepted.",
        passed.pairs,
        passed.differences.get(both[1]).unwrap_or(&0)
    ));
    Ok(())
}

/// A broken build does not hold to its fixtures: it cannot be staged, and where it gets past that, no worker takes it.
pub fn refused_by_fixtures(stage: &mut Stage) -> Result<()> {
    let operator = &stage.operator;
    operator.tell("0.2.1 rounds fares to cents. A fixture has a fare with nine decimals, so it is not even staged.");
    let broken = operator.stage_in_vain("offvia-booking-cents", "faster")?;
    operator.tell(
        "\nA store is files, and a copy asks nobody: now it lies there as if it were staged. The worker holds it to its \
         fixtures again.",
    );
    operator.copy_past_stage("offvia-booking-cents")?;
    let active = stage.active()?;
    let ended = stage.operator.run(&["promote", &broken.short(), "--events", "1", "--why", "faster"], 1)?;
    ensure!(ended.stdout.contains("does not hold to 1 of its"), "the worker says why: {}", ended.stdout);
    let worker = stage.worker()?.context("the worker says what it is")?;
    let serves = worker.event_versions.get("1").and_then(|serving| serving.roles.get("active"));
    ensure!(serves.is_some_and(|rule| rule.digest == active), "what serves goes on: {serves:?}");
    stage.operator.tell("\nWhat served goes on serving. The operator takes the change back.");
    stage.operator.run(&["rollback", "--events", "1", "--why", "not a build to serve"], 0)?;
    Ok(())
}

/// A rule that rejects too much holds to its fixtures and is promoted; its guard rolls it back.
pub fn rejects_too_much(stage: &mut Stage) -> Result<()> {
    stage.operator.tell(
        "0.3.0 wants three digits of a flight number. No fixture has four; of the bookings every eighth has. It goes \
         live, and the old rule sees the same events.",
    );
    let strict = stage.operator.stage("offvia-booking-three-digits", "tidy flight numbers")?;
    rolled_back(stage, strict, "tidy flight numbers", "are no longer accepted")?;
    let good = "error_reason LIKE 'Invalid flight_number%'";
    let lost =
        stage.harmed(["--digest".to_owned(), strict.to_string()], format!("rule_digest = '{strict}' AND {good}"))?;
    ensure!(lost > 0, "it rejected what it was rolled back for");
    stage.operator.tell(&format!("\n{lost} good bookings are in quarantine because of it. It is held:"));
    stage.operator.run(&["promote", &strict.short(), "--events", "1"], 2)?;
    Ok(())
}

/// A rule that panics at some events holds to its fixtures and is promoted; its guard rolls it back.
pub fn faults(stage: &mut Stage) -> Result<()> {
    stage.operator.tell("0.3.1 panics at a currency that it does not know, and no fixture has Swiss francs.");
    let panicking = stage.operator.stage("offvia-booking-currencies", "known currencies only")?;
    rolled_back(stage, panicking, "known currencies only", "events fault that did not before")?;
    let good = format!("rule_digest = '{panicking}' AND error_stage = 'RULE_FAULT'");
    let faults = stage.harmed(["--digest".to_owned(), panicking.to_string()], good)?;
    ensure!(faults > 0, "each event that it panicked at is in quarantine");
    stage.operator.tell(&format!("\n{faults} events are in quarantine, stage RULE_FAULT; the worker never stopped."));
    Ok(())
}

/// An event version nobody serves goes to quarantine until a rule for it is promoted.
pub fn unknown_version(stage: &mut Stage) -> Result<()> {
    stage.operator.tell("A producer begins to send version 2 of the event, and nobody has told us.");
    stage.feeder.send_version_2();
    let unserved = "SELECT count(*) FROM poisoned_events WHERE error_stage = 'ROUTING' AND error_code = 'no_rule'";
    let waiting = stage.wait("an event of version 2", |stage| {
        let count = stage.warehouse.count(unserved, [])?;
        Ok((count > 0).then_some(count))
    })?;
    stage.operator.tell(&format!(
        "{waiting} of them are in quarantine by now, stage ROUTING. There is a rule for them; silver has its column."
    ));
    let rule = stage.operator.stage("offvia-booking-v2", "version 2 of the event")?;
    stage.promote(rule, "2", "version 2 of the event")?;
    // Version 2 has bad bookings too: those that are cut off, and those with a negative fare.
    let good = "error_stage = 'ROUTING' AND raw_payload NOT LIKE '%cut off' AND raw_payload NOT LIKE '%\"-%'";
    stage.harmed(["--stage".to_owned(), "ROUTING".to_owned()], good.to_owned())?;
    let unserved = stage.warehouse.count(unserved, [])?;
    stage.operator.tell(&format!("\nFrom then on they are rows of silver; {unserved} came before."));
    Ok(())
}

/// What was wrongly rejected is judged again, while the worker runs: each event reaches silver once.
pub fn repair(stage: &mut Stage) -> Result<()> {
    stage.operator.tell(
        "Rejected events keep their original bytes. They are judged again by what serves now; the worker does it beside \
         its other work, and what passes leaves quarantine.",
    );
    let pipeline = stage.settings.pipeline();
    let mut told_again = false;
    for Repair { chosen, good } in std::mem::take(&mut stage.repairs) {
        let wrong = stage.warehouse.count(&format!("SELECT count(*) FROM poisoned_events WHERE {good}"), [])?;
        let words = pipeline.iter().chain(&chosen).map(String::as_str);
        let arguments: Vec<&str> = ["quarantine", "replay"].into_iter().chain(words).collect();
        stage.operator.preflight(&arguments, 0)?;
        if !std::mem::replace(&mut told_again, true) {
            stage.operator.tell("\nAsked for twice, nothing is left to do:");
            stage.operator.preflight(&arguments, 0)?;
        }
        let resolved = format!("SELECT count(*) FROM poisoned_events WHERE {good} AND resolved_at IS NOT NULL");
        let resolved = stage.warehouse.count(&resolved, [])?;
        ensure!(resolved == wrong, "{wrong} rows were wrongly rejected ({good}), {resolved} are resolved");
    }
    Ok(())
}

/// Promotes a component that its guard must roll back, for a reason with these words.
fn rolled_back(stage: &mut Stage, digest: Digest, why: &str, reason: &str) -> Result<()> {
    let (before, newest) = (stage.active()?, stage.newest_row()?);
    let (begun, fed) = (Instant::now(), stage.feeder.fed());
    stage.operator.run(&["promote", &digest.short(), "--events", "1", "--wait", "0 s", "--why", why], 0)?;
    let held = stage.wait("the guard", |stage| Ok(stage.operator.store.releases()?.held.get(&digest).cloned()))?;
    let (took, fed) = (begun.elapsed(), stage.feeder.fed() - fed);
    ensure!(held.why.contains(reason), "the guard's figures: {}", held.why);
    let newest = stage.judges("1", digest, newest)?;
    stage.judges("1", before, newest)?;
    let record = stage.operator.store.history()?.pop().context("a guard's rollback is in the history")?;
    stage.operator.tell(&format!("\n{}", told(&record)));
    stage.operator.tell(&format!("  ({:.2} s and {fed} events after the command)", took.as_secs_f64()));
    let logged = stage.process.logged()?;
    let hint = logged.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|line| {
        let message = line["message"].as_str()?;
        let repair = message.split_once("Repair what it did with: ")?.1;
        repair.contains(&digest.to_string()).then(|| repair.to_owned())
    });
    let hint = hint.context("the worker logs how to repair what the rule did")?;
    stage.operator.tell(&format!("The worker's log says how what it did is repaired:\n  {hint}"));
    Ok(())
}

fn told(record: &Record) -> String {
    let Record { revision, by, action, why, .. } = record;
    format!("`preflight rules history` has it: revision {revision}, {action} by {by}: {why}")
}

/// What the worker has found by comparing a new component with the old one.
fn comparison(stage: &Stage, kind: &str, new: &Digest) -> Result<Option<Comparison>> {
    let comparisons = stage.worker()?.map(|worker| worker.comparisons).unwrap_or_default();
    Ok(comparisons.into_iter().rfind(|comparison| comparison.kind == kind && comparison.new == *new))
}

/// Every kind of difference with its count and one event.
fn differences(comparison: &Comparison) -> String {
    let Comparison { pairs, skipped, differences, samples, .. } = comparison;
    let mut text = format!("  {pairs} events judged by both, {skipped} skipped under load");
    for (kind, count) in differences {
        text.push_str(&format!("\n  {kind}: {count}"));
        if let Some(sample) = samples.iter().find(|sample| sample.kind == *kind) {
            text.push_str(&format!(
                "\n    such as event {}: {} | {}",
                sample.message_id,
                short(&sample.old),
                sample.new
            ));
        }
    }
    text
}

fn short(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
