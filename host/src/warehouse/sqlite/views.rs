//! Views over panes.

use super::super::NewView;
use super::super::latest::Dialect;
use super::schema::{quote, table_name};
use rusqlite::{Connection, OptionalExtension as _};

/// What stands between a view's name and its query.
const AS: &str = " AS\n";

/// `CREATE VIEW` for a view of ours. The error is why it cannot be had.
pub fn create_view_statement(view: &NewView) -> Result<String, String> {
    let query = view.query(&quote(table_name(&view.table)), Dialect::Sqlite)?;
    Ok(format!("CREATE VIEW IF NOT EXISTS {}{AS}{query}", quote(table_name(&view.name))))
}

/// Makes a view, unless it is there. Returns whether what is there is the view.
pub(super) fn create(connection: &Connection, view: &NewView, statement: &str) -> rusqlite::Result<bool> {
    let there = "SELECT sql FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE";
    let name = table_name(&view.name);
    let there: Option<String> = connection.query_row(there, [name], |row| row.get(0)).optional()?;
    let Some(there) = there else {
        connection.execute_batch(statement)?;
        return Ok(true);
    };
    // SQLite keeps the text from the name on.
    let query = |sql: &str| {
        sql.split_once(AS).filter(|(start, _)| start.starts_with("CREATE VIEW")).map(|(_, query)| query.to_owned())
    };
    Ok(query(&there).is_some() && query(&there) == query(statement))
}
