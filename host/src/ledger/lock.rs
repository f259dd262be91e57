//! The lock that makes a ledger one worker's.

use super::LedgerError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// Held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub(super) fn take(directory: &Path) -> Result<Self, LedgerError> {
        let io = |error| LedgerError::Io { path: directory.to_owned(), error };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join("lock"))
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Who holds it is only for the message.
                file.read_to_string(&mut text).ok();
                let holder =
                    text.trim().parse::<u32>().map_or_else(|_| String::new(), |pid| format!(" (process {pid})"));
                return Err(LedgerError::Locked { path: directory.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let pid = std::process::id().to_string();
        // A full disk does not matter here: the lock is held, the number is only for the message.
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes())).ok();
        Ok(Self { _file: file })
    }
}
