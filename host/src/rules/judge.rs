//! One event, one call: the part of the sandbox that runs hot.

use super::bindings::Validator;
use super::bindings::preflight::rules::types::Event as GuestEvent;
use super::convert;
use super::engine::Sandbox;
use super::fault::{self, SandboxError};
use super::limits::Limits;
use super::load::Rule;
use super::store::{self, Guest};
use crate::event::Event;
use crate::verdict::{Fault, Verdict};
use serde::Serialize;
use std::sync::Arc;
use wasmtime::Store;

/// How long an instance of a rule lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Until the end of the micro-batch, or `events_per_instance` events.
    Batch,
    /// One event: slower by a factor of ten, for rules that are not trusted to forget.
    Event,
}

/// Judges events on one thread. It keeps an instance per rule until [`Judge::end_batch`].
pub struct Judge {
    sandbox: Arc<Sandbox>,
    limits: Limits,
    isolation: Isolation,
    instances: Vec<Instance>,
}

/// What judging an event came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The verdict, or the fault that stands.
    pub verdict: Result<Verdict, Fault>,
    /// A first fault that did not stand: alone in a fresh store the event was judged without one.
    pub recovered: Option<Fault>,
}

struct Instance {
    rule: Arc<Rule>,
    store: Store<Guest>,
    validator: Validator,
    judged: u32,
    /// Whether it was made for one event.
    alone: bool,
}

impl Judge {
    /// A judge for one thread.
    pub fn new(sandbox: Arc<Sandbox>, limits: Limits, isolation: Isolation) -> Self {
        Self { sandbox, limits, isolation, instances: Vec::new() }
    }

    /// Judges an event. A fault is judged once more, alone, in a fresh store with a little more fuel and memory
    /// ([`Limits::SLACK`]), and only that result counts: so a verdict depends neither on the event's neighbours nor on
    /// how events were batched.
    pub fn judge(&mut self, rule: &Arc<Rule>, event: &Event) -> Result<Judged, SandboxError> {
        match self.reusing(rule, event)? {
            Ok(verdict) => Ok(Judged { verdict: Ok(verdict), recovered: None }),
            Err(first) => {
                let verdict = self.alone(rule, event)?;
                let recovered = verdict.is_ok().then_some(first);
                Ok(Judged { verdict, recovered })
            }
        }
    }

    /// Drops every instance: nothing a guest keeps lives longer than a micro-batch.
    pub fn end_batch(&mut self) {
        self.instances.clear();
    }

    fn reusing(&mut self, rule: &Arc<Rule>, event: &Event) -> Result<Result<Verdict, Fault>, SandboxError> {
        if self.isolation == Isolation::Event {
            return self.alone(rule, event);
        }
        let index = match self.instances.iter().position(|i| Arc::ptr_eq(&i.rule, rule)) {
            Some(index) if self.instances[index].judged < self.limits.events_per_instance => index,
            found => {
                if let Some(index) = found {
                    self.instances.swap_remove(index);
                }
                match self.instantiate(rule, false)? {
                    Ok(instance) => self.instances.push(instance),
                    Err(fault) => return Ok(Err(fault)),
                }
                self.instances.len() - 1
            }
        };
        let result = self.instances[index].judge(&self.sandbox, &self.limits, event)?;
        if result.is_err() {
            self.instances.swap_remove(index);
        }
        Ok(result)
    }

    fn alone(&self, rule: &Arc<Rule>, event: &Event) -> Result<Result<Verdict, Fault>, SandboxError> {
        match self.instantiate(rule, true)? {
            Ok(mut instance) => instance.judge(&self.sandbox, &self.limits, event),
            Err(fault) => Ok(Err(fault)),
        }
    }

    fn instantiate(&self, rule: &Arc<Rule>, alone: bool) -> Result<Result<Instance, Fault>, SandboxError> {
        let mut store = store::new(self.sandbox.engine(), self.sandbox.metering(), &self.limits, &rule.label, alone)?;
        match rule.pre.instantiate(&mut store) {
            Ok(validator) => Ok(Ok(Instance { rule: Arc::clone(rule), store, validator, judged: 0, alone })),
            Err(error) => fault::classify(&error, store.data_mut()).map(Err),
        }
    }
}

impl Instance {
    fn judge(
        &mut self,
        sandbox: &Sandbox,
        limits: &Limits,
        event: &Event,
    ) -> Result<Result<Verdict, Fault>, SandboxError> {
        // What has no document is not judged; if it were, its rule would say what is wrong with the payload.
        let document = event.document().unwrap_or(&event.payload);
        let fuel = limits.fuel_for(document.len());
        let fuel = if self.alone { fuel.saturating_add(fuel / Limits::SLACK as u64) } else { fuel };
        store::arm(&mut self.store, sandbox.metering(), fuel, limits.wall_clock)?;
        self.judged += 1;
        let wanted = &self.rule.manifest.attributes;
        let attributes: Vec<(&str, &str)> =
            wanted.iter().filter_map(|name| Some((name.as_str(), event.attribute(name)?))).collect();
        let guest_event = GuestEvent {
            payload: document,
            attributes: &attributes,
            message_id: &event.message_id,
            publish_time: event.publish_time,
        };
        let validation = self.validator.preflight_rules_validation();
        match validation.call_validate(&mut self.store, guest_event) {
            Ok(verdict) => Ok(convert::verdict(&self.rule.manifest, verdict)),
            Err(error) => fault::classify(&error, self.store.data_mut()).map(Err),
        }
    }
}
