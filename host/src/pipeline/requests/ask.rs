//! Asking the worker that holds a ledger, from a command.

use super::{Answer, Request};
use crate::ledger::inbox::{Asked, Inbox};
use crate::ledger::{Ledger, LedgerError};
use crate::pipeline::error::RunError;
use crate::pipeline::rebuild::RebuildError;
use crate::pipeline::replay::Progress;
use crate::pipeline::retry::MayPass as _;
use crate::time::Clock;
use std::io;
use std::time::{Duration, Instant};

/// How often is looked whether the worker has answered, or has ended.
const LOOK: Duration = Duration::from_millis(50);
/// How long whoever holds the ledger may leave a request where it is. A worker takes it within a second.
const UNTAKEN: Duration = Duration::from_secs(30);

/// How the worker has taken it.
pub enum Answered {
    /// It has answered.
    Said(Answer),
    /// The worker has ended.
    Left {
        /// What it says to have done, of a replay.
        begun: Option<Progress>,
        /// The ledger is ours now; or another worker has it already.
        ledger: Option<Box<Ledger>>,
    },
}

/// Asks the worker that holds the ledger, and waits until it has answered or has ended. `holder` is who held the ledger when it
/// was looked at last.
pub async fn ask(
    inbox: &Inbox,
    request: &Request,
    holder: &mut String,
    clock: &dyn Clock,
    open: &impl AsyncFn() -> Result<Ledger, LedgerError>,
) -> Result<Answered, RunError> {
    let id = format!("{:020}-{}", clock.now(), std::process::id());
    let asked = inbox.ask(&id, request).map_err(RunError::Inbox)?;
    answer(&asked, inbox, request, holder, UNTAKEN, open).await
}

/// What is said of an answer that is none to what was asked for.
pub fn another_answer() -> io::Error {
    io::Error::other("the worker answered something else than what it was asked for")
}

async fn answer(
    asked: &Asked,
    inbox: &Inbox,
    request: &Request,
    holder: &mut String,
    untaken: Duration,
    open: &impl AsyncFn() -> Result<Ledger, LedgerError>,
) -> Result<Answered, RunError> {
    let mut since = Instant::now();
    loop {
        // In this order: an answer that was written before the ledger became free is seen behind that.
        let (ledger, held_by) = match open().await {
            Ok(ledger) => (Some(Box::new(ledger)), String::new()),
            Err(LedgerError::Locked { holder, .. }) => (None, holder),
            Err(error) if error.may_pass() => (None, String::new()),
            Err(error) => return Err(error.into()),
        };
        // A lock that was just taken does not say by whom yet.
        let another = !holder.is_empty() && !held_by.is_empty() && *holder != held_by;
        if !held_by.is_empty() {
            *holder = held_by;
        }
        let ended = another || ledger.is_some();
        let taken = asked.is_taken();
        let text = asked.answer().map_err(RunError::Inbox)?;
        let answer = text.map(|text| serde_json::from_str(&text)).transpose();
        match answer.map_err(|error| RunError::Inbox(error.into()))? {
            Some(Answer::Failed(why)) => return Err(RunError::Worker(why)),
            Some(Answer::Refused(why)) => return Err(RebuildError::Refused(why).into()),
            Some(Answer::Begun(begun)) if ended => return Ok(Answered::Left { begun: Some(begun), ledger }),
            None if taken && ended => {
                tracing::warn!("{}", request.cut());
                return Ok(Answered::Left { begun: None, ledger });
            }
            None if ledger.is_some() => return Ok(Answered::Left { begun: None, ledger }),
            None if another => since = Instant::now(),
            None if !taken && since.elapsed() >= untaken => {
                let inbox = inbox.directory().display().to_string();
                return Err(RunError::NotTaken { inbox, holder: holder.clone(), seconds: untaken.as_secs() });
            }
            // It is at it, or at its end.
            Some(Answer::Begun(_)) | None => {}
            Some(said) => return Ok(Answered::Said(said)),
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::replay::Wanted;
    use crate::pipeline::replay::report::ReplayReport;
    use crate::warehouse::events::Filter;

    const NOTHING: Wanted = Wanted {
        filter: Filter {
            stage: None,
            code: None,
            rule: None,
            digest: None,
            from: None,
            to: None,
            ids: Vec::new(),
            resolved: false,
        },
        by: String::new(),
        begun: None,
    };
    const REQUEST: Request = Request::Replay(NOTHING);

    const A: &str = " (process 1)";
    const B: &str = " (process 2)";

    fn asked() -> (tempfile::TempDir, Inbox, Asked) {
        let ledger = tempfile::tempdir().unwrap();
        let inbox = Inbox::of(ledger.path());
        let asked = inbox.ask("1", &()).unwrap();
        (ledger, inbox, asked)
    }

    fn held_by(holder: &str) -> impl AsyncFn() -> Result<Ledger, LedgerError> {
        async move || Err(LedgerError::Locked { path: "ledger".into(), holder: holder.to_owned() })
    }

    #[tokio::test]
    async fn a_request_that_nobody_takes_is_given_up() {
        let (_ledger, inbox, asked) = asked();
        let answered = answer(&asked, &inbox, &REQUEST, &mut A.into(), Duration::ZERO, &held_by(A)).await;
        let Err(error) = answered else { panic!("there is no answer") };
        let inbox = inbox.directory().to_owned();
        let text = error.to_string();
        assert!(text.contains(A) && text.contains(&inbox.display().to_string()), "{text}");
        drop(asked);
        assert_eq!(std::fs::read_dir(inbox).unwrap().count(), 0, "it is taken back");
    }

    /// It would be waited for without end: whoever took it is gone, and the next worker knows nothing of it.
    #[tokio::test]
    async fn what_a_worker_took_before_it_was_started_anew_is_asked_for_again() {
        let (_ledger, mut inbox, asked) = asked();
        inbox.take().unwrap().unwrap();
        let mut holder = A.to_owned();
        let answered = answer(&asked, &inbox, &REQUEST, &mut holder, UNTAKEN, &held_by(B)).await.unwrap();
        assert!(matches!(answered, Answered::Left { begun: None, ledger: None }));
        assert_eq!(holder, B);
    }

    #[tokio::test]
    async fn what_a_worker_had_begun_before_it_was_started_anew_is_gone_on_with() {
        let (_ledger, mut inbox, asked) = asked();
        let progress = Progress { report: ReplayReport { selected: 7, ..Default::default() }, after: 9, until: 20 };
        inbox.take().unwrap().unwrap().answer(&Answer::Begun(progress.clone())).unwrap();
        let answered = answer(&asked, &inbox, &REQUEST, &mut A.into(), UNTAKEN, &held_by(B)).await.unwrap();
        let Answered::Left { begun, ledger: None } = answered else { panic!("it is not done") };
        assert_eq!(begun, Some(progress));
    }
}
