//! How a rule is made: `fake.when(Call::Append).table("d.t").from(3).once(Fault::…)`.

use super::faults::{Call, Fault, Rule, RuleId};
use super::{Fake, PROJECT, path_in};
use tokio::sync::watch;

/// A rule that is being made.
#[must_use]
pub struct When<'a> {
    fake: &'a Fake,
    call: Call,
    table: Option<String>,
    from: u64,
}

impl<'a> When<'a> {
    pub(super) fn new(fake: &'a Fake, call: Call) -> Self {
        Self { fake, call, table: None, from: 1 }
    }

    /// Only calls about this table.
    pub fn table(self, table: &str) -> Self {
        Self { table: Some(path_in(PROJECT, table)), ..self }
    }

    /// From the n-th such call on, counted from 1 and from now.
    pub fn from(self, nth: u64) -> Self {
        Self { from: nth, ..self }
    }

    /// One call.
    pub fn once(self, fault: Fault) -> RuleId {
        self.make(Some(1), fault)
    }

    /// So many calls.
    pub fn times(self, times: u64, fault: Fault) -> RuleId {
        self.make(Some(times), fault)
    }

    /// Every call until the rule is lifted.
    pub fn always(self, fault: Fault) -> RuleId {
        self.make(None, fault)
    }

    fn make(self, times: Option<u64>, fault: Fault) -> RuleId {
        let Self { fake, call, table, from } = self;
        let lifted = watch::Sender::new(false);
        let rule = Rule { call, table, from, times, fault, seen: 0, hits: 0, lifted };
        fake.shared.change(|state| state.faults.add(rule))
    }
}
