//! The steps of `cargo xtask check`: each is run whatever became of the ones before, and all are summed up in a table.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;

/// What became of a step.
pub(crate) enum Outcome {
    /// It ran and found nothing wrong.
    Ok,
    /// It could not run here, for this reason.
    Skipped(String),
    /// It found something, or broke.
    Failed(String),
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// The steps so far.
#[derive(Default)]
pub(crate) struct Report(Vec<Step>);

impl Report {
    /// Runs a step that passes or fails.
    pub(crate) fn step(&mut self, name: &'static str, run: impl FnOnce() -> Result<()>) {
        self.step_or_skip(name, || run().map(|()| Outcome::Ok));
    }

    /// Runs a step that may turn out to be impossible on this machine.
    pub(crate) fn step_or_skip(&mut self, name: &'static str, run: impl FnOnce() -> Result<Outcome>) {
        eprintln!("\n== {name}");
        let started = Instant::now();
        let outcome = run().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        match &outcome {
            Outcome::Ok => {}
            Outcome::Skipped(why) => eprintln!("skipped: {why}"),
            Outcome::Failed(why) => eprintln!("error: {why}"),
        }
        self.0.push(Step { name, outcome, took: started.elapsed() });
    }

    /// Whether no step failed.
    pub(crate) fn passed(&self) -> bool {
        !self.0.iter().any(|step| matches!(step.outcome, Outcome::Failed(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|step| step.name.len()).max().unwrap_or(0).max("step".len());
        writeln!(f, "{:<width$}  {:<7}  seconds", "step", "result")?;
        for Step { name, outcome, took } in &self.0 {
            let (result, why) = match outcome {
                Outcome::Ok => ("ok", ""),
                Outcome::Skipped(why) => ("skipped", why.as_str()),
                Outcome::Failed(why) => ("FAILED", why.as_str()),
            };
            // A table has one line for each step; all of a long reason stands above, where the step ran.
            let why = why.lines().next().unwrap_or("");
            let line = format!("{name:<width$}  {result:<7}  {:>7.1}  {why}", took.as_secs_f64());
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_failed_step_does_not_keep_later_ones_from_running() {
        let mut report = Report::default();
        report.step("first", || bail!("broken\nin detail"));
        report.step_or_skip("second", || Ok(Outcome::Skipped("not installed".to_owned())));
        report.step("third", || Ok(()));
        assert!(!report.passed());
        let table = report.to_string();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(
            lines,
            [
                "step    result   seconds",
                "first   FAILED       0.0  broken",
                "second  skipped      0.0  not installed",
                "third   ok           0.0",
            ]
        );
    }

    #[test]
    fn a_skipped_step_is_not_a_failure() {
        let mut report = Report::default();
        report.step_or_skip("only", || Ok(Outcome::Skipped("not installed".to_owned())));
        assert!(report.passed());
    }
}
