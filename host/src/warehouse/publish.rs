//! What a run that replaces tables writes first and publishes at its end.
//!
//! Rows of such a run go to **staging tables**, one for each target, made like it. Publishing puts them in the place of the
//! targets' rows, of all targets or of none, as often as it is asked for.

use serde::{Deserialize, Serialize};

/// What stands in the name of a staging table between the target's name and the run's id.
pub const STAGED: &str = "__run_";

/// The staging table of a run for a target, by the target's name in the warehouse.
pub fn staging_name(table: &str, run: &str) -> String {
    format!("{table}{STAGED}{run}")
}

/// Tables that are replaced together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// The id of the run, which no other run has.
    pub run: String,
    /// The tables.
    pub tables: Vec<Replaced>,
}

/// A table whose rows are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// Its name in the warehouse.
    pub table: String,
    /// That of the table which has the new rows.
    pub staging: String,
    /// The columns that are filled. The others get what the table fills them with itself.
    pub columns: Vec<String>,
}
