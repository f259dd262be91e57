//! What a soak does to a worker and to its warehouse.

use super::report::Report;
use crate::bigquery::Fake;
use crate::bigquery::fake::{Call, Ending, Fault, Refusal};
use crate::bigquery::offvia::{BRONZE, QUARANTINE, SILVER};
use crate::{Ended, Pipeline, Running};
use anyhow::{Result, bail};
use fastrand::Rng;
use preflight::failpoint;
use rustix::process::Signal;
use std::time::Duration;
use tonic::Code;

const TABLES: [&str; 3] = [BRONZE, SILVER, QUARANTINE];

/// How many of the calls fail.
const RATE: f64 = 0.04;

/// Longer than a worker lives.
const LIVES: Duration = Duration::from_hours(2);

/// What a worker may say when it ends by itself: each is what the round did to it.
const REASONS: [&str; 2] = ["is finalized or gone", "was not finished within"];

/// Rounds of a worker: it is started, something is done to it, it ends.
pub(super) struct Trouble<'a> {
    pub(super) fake: &'a Fake,
    pub(super) pipeline: Pipeline,
    pub(super) rng: Rng,
    pub(super) report: &'a mut Report,
}

impl Trouble<'_> {
    /// One round.
    pub(super) fn round(&mut self) -> Result<()> {
        self.report.faults += self.fake.stop_random();
        self.fake.at_random(self.rng.u64(..), RATE, &[Call::Append, Call::Create, Call::Finalize], faults());
        self.report.workers += 1;
        match self.rng.u8(..100) {
            0..20 => self.at_a_failpoint(),
            20..35 => self.stopped(),
            35..50 => self.through_an_outage(),
            50..58 => self.replaced(),
            58..66 => self.killed(true),
            _ => self.killed(false),
        }
    }

    fn start(&self) -> Running {
        Running::start_for(&self.pipeline, LIVES).0
    }

    /// Lets a worker work for a while. Says whether it is still there.
    fn work(&mut self, run: &mut Running) -> bool {
        let time = Duration::from_millis(self.rng.u64(300..3_000));
        self.fake.wait_for(time, |_| false);
        !run.has_ended()
    }

    fn killed(&mut self, forget_streams: bool) -> Result<()> {
        let mut run = self.start();
        if !self.work(&mut run) {
            return self.ended(&run.finish());
        }
        run.signal(Signal::KILL);
        run.finish();
        self.report.kills += 1;
        if forget_streams {
            for table in TABLES {
                self.fake.expire_streams(table);
            }
            self.report.forgotten_streams += 1;
        }
        Ok(())
    }

    fn at_a_failpoint(&mut self) -> Result<()> {
        let point = *self.rng.choice(&failpoint::ALL).expect("there are points");
        self.pipeline.environment.push((failpoint::VARIABLE.into(), format!("{point}={}", self.rng.u32(1..=5))));
        let mut run = self.start();
        self.pipeline.environment.pop();
        if self.work(&mut run) {
            // It did not come to the point.
            run.signal(Signal::KILL);
        }
        let ended = run.finish();
        if ended.was_killed() {
            self.report.kills += 1;
            return Ok(());
        }
        self.ended(&ended)
    }

    fn stopped(&mut self) -> Result<()> {
        let mut run = self.start();
        self.work(&mut run);
        if run.has_ended() {
            return self.ended(&run.finish());
        }
        let ended = run.stop();
        if ended.code == Some(0) {
            self.report.stops += 1;
            return Ok(());
        }
        // It was asked before it could be: while it started.
        if ended.signal == Some(Signal::TERM.as_raw()) { Ok(()) } else { self.ended(&ended) }
    }

    fn through_an_outage(&mut self) -> Result<()> {
        let mut run = self.start();
        self.work(&mut run);
        let codes = [Code::ResourceExhausted, Code::Unavailable, Code::PermissionDenied, Code::Unauthenticated];
        let fault = Fault::answer(*self.rng.choice(&codes).expect("there are codes"));
        let table = *self.rng.choice(&TABLES).expect("there are tables");
        let rule = self.fake.when(Call::Append).table(table).always(fault);
        self.work(&mut run);
        self.fake.lift(rule);
        self.report.outages += 1;
        if !self.work(&mut run) {
            return self.ended(&run.finish());
        }
        run.signal(Signal::KILL);
        run.finish();
        self.report.kills += 1;
        Ok(())
    }

    /// Another worker closes its streams.
    fn replaced(&mut self) -> Result<()> {
        let mut run = self.start();
        self.work(&mut run);
        let table = *self.rng.choice(&TABLES).expect("there are tables");
        let streams = self.fake.content(|content| content.streams(table));
        for (stream, ..) in streams.iter().filter(|(_, _, finalized)| !finalized) {
            self.fake.someone_finalizes(stream);
        }
        self.report.closed_streams += 1;
        if !self.work(&mut run) {
            return self.ended(&run.finish());
        }
        run.signal(Signal::KILL);
        run.finish();
        self.report.kills += 1;
        Ok(())
    }

    /// Takes note of a worker that ended by itself.
    fn ended(&mut self, ended: &Ended) -> Result<()> {
        let known = ended.code == Some(1) && REASONS.iter().any(|reason| ended.stderr.contains(reason));
        if !known || ended.stderr.contains("panicked") {
            bail!("a worker ended as it should not: {ended:?}");
        }
        self.report.ended += 1;
        Ok(())
    }
}

/// What may happen to any call: answers lost and late, before and after the rows are written.
fn faults() -> Vec<Fault> {
    let errors = [Code::Unavailable, Code::Aborted, Code::Internal, Code::DeadlineExceeded, Code::Cancelled];
    let refusals = errors.map(|code| Refusal::new(code, "at random"));
    let endings = [Ending::Reset, Ending::Close, Ending::Hang].into_iter().chain(refusals.clone().map(Ending::Error));
    let mut faults = Vec::new();
    for ending in endings {
        faults.extend([Fault::Before(ending.clone()), Fault::After(ending)]);
    }
    for refusal in refusals {
        faults.extend([Fault::Answer(refusal.clone()), Fault::AnswerAfter(refusal)]);
    }
    faults.extend([Fault::Behind(Ending::Reset), Fault::Behind(Ending::Close)]);
    faults
}
