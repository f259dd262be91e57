//! The hostile component and a judge for it, for tests that call the sandbox directly.

use crate::{events, paths};
use preflight::event::Event;
use preflight::rules::cache::CodeCache;
use preflight::rules::judge::{Isolation, Judged};
use preflight::rules::{Judge, Limits, Rule, Sandbox, load};
use preflight::verdict::{Fault, Verdict};
use std::sync::{Arc, OnceLock};

/// The sandbox that the tests of a process share, with `hostile-rule` in it.
pub fn hostile() -> &'static (Arc<Sandbox>, Arc<Rule>) {
    static HOSTILE: OnceLock<(Arc<Sandbox>, Arc<Rule>)> = OnceLock::new();
    HOSTILE.get_or_init(|| {
        let sandbox = Sandbox::new().expect("the sandbox starts on this machine");
        let cache = CodeCache::new(paths::scratch().join("code"));
        let rule = load::file(&sandbox, &Limits::default(), &cache, &paths::rule("hostile-rule"));
        (Arc::new(sandbox), Arc::new(rule.expect("the hostile rule behaves when it is loaded")))
    })
}

/// A judge with `hostile-rule`. A payload says what the rule does: see its README.
pub struct Guest(Judge);

impl Guest {
    /// With these limits.
    pub fn new(limits: Limits) -> Self {
        Self(Judge::new(Arc::clone(&hostile().0), limits, Isolation::Batch))
    }

    /// With a fresh instance for every event.
    pub fn isolated() -> Self {
        Self(Judge::new(Arc::clone(&hostile().0), Limits::default(), Isolation::Event))
    }

    /// Judges an event.
    pub fn judge_event(&mut self, event: &Event) -> Judged {
        self.0.judge(&hostile().1, event).expect("the sandbox itself does not fail")
    }

    /// Judges a payload.
    pub fn judge(&mut self, payload: &str) -> Judged {
        self.judge_event(&events::event("m", payload))
    }

    /// The verdict that a payload must get.
    #[track_caller]
    pub fn verdict(&mut self, payload: &str) -> Verdict {
        self.judge(payload).verdict.unwrap_or_else(|fault| panic!("{payload:.40}: {fault:?}"))
    }

    /// The fault that a payload must come to. The next event must be accepted: the worker is alive.
    #[track_caller]
    pub fn fault(&mut self, payload: &str) -> Fault {
        let fault = match self.judge(payload).verdict {
            Err(fault) => fault,
            Ok(verdict) => panic!("{payload:.40}: {verdict:?}"),
        };
        assert_eq!(self.number("ok"), 1, "after {payload:.40}");
        fault
    }

    /// Asserts that a payload is accepted.
    #[track_caller]
    pub fn accepts(&mut self, payload: &str) {
        let verdict = self.verdict(payload);
        assert!(matches!(verdict, Verdict::Accept(_)), "{payload:.40}: {verdict:?}");
    }

    /// The number in the first column of the row that a payload must get.
    #[track_caller]
    pub fn number(&mut self, payload: &str) -> i64 {
        match self.verdict(payload) {
            Verdict::Accept(row) => match row[0] {
                preflight::row::Value::Int64(number) => number,
                ref other => panic!("{payload:.40}: {other:?}"),
            },
            other => panic!("{payload:.40}: {other:?}"),
        }
    }

    /// Ends the micro-batch.
    pub fn end_batch(&mut self) {
        self.0.end_batch();
    }
}

impl Default for Guest {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}
