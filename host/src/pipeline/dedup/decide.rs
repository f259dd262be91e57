//! What becomes of an event whose key another event had before: a table of facts, and nothing else.

use super::Fate;
use crate::config::OnConflict;
use crate::ledger::Claim;

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// What its rule says.
    Stays,
    /// Nothing: it counts as a duplicate.
    Duplicate,
    /// It is not the event it says it is: quarantine.
    Conflict,
}

/// Decides of an event that has a key. `first` is what claimed the key before: an accepted event. `own` is what the event
/// itself would claim it with; its row is that of an accepted event only.
///
/// Who has the same content is a duplicate, whatever a newer rule would make of it: the first wins. Who has another
/// content and the same row is one, too. Who is rejected or ignored is so by its own content.
pub(super) fn by_claim(fate: &Fate, own: &Claim, first: Option<&Claim>, on_conflict: OnConflict) -> Decision {
    let Some(first) = first else { return Decision::Stays };
    if first.content == own.content {
        return Decision::Duplicate;
    }
    match fate {
        Fate::Accepted if first.row == own.row => Decision::Duplicate,
        Fate::Accepted => match on_conflict {
            OnConflict::Quarantine => Decision::Conflict,
            OnConflict::Drop => Decision::Duplicate,
        },
        Fate::Ignored | Fate::Rejected(..) | Fate::Duplicate => Decision::Stays,
    }
}

/// Decides of an event that gets no row for silver: the second of the same content under the same rule says nothing new.
pub(super) fn by_repeat(decision: Decision, is_repeated: bool) -> Decision {
    if is_repeated { Decision::Duplicate } else { decision }
}
