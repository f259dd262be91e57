//! Files of rejected records, as they came: written beside their final name at offsets, so that what is written again is the
//! same, and published by a rename.
//!
//! A run has one file, `<path>-00000-of-00001<suffix>`: the name that Apache Beam gives to the only shard of an output.

use crate::config::RejectFilesConfig;
use crate::event::Event;
use crate::files::sync_directory;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// What stands between the path and the suffix of the only file of a run.
const ONLY: &str = "-00000-of-00001";
/// What stands before the id of a run in the name of a file that is not published.
const STAGED: &str = ".run_";

/// The record of an event, as its source had it.
pub fn record(event: &Event) -> &[u8] {
    &event.payload
}

/// The files of a pipeline. A ledger remembers them with the run that writes one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectFiles {
    /// What their names begin with, the directory included.
    path: String,
    suffix: String,
    /// What stands before the records, its newline included.
    header: String,
}

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the file of rejects {} cannot be written: {error}", .path.display())]
pub struct RejectFileError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

impl RejectFiles {
    /// The files that a pipeline file names. Before the records stands a header, or nothing.
    pub fn new(config: &RejectFilesConfig, header: &str) -> Self {
        // A later start may be in another working directory.
        let path = std::path::absolute(&config.path).unwrap_or_else(|_| config.path.clone());
        let path = path.to_str().map_or_else(|| config.path.to_string_lossy().into_owned(), str::to_owned);
        Self { path, suffix: config.suffix.clone(), header: header.to_owned() }
    }

    /// The file that readers find.
    pub fn published(&self) -> PathBuf {
        format!("{}{ONLY}{}", self.path, self.suffix).into()
    }

