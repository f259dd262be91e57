//! Requests to the worker that holds a ledger: files in its `inbox/`, each written whole under its name.
//!
//! `<id>.json` is a request. Who made it holds a lock on the file as long as it waits, so that a request whose command
//! was stopped is not carried out later. `<id>.done.json` is the answer. A request is taken by deleting it: it is carried
//! out once, and one that cannot be read is answered too. Worker and command may be different users': who may read and
//! write the ledger's directory may read and write the inbox and the files in it.

use crate::time::{DAY, Micros, from_system};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// More than any request has, bytes.
const LONGEST: u64 = 4 << 20;
/// How long answers are kept that nobody came for.
const KEPT: Micros = DAY;

/// The inbox of a ledger.
#[derive(Debug)]
pub struct Inbox {
    directory: PathBuf,
    /// What could not be read: it is looked at once.
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
    /// The file; none of a request that cannot be read.
    file: Option<File>,
    /// What it says, or why it cannot be read.
    pub text: io::Result<String>,
}

impl Inbox {
    /// The inbox of the ledger in this directory.
    pub fn of(ledger: &Path) -> Self {
        Self { directory: ledger.join("inbox"), left: BTreeSet::new() }
    }

    /// Makes it, for everyone whose the ledger is, if it is not there.
    pub fn make(&self) -> io::Result<()> {
        match fs::create_dir(&self.directory) {
            Ok(()) => {
                let ledger = self.directory.parent().expect("it is in the ledger's directory");
                fs::set_permissions(&self.directory, ledger.metadata()?.permissions())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.directory.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Leaves a request under an id that nobody else uses: it is taken in the order of the ids.
    pub fn ask(&self, id: &str, request: &impl Serialize) -> io::Result<Asked> {
        self.make()?;
        let path = request_path(&self.directory, id);
        let mut file = shared_file(&self.directory, ".request-")?;
        file.as_file().lock()?;
        serde_json::to_writer(&mut file, request)?;
        let lock = file.persist_noclobber(&path)?;
        Ok(Asked { request: path, answer: answer(&self.directory, id), _lock: lock })
    }

    /// Takes the first request. One that cannot be read is given once, with the reason, and stays until it is answered.
    pub fn take(&mut self) -> io::Result<Option<Taken>> {
        for id in self.ids()? {
            let name = OsString::from(format!("{id}.json"));
            if self.left.contains(&name) {
                continue;
            }
            match self.take_one(&id) {
                Ok((file, text)) => return Ok(Some(self.taken(id, Some(file), Ok(text)))),
                // It was taken back.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!("a request in {} cannot be taken: {id}.json: {error}", self.directory.display());
                    self.left.insert(name);
                    return Ok(Some(self.taken(id, None, Err(error))));
                }
            }
        }
        Ok(None)
    }

    fn taken(&self, id: String, file: Option<File>, text: io::Result<String>) -> Taken {
        Taken { id, directory: self.directory.clone(), file, text }
    }

    fn take_one(&self, id: &str) -> io::Result<(File, String)> {
        let path = request_path(&self.directory, id);
        // A pipe would be waited for.
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let file = File::open(&path)?;
        let mut bytes = Vec::new();
        (&file).take(LONGEST).read_to_end(&mut bytes)?;
        fs::remove_file(&path)?;
        Ok((file, String::from_utf8_lossy(&bytes).into_owned()))
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
        let Some(file) = &self.file else { return true };
        match file.try_lock_shared() {
            Ok(()) => {
                file.unlock().ok();
                false
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
        }
    }

    /// Answers it.
    pub fn answer(self, answered: &impl Serialize) -> io::Result<()> {
        let mut file = shared_file(&self.directory, ".answer-")?;
        serde_json::to_writer(&mut file, answered)?;
        file.flush()?;
        file.persist(answer(&self.directory, &self.id))?;
        if self.file.is_none() {
            // If it cannot be deleted it is its command's, which has the answer.
            fs::remove_file(request_path(&self.directory, &self.id)).ok();
        }
        Ok(())
    }
}

/// A file that whoever may read and write the directory may read and write.
fn shared_file(directory: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    let file = tempfile::Builder::new().prefix(prefix).tempfile_in(directory)?;
    let mut permissions = directory.metadata()?.permissions();
    permissions.set_mode(permissions.mode() & 0o666);
    file.as_file().set_permissions(permissions)?;
    Ok(file)
}

fn request_path(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.json"))
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
        assert_eq!(first.text.as_ref().unwrap(), "\"a\"");
        assert_eq!(inbox.take().unwrap().unwrap().text.unwrap(), "\"b\"");
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
    fn what_cannot_be_read_is_given_once_to_be_answered_and_holds_up_nobody() {
        let (_directory, mut inbox) = inbox();
        let asked = inbox.ask("b", &()).unwrap();
        fs::create_dir(inbox.directory.join("a.json")).unwrap();
        let unread = inbox.take().unwrap().unwrap();
        assert_eq!((unread.id.as_str(), unread.is_waited_for()), ("a", true));
        assert!(unread.text.as_ref().unwrap_err().to_string().contains("no file"));
        unread.answer(&"no").unwrap();
        assert_eq!(fs::read_to_string(answer(&inbox.directory, "a")).unwrap(), "\"no\"");
        assert_eq!(inbox.take().unwrap().unwrap().id, "b");
        assert!(inbox.take().unwrap().is_none());
        drop(asked);
    }

    /// A worker of another user could not read what a temporary file's mode keeps for its owner.
    #[test]
    fn what_is_left_in_the_inbox_is_for_everyone_whose_the_ledger_is() {
        for mode in [0o700, 0o750, 0o2770, 0o755] {
            let (directory, mut inbox) = inbox();
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            let mode_of = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
            let asked = inbox.ask("a", &()).unwrap();
            assert_eq!(mode_of(&inbox.directory), mode, "{mode:o}");
            assert_eq!(mode_of(&asked.request), mode & 0o666, "{mode:o}");
            inbox.take().unwrap().unwrap().answer(&()).unwrap();
            assert_eq!(mode_of(&asked.answer), mode & 0o666, "{mode:o}");
        }
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
