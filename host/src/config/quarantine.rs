//! Where rejected events go.

use super::TierConfig;
use std::path::PathBuf;

/// Where rejected events go: a table, files, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineConfig {
    /// The table, with all that a replay needs.
    pub table: Option<TierConfig>,
    /// The files, with the records as they came.
    pub files: Option<RejectFilesConfig>,
}

impl QuarantineConfig {
    /// The name of the table, as in the pipeline file.
    pub fn table_name(&self) -> Option<&str> {
        self.table.as_ref().map(|tier| tier.table.as_str())
    }
}

/// Files of rejected records, a run's in the place of those of the run before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectFilesConfig {
    /// What their names begin with, their directory included.
    pub path: PathBuf,
    /// Whether the header of the source stands before them.
    pub header: bool,
    /// What their names end with.
    pub suffix: String,
}