    fn directory(&self) -> &Path {
        Path::new(&self.path).parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// The file of a run until it is published.
    pub fn staged(&self, run: &str) -> PathBuf {
        let mut name = self.published().into_os_string();
        name.push(format!("{STAGED}{run}"));
        name.into()
    }

    /// Makes the file of a run, with the header, and its directory if that is missing.
    pub fn create(&self, staged: &Path) -> Result<(), RejectFileError> {
        let create = || {
            fs::create_dir_all(self.directory())?;
            let file = File::options().write(true).create(true).truncate(false).open(staged)?;
            file.write_all_at(self.header.as_bytes(), 0)?;
            file.sync_all()?;
            sync_directory(self.directory())
        };
        create().map_err(at(staged))
    }

    /// Writes bytes at an offset behind the header. Nothing before it may be missing; what is there already is the same.
    pub fn write(&self, staged: &Path, offset: u64, bytes: impl Iterator<Item = impl AsRef<[u8]>>) -> io::Result<()> {
        let file = File::options().write(true).open(staged)?;
        let at = self.header.len() as u64 + offset;
        if file.metadata()?.len() < at {
            return Err(io::Error::other("what was written before is gone"));
        }
        let mut written = Vec::new();
        for bytes in bytes {
            written.extend_from_slice(bytes.as_ref());
        }
        file.write_all_at(&written, at)?;
        file.sync_data()
    }

    /// How many bytes of records a file has; none if it is gone.
    pub fn extent(&self, staged: &Path) -> io::Result<Option<u64>> {
        match staged.metadata() {
            Ok(metadata) => Ok(Some(metadata.len().saturating_sub(self.header.len() as u64))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Publishes the file of a run, in the place of those that are there, unless that has happened.
    pub fn publish(&self, staged: &Path) -> Result<(), RejectFileError> {
        let published = self.published();
        let publish = || {
            match fs::rename(staged, &published) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && published.exists() => {}
                renamed => renamed?,
            }
            for path in self.shards()?.into_iter().filter(|path| *path != published) {
                fs::remove_file(path)?;
            }
            sync_directory(self.directory())
        };
        publish().map_err(at(&published))
    }

    /// Removes the file of a run that is not published, unless it is gone.
    pub fn discard(staged: &Path) -> Result<(), RejectFileError> {
        match fs::remove_file(staged) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(staged)(error)),
            _ => Ok(()),
        }
    }

    /// Files of runs that are not published.
    pub fn staged_files(&self) -> io::Result<Vec<PathBuf>> {
        let published = self.published();
        let begins = [published.file_name().map_or(&[][..], OsStr::as_bytes), STAGED.as_bytes()].concat();
        self.names(|name| name.starts_with(&begins))
    }

    /// The files that are published, of this suffix: those that another program has written in several shards, too.
    fn shards(&self) -> io::Result<Vec<PathBuf>> {
        self.names(|name| self.is_named(name))
    }

    fn is_named(&self, name: &[u8]) -> bool {
        let stem = Path::new(&self.path).file_name().map_or(&[][..], OsStr::as_bytes);
        let number = name.strip_prefix(stem).and_then(|rest| rest.strip_suffix(self.suffix.as_bytes()));
        number.is_some_and(is_shard)
    }

    /// Whether publishing would replace or remove this file.
    pub fn replaces(&self, path: &Path) -> bool {
        let same_directory = match (path.canonicalize(), self.directory().canonicalize()) {
            (Ok(path), Ok(directory)) => path.parent() == Some(directory.as_path()),
            _ => false,
        };
        same_directory && path.file_name().is_some_and(|name| self.is_named(name.as_bytes()))
    }

    fn names(&self, wanted: impl Fn(&[u8]) -> bool) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.directory())? {
            let entry = entry?;
            if wanted(entry.file_name().as_bytes()) && entry.file_type()?.is_file() {
                names.push(self.directory().join(entry.file_name()));
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// `-00000-of-00001`, with other digits.
fn is_shard(number: &[u8]) -> bool {
    number.len() == ONLY.len()
        && number
            .iter()
            .zip(ONLY.bytes())
            .all(|(byte, only)| *byte == only || byte.is_ascii_digit() && only.is_ascii_digit())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> RejectFileError {
    let path = path.to_owned();
    move |error| RejectFileError { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &Path, header: &str) -> RejectFiles {
        let config = RejectFilesConfig { path: directory.join("deep/er/orders"), header: false, suffix: ".csv".into() };
        RejectFiles::new(&config, header)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_is_written_again_is_the_same_and_what_is_missing_is_told() {
        let directory = tempfile::tempdir().unwrap();
        for header in ["", "id,at\n"] {
            let files = files(directory.path(), header);
            let staged = files.staged("1");
            files.create(&staged).unwrap();
            for _ in 0..2 {
                files.write(&staged, 0, ["a\n", "b\r\n"].iter()).unwrap();
            }
            files.write(&staged, 5, ["c\n"].iter()).unwrap();
            files.write(&staged, 0, ["a\n", "b\r\n"].iter()).unwrap();
            files.create(&staged).unwrap();
            assert_eq!(fs::read_to_string(&staged).unwrap(), format!("{header}a\nb\r\nc\n"));
            assert_eq!(files.extent(&staged).unwrap(), Some(7));
            assert!(files.write(&staged, 8, ["d\n"].iter()).unwrap_err().to_string().contains("is gone"));
            RejectFiles::discard(&staged).unwrap();
            RejectFiles::discard(&staged).unwrap();
            assert_eq!(files.extent(&staged).unwrap(), None);
            assert!(files.write(&staged, 0, ["a\n"].iter()).is_err());
        }
    }

    #[test]
    fn a_file_is_published_once_and_older_shards_go() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path(), "");
        let staged = files.staged("1");
        files.create(&staged).unwrap();
        files.write(&staged, 0, ["a\n"].iter()).unwrap();
        let deep = directory.path().join("deep/er");
        for name in
            ["orders-00000-of-00003.csv", "orders-00002-of-00003.csv", "orders-x.csv", "orders-00000-of-00003.txt"]
        {
            fs::write(deep.join(name), "old").unwrap();
        }
        fs::create_dir(deep.join("orders-00009-of-00010.csv")).unwrap();
        let other = files.staged("2");
        files.create(&other).unwrap();
        for _ in 0..2 {
            files.publish(&staged).unwrap();
        }
        let published = "orders-00000-of-00001.csv";
        assert_eq!(files.published(), deep.join(published));
        assert_eq!(fs::read_to_string(files.published()).unwrap(), "a\n");
        assert_eq!(files.staged_files().unwrap(), [deep.join(format!("{published}.run_2"))]);
        let left = [
            published.to_owned(),
            format!("{published}.run_2"),
            "orders-00000-of-00003.txt".to_owned(),
            "orders-00009-of-00010.csv".to_owned(),
            "orders-x.csv".to_owned(),
        ];
        assert_eq!(names(&deep), left);
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("deep"), "a file").unwrap();
        let files = files(directory.path(), "");
        let error = files.create(&files.staged("1")).unwrap_err().to_string();
        assert!(error.contains("orders-00000-of-00001.csv.run_1"), "{error}");
        let error = files.publish(&files.staged("1")).unwrap_err().to_string();
        assert!(error.contains("orders-00000-of-00001.csv cannot be written"), "{error}");
    }
}
