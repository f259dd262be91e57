//! What a table is called: in the pipeline file, in SQL, and as a resource.

use super::super::WarehouseError;
use std::fmt;

/// A table of a dataset of a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableName {
    /// The project.
    pub project: String,
    /// The dataset.
    pub dataset: String,
    /// The table.
    pub table: String,
}

impl TableName {
    /// Reads `dataset.table` or `project.dataset.table`. Old projects have a dot in their name, so it is read from the end.
    pub fn parse(name: &str, project: &str) -> Result<Self, WarehouseError> {
        let mut parts = name.rsplitn(3, '.');
        let (table, dataset) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let project = parts.next().unwrap_or(project);
        // What would end a quoted name in SQL, or a part of a resource's.
        let harmless = |part: &str| !part.is_empty() && !part.contains(['`', '\\', '/', '\n', '\r']);
        if [project, dataset, table].into_iter().all(harmless) {
            let [project, dataset, table] = [project, dataset, table].map(str::to_owned);
            return Ok(Self { project, dataset, table });
        }
        Err(WarehouseError {
            text: format!("{name:?} is not a table of BigQuery: write [project.]dataset.table"),
            retryable: false,
        })
    }

    /// The resource, as the Storage Write interface calls it.
    pub(super) fn path(&self) -> String {
        format!("projects/{}/datasets/{}/tables/{}", self.project, self.dataset, self.table)
    }

    /// The stream that every table has.
    pub(super) fn default_stream(&self) -> String {
        format!("{}/streams/_default", self.path())
    }

    /// The name as the command `bq` writes it.
    pub fn bq(&self) -> String {
        format!("{}:{}.{}", self.project, self.dataset, self.table)
    }

    /// The name in SQL.
    pub fn sql(&self) -> String {
        format!("`{self}`")
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.project, self.dataset, self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_from_its_end() {
        let read = |name: &str| TableName::parse(name, "home").unwrap().path();
        assert_eq!(read("d.t"), "projects/home/datasets/d/tables/t");
        assert_eq!(read("away.d.t"), "projects/away/datasets/d/tables/t");
        assert_eq!(read("example.com:away.d.t"), "projects/example.com:away/datasets/d/tables/t");
        assert_eq!(TableName::parse("d.t", "home").unwrap().sql(), "`home.d.t`");
    }

    #[test]
    fn what_is_no_table_or_would_end_a_quoted_name_is_refused() {
        for name in ["t", "", "d.", ".t", "d.t`; DROP TABLE x", "a/b.t"] {
            assert!(TableName::parse(name, "home").unwrap_err().text.contains("dataset.table"), "{name}");
        }
    }
}
