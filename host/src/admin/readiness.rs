//! Whether the pipelines are ready, and why not: a decision on what they say of themselves.

use crate::telemetry::status::{Now, Side, State};
use serde::Serialize;

/// The answer of `/readyz`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Readiness {
    /// Whether every pipeline takes events and writes rows.
    pub ready: bool,
    /// Why not.
    pub reasons: Vec<Remark>,
    /// What needs a look, though the last known good rules serve.
    pub warnings: Vec<Remark>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Remark {
    pub pipeline: String,
    pub reason: String,
}

/// The readiness of pipelines by name.
pub(super) fn of<'a>(pipelines: impl IntoIterator<Item = (&'a str, Now)>) -> Readiness {
    let (mut reasons, mut warnings) = (Vec::new(), Vec::new());
    for (pipeline, now) in pipelines {
        let remark = |reason| Remark { pipeline: pipeline.to_owned(), reason };
        match now.state {
            State::Starting => reasons.push(remark("it has not started yet".into())),
            State::Ended => reasons.push(remark("it has ended".into())),
            State::Running | State::Stopping => {}
        }
        if let Some(failing) = now.trouble() {
            let what = match failing.side {
                Side::Writing => "rows cannot be written",
                Side::Reading => "no events come",
            };
            reasons.push(remark(format!("{what} since {}: {}", failing.since, failing.why)));
        }
        let worker = now.worker;
        if let Some(refused) = worker.refused {
            warnings.push(remark(format!(
                "revision {} is refused since {}: {}",
                refused.revision, refused.since, refused.why
            )));
        }
        if let Some(problem) = worker.store_problem {
            warnings.push(remark(format!("the rule store cannot be read: {problem}")));
        }
        for pin in worker.pins {
            let what = format!("event version {}: this worker alone took {} out of service: ", pin.events, pin.held);
            warnings.push(remark(what + &pin.why));
        }
    }
    Readiness { ready: reasons.is_empty(), reasons, warnings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::releases::worker::{Pin, RefusedRevision, Worker};
    use crate::telemetry::status::Failing;

    fn now(state: State) -> Now {
        Now { state, ..Now::default() }
    }

    #[test]
    fn a_pipeline_that_reads_or_finishes_what_it_read_is_ready() {
        for state in [State::Running, State::Stopping] {
            assert_eq!(of([("p", now(state))]), Readiness { ready: true, reasons: vec![], warnings: vec![] });
        }
    }

    #[test]
    fn one_that_has_not_started_has_ended_or_cannot_write_is_not() {
        let failing = |side, why: &str| {
            let failing = Failing { side, since: "T".into(), why: why.into() };
            Now { failing: [(0, failing)].into(), ..now(State::Running) }
        };
        let readiness = of([
            ("a", now(State::Starting)),
            ("b", now(State::Ended)),
            ("c", failing(Side::Writing, "silver: locked")),
            ("d", failing(Side::Reading, "no network")),
        ]);
        let reasons: Vec<(&str, &str)> =
            readiness.reasons.iter().map(|remark| (remark.pipeline.as_str(), remark.reason.as_str())).collect();
        let expected = [
            ("a", "it has not started yet"),
            ("b", "it has ended"),
            ("c", "rows cannot be written since T: silver: locked"),
            ("d", "no events come since T: no network"),
        ];
        assert_eq!((readiness.ready, reasons.as_slice()), (false, expected.as_slice()));
    }

    #[test]
    fn while_the_last_good_rules_serve_it_is_ready_with_warnings() {
        let worker = Worker {
            refused: Some(RefusedRevision { revision: 8, why: "fixtures fail".into(), since: "T".into() }),
            store_problem: Some("no such directory".into()),
            pins: vec![Pin {
                events: "2".into(),
                held: Digest::of(b"x"),
                since: String::new(),
                why: "it faults".into(),
            }],
            ..Worker::default()
        };
        let readiness = of([("p", Now { worker, ..now(State::Running) })]);
        assert!(readiness.ready);
        let warnings: Vec<&str> = readiness.warnings.iter().map(|remark| remark.reason.as_str()).collect();
        assert_eq!(warnings[0], "revision 8 is refused since T: fixtures fail");
        assert_eq!(warnings[1], "the rule store cannot be read: no such directory");
        assert!(warnings[2].starts_with("event version 2: this worker alone took sha256:"), "{warnings:?}");
    }
}
