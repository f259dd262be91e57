//! What is wrong with a pipeline file: where, what, and what to do.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `file:line`, or `--set`, where the key was given.
    pub origin: Option<String>,
    /// The key's path, such as `rules.components."2"`.
    pub key: String,
    /// What is wrong, and what to do.
    pub what: String,
}

impl Problem {
    /// A problem with a key.
    pub fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self { origin: None, key: key.into(), what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if self.key.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.key, self.what) }
    }
}

/// Everything that is wrong with a pipeline file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError(pub Vec<Problem>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// The known name that an unknown one is nearest to, if it is near enough to be meant.
pub(super) fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, name) = known.map(|name| (strsim::damerau_levenshtein(unknown, name), name)).min()?;
    (distance <= 1 + unknown.len() / 4).then_some(name)
}
