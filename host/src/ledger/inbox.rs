//! Requests to the worker that holds a ledger: files in its `inbox/`, each written whole under its name.
//!
//! `<id>.json` is a request. Who made it holds a lock on the file as long as it waits, so that a request whose command
//! was stopped is not carried out later. `<id>.done.json` is the answer. A request is taken by deleting it: it is carried
//! out once, and one that cannot be read holds up nobody.

use crate::time::{DAY, Micros, from_system};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// More than any request has, bytes.
const LONGEST: u64 = 4 << 20;
/// How long answers are kept that nobody came for.
const KEPT: Micros = DAY;

/// The inbox of a ledger.
#[derive(Debug)]
pub struct Inbox {
    directory: PathBuf,
    /// What cannot be taken: it is looked at once.
    left: BTreeSet<OsString>,
}

/// A request that waits for its answer. Dropping it takes it back.
#[derive(Debug)]
pub struct Asked {
    request: PathBuf,
    answer: PathBuf,
    _lock: File,
}

/// A request that was taken.
#[derive(Debug)]
pub struct Taken {
    id: String,
    directory: PathBuf,
    file: File,
    /// What it says.
    pub text: String,
}

impl Inbox {
    /// The inbox of the ledger in this directory.
    pub fn of(ledger: &Path) -> Self {
        Self { directory: ledger.join("inbox"), left: BTreeSet::new() }
    }

    /// Leaves a request under an id that nobody else uses: it is taken in the order of the ids.
    pub fn ask(&self, id: &str, request: &impl Serialize) -> io::Result<Asked> {
        fs::create_dir_all(&self.directory)?;
        let path = self.directory.join(format!("{id}.json"));
        let mut file = tempfile::Builder::new().prefix(".request-").tempfile_in(&self.directory)?;
        file.as_file().lock()?;
        serde_json::to_writer(&mut file, request)?;
        let lock = file.persist_noclobber(&path)?;
        Ok(Asked { request: path, answer: answer(&self.directory, id), _lock: lock })
    }

    /// Takes the first request.
    pub fn take(&mut self) -> io::Result<Option<Taken>> {
        for id in self.ids()? {
            let name = OsString::from(format!("{id}.json"));
            if self.left.contains(&name) {
                continue;
            }
            match self.take_one(&id) {
                Ok(Some(taken)) => return Ok(Some(taken)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!("a request in {} cannot be taken: {id}.json: {error}", self.directory.display());
                    self.left.insert(name);
                }
            }
        }
        Ok(None)
    }

    fn take_one(&self, id: &str) -> io::Result<Option<Taken>> {
        let path = self.directory.join(format!("{id}.json"));
        // A pipe would be waited for.
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let file = File::open(&path)?;
        let mut bytes = Vec::new();
        (&file).take(LONGEST).read_to_end(&mut bytes)?;
        fs::remove_file(&path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(Taken { id: id.to_owned(), directory: self.directory.clone(), file, text }))
    }

    /// Ids of the requests there are, in order.
    fn ids(&self) -> io::Result<BTreeSet<String>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries?,
        };
        let mut ids = BTreeSet::new();
        for entry in entries {
            let name = entry?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            let is_request = |id: &&str| !id.starts_with('.') && id.strip_suffix(".done").is_none();
            ids.extend(id.filter(is_request).map(str::to_owned));
        }
        Ok(ids)
    }

    /// Deletes what is older than a day: answers that nobody came for, and what was not written to its end.
    pub fn tidy(&self, now: Micros) -> io::Result<()> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours = name.ends_with(".done.json") || name.starts_with(".request-") || name.starts_with(".answer-");
            if ours && from_system(entry.metadata()?.modified()?) < now.saturating_sub(KEPT) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Asked {
    /// Whether a worker has taken it.
    pub fn is_taken(&self) -> bool {
        !self.request.exists()
    }

    /// The answer, if it is there.
    pub fn answer(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.answer) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            answer => answer.map(Some),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // What was taken is gone already; what was not answered has no answer.
        fs::remove_file(&self.request).ok();
        fs::remove_file(&self.answer).ok();
    }
}

impl Taken {
    /// Whether it is still waited for. If that cannot be told it is.
    pub fn is_waited_for(&self) -> bool {
        match self.file.try_lock_shared() {
            Ok(()) => {
                self.file.unlock().ok();
                false
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
        }
    }

    /// Answers it.
    pub fn answer(self, answered: &impl Serialize) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".answer-").tempfile_in(&self.directory)?;
        serde_json::to_writer(&mut file, answered)?;
        file.flush()?;
        file.persist(answer(&self.directory, &self.id))?;
        Ok(())
    }
}

fn answer(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.done.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock as _, SystemClock};

    fn inbox() -> (tempfile::TempDir, Inbox) {
        let directory = tempfile::tempdir().unwrap();
        let inbox = Inbox::of(directory.path());
        (directory, inbox)
    }

    #[test]
    fn requests_are_taken_once_in_order_and_answered() {
        let (_directory, mut inbox) = inbox();
        assert!(inbox.take().unwrap().is_none(), "without a directory there is no request");
        let asked = ["b", "a"].map(|id| inbox.ask(id, &id).unwrap());
        assert!(inbox.ask("a", &"again").is_err(), "an id is used once");
        let first = inbox.take().unwrap().unwrap();
        assert_eq!(first.text, "\"a\"");
        assert_eq!(inbox.take().unwrap().unwrap().text, "\"b\"");
        assert!(inbox.take().unwrap().is_none());
        assert_eq!(asked[1].answer().unwrap(), None);
        first.answer(&"done").unwrap();
        assert_eq!(asked[1].answer().unwrap().as_deref(), Some("\"done\""));
        let directory = inbox.directory.clone();
        drop(asked);
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_request_is_waited_for_until_its_command_ends() {
        let (_directory, mut inbox) = inbox();
        let asked = inbox.ask("a", &()).unwrap();
        let taken = inbox.take().unwrap().unwrap();
        assert!(taken.is_waited_for());
        drop(asked);
        assert!(!taken.is_waited_for());
    }

    #[test]
    fn what_is_no_file_is_passed_over() {
        let (_directory, mut inbox) = inbox();
        let asked = inbox.ask("b", &()).unwrap();
        fs::create_dir(inbox.directory.join("a.json")).unwrap();
        for _ in 0..2 {
            assert!(inbox.take().unwrap().is_none_or(|taken| taken.id == "b"));
        }
        assert_eq!(inbox.left.len(), 1);
        drop(asked);
    }

    #[test]
    fn answers_are_kept_for_a_day() {
        let (_directory, mut inbox) = inbox();
        let asked = inbox.ask("a", &()).unwrap();
        inbox.take().unwrap().unwrap().answer(&()).unwrap();
        let now = SystemClock.now();
        inbox.tidy(now + KEPT / 2).unwrap();
        assert!(asked.answer().unwrap().is_some());
        inbox.tidy(now + KEPT * 2).unwrap();
        assert!(asked.answer().unwrap().is_none());
    }
}
