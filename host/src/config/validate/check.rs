//! Collecting problems while the parts are checked, and the checks that many keys share.

use crate::config::problem::Problem;
use crate::config::units;
use std::time::Duration;

/// SQLite's values end at a billion bytes, and a row carries a payload more than once.
const MAX_SIZE: usize = 512 << 20;

/// The problems found so far.
#[derive(Default)]
pub(super) struct Check {
    pub(super) problems: Vec<Problem>,
}

impl Check {
    /// Notes a problem with a key.
    pub(super) fn refuse<T>(&mut self, key: &str, what: impl Into<String>) -> Option<T> {
        self.problems.push(Problem::new(key, what));
        None
    }

    pub(super) fn positive(&mut self, key: &str, value: Option<usize>, default: usize) -> usize {
        match value {
            Some(0) => {
                self.refuse::<()>(key, "must be at least 1");
                default
            }
            value => value.unwrap_or(default),
        }
    }

    pub(super) fn size(&mut self, key: &str, text: Option<&str>, default: usize) -> usize {
        match self.unit(key, text, default, units::size) {
            // A micro-batch of nothing would never hold an event: the run would end, well, without having read any.
            0 => {
                self.refuse::<()>(key, "must be at least 1 B");
                default
            }
            size => size,
        }
    }

    /// A size of something that becomes a value of the warehouse, or is addressed in 32 bits.
    pub(super) fn bounded_size(&mut self, key: &str, text: Option<&str>, default: usize) -> usize {
        let size = self.size(key, text, default);
        if size > MAX_SIZE {
            self.refuse::<()>(key, format!("must be at most {} MiB", MAX_SIZE >> 20));
        }
        size
    }

    /// SQLite takes an empty path for a database that is gone at the end of the run.
    pub(super) fn path(&mut self, key: &str, path: &str) {
        if path.is_empty() {
            self.refuse::<()>(key, "a path is not empty");
        }
    }

    pub(super) fn duration(&mut self, key: &str, text: Option<&str>, default: Duration) -> Duration {
        self.unit(key, text, default, units::duration)
    }

    pub(super) fn unit<T>(
        &mut self,
        key: &str,
        text: Option<&str>,
        default: T,
        parse: fn(&str) -> Result<T, String>,
    ) -> T {
        match text.map(parse) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(what)) => {
                self.refuse::<()>(key, what);
                default
            }
        }
    }
}
