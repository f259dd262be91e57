//! `preflight simulate`: a script of events and of moves of both clocks goes through the rules and the windows of a pipeline. No
//! source, no ledger, no table: what comes out depends on the script alone, byte for byte.
//!
//! Each line of the script is a micro-batch of its own. Dedup has no part in it.

pub mod script;

use crate::config::{Config, ConfigError};
use crate::event::{Event, Form};
use crate::pipeline::evaluate::judge_one;
use crate::pipeline::prepare;
use crate::pipeline::windows::{Aggregate, Contribution, aggregate, rows};
use crate::rules::fault::SandboxError;
use crate::rules::{Judge, RuleSet, Sandbox};
use crate::telemetry::tally::Tally;
use crate::time::{Micros, format_micros};
use crate::verdict::{Rejection, Verdict};
use crate::window::windows::Named;
use crate::window::{Element, Span, Windows};
use bytes::Bytes;
use script::{Move, Step};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// A simulation under way.
pub struct Simulation {
    judge: Judge,
    rules: RuleSet,
    aggregates: Vec<Aggregate>,
    windows: Windows,
    processing_time: Micros,
}

/// Why a step cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// It moves a clock back.
    #[error("the {clock} is at {now} already, and never goes back")]
    Back {
        /// Which clock.
        clock: &'static str,
        /// Where it is.
        now: String,
    },
    /// The sandbox failed.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

impl Simulation {
    /// Of the aggregates of a pipeline, with the rules that it has now. It begins without a watermark, at 1970-01-01.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let (sandbox, rules): (Arc<Sandbox>, RuleSet) = prepare::load(config)?;
        let (aggregates, problems) = aggregate::aggregates(config, &rules);
        if !problems.is_empty() {
            return Err(ConfigError(problems));
        }
        let specs = aggregates.iter().map(|aggregate| (Arc::clone(&aggregate.name), aggregate.spec.clone()));
        let windows = Windows::new(specs);
        let judge = Judge::new(sandbox, config.limits.clone(), config.rules.isolation);
        Ok(Self { judge, rules, aggregates, windows, processing_time: 0 })
    }

    /// Takes a step. Returns what comes of it, as JSON: events that have no row, late events, panes.
    pub fn step(&mut self, step: Step) -> Result<Vec<Json>, StepError> {
        let mut said = Vec::new();
        match step {
            Step::Event(event) => self.event(event, &mut said)?,
            Step::Move(Move::ProcessingTime(to)) => {
                self.processing_time = forward("processing time", self.processing_time, to)?;
            }
            Step::Move(Move::Watermark(to)) => {
                forward("watermark", self.windows.watermark(), to)?;
                self.fire(to, &mut said);
            }
        }
        self.fire(self.windows.watermark(), &mut said);
        Ok(said)
    }

    fn fire(&mut self, watermark: Micros, said: &mut Vec<Json>) {
        let mut panes = Vec::new();
        while self.windows.fire(watermark, self.processing_time, usize::MAX, &mut panes) {}
        said.extend(panes.iter().map(|pane| self.pane(pane)));
    }

    fn event(&mut self, event: script::Event, said: &mut Vec<Json>) -> Result<(), StepError> {
        let script::Event { payload, attributes, message_id } = event;
        let event = Event {
            payload: Bytes::from(payload),
            attributes,
            message_id,
            publish_time: self.processing_time,
            received_time: self.processing_time,
            ordering_key: None,
            delivery_attempt: None,
            form: Form::Whole,
        };
        let (_, judged) = judge_one(&mut self.judge, &self.rules, &event, &mut Tally::default())?;
        self.judge.end_batch();
        let (rule, verdict) = match judged {
            Ok((served, opinion)) => (Some(&served.rule), opinion.map_err(Rejection::from)),
            Err(rejection) => (None, Err(rejection)),
        };
        match (verdict, rule) {
            (Ok(Verdict::Accept(row)), Some(rule)) => {
                for (index, aggregate) in self.aggregates.iter().enumerate() {
                    let Some(contribution) = aggregate.contribution(index, 0, &rule.digest, &row) else { continue };
                    let Contribution { event_time, key, inputs, .. } = &contribution;
                    let element = Element { key, event_time: *event_time, inputs };
                    let missed = self.windows.add(&aggregate.name, element, self.processing_time);
                    if !missed.is_empty() {
                        said.push(late(aggregate, &event, &contribution, &missed, self.windows.watermark()));
                    }
                }
            }
            (Ok(Verdict::Ignore(reason)), _) => {
                said.push(json!({ "ignored": { "message_id": event.message_id, "reason": reason } }));
            }
            (Ok(Verdict::Reject(rejection)) | Err(rejection), _) => {
                let Rejection { stage, code, reason } = rejection;
                said.push(json!({ "rejected": {
                    "message_id": event.message_id, "stage": stage, "code": code, "reason": reason,
                } }));
            }
            (Ok(Verdict::Accept(_)), None) => unreachable!("a row comes from a rule"),
        }
        Ok(())
    }

    fn pane(&self, (name, pane): &Named) -> Json {
        let aggregate = self.aggregates.iter().find(|aggregate| aggregate.name == *name);
        let aggregate = aggregate.expect("panes are of these aggregates");
        let values = pane.values.iter().map(crate::row::Value::to_json);
        let measures: Map<String, Json> = aggregate.measures.iter().cloned().zip(values).collect();
        let mut said = json!({
            "aggregate": name.as_ref(),
            "window": { "start": format_micros(pane.window.start), "end": format_micros(pane.window.end) },
            "key": rows::key_json(aggregate, &pane.key),
            "index": pane.index,
            "timing": pane.timing.as_str(),
            "measures": measures,
        });
        if let Some(error) = rows::overflow(aggregate, pane) {
            said["error"] = error.into();
        }
        json!({ "pane": said })
    }
}

fn late(aggregate: &Aggregate, event: &Event, contribution: &Contribution, missed: &[Span], watermark: Micros) -> Json {
    let (windows, late_by_ms) = rows::missed(aggregate, missed, watermark);
    json!({ "late": {
        "aggregate": aggregate.name.as_ref(),
        "message_id": event.message_id,
        "event_time": format_micros(contribution.event_time),
        "key": rows::key_json(aggregate, &contribution.key),
        "missed_windows": windows,
        "late_by_ms": late_by_ms,
    } })
}

fn forward(clock: &'static str, now: Micros, to: Micros) -> Result<Micros, StepError> {
    if to < now {
        let now = if now == Micros::MAX { "the end".to_owned() } else { format_micros(now) };
        return Err(StepError::Back { clock, now });
    }
    Ok(to)
}
