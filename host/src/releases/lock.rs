//! The lock that whoever changes a rule store holds meanwhile. Readers need none: every file is replaced whole.

use super::{RuleStore, StoreError};
use crate::files;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long another's change is waited for. A change takes milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How often is looked.
const PAUSE: Duration = Duration::from_millis(10);

/// Held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock of a store. The store must be there.
    pub(super) fn take(store: &RuleStore) -> Result<Self, StoreError> {
        Self::within(store.directory(), store.patience())
    }

    fn within(store: &Path, patience: Duration) -> Result<Self, StoreError> {
        let path = store.join("lock");
        match files::must_be_regular(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(StoreError::Io { path, error }),
            _ => {}
        }
        let file = match OpenOptions::new().write(true).create(true).truncate(false).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::Missing { path: store.to_owned() });
            }
            Err(error) => return Err(StoreError::Io { path, error }),
        };
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < patience => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(StoreError::Busy { path, waited: patience }),
                Err(TryLockError::Error(error)) => return Err(StoreError::Io { path, error }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_not_given_up_is_named() {
        let store = tempfile::tempdir().unwrap();
        let held = Lock::take(&RuleStore::at(store.path())).unwrap();
        let error = Lock::within(store.path(), Duration::ZERO).unwrap_err().to_string();
        let path = store.path().join("lock").display().to_string();
        assert!(error.starts_with(&path) && error.contains("another process is changing the store"), "{error}");
        drop(held);
        Lock::within(store.path(), Duration::ZERO).unwrap();
    }
}
