//! Views over panes.

use super::super::latest::Dialect;
use super::super::{NewView, WarehouseError};
use super::live::LiveTable;
use super::name::TableName;
use super::rest::Rest;

/// `CREATE VIEW` for a view of a project.
pub fn create_view_statement(view: &NewView, project: &str) -> Result<String, WarehouseError> {
    let (name, query) = parts(view, project)?;
    Ok(format!("CREATE VIEW IF NOT EXISTS {} AS\n{query}", name.sql()))
}

/// The same for a view in the place of another of its name.
pub fn replace_view_statement(view: &NewView, project: &str) -> Result<String, WarehouseError> {
    let (name, query) = parts(view, project)?;
    Ok(format!("CREATE OR REPLACE VIEW {} AS\n{query}", name.sql()))
}

/// What is there under the name of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundView {
    /// The view.
    Same,
    /// A view with another query.
    Another,
    /// No view but a `TABLE`, an `EXTERNAL` table, ….
    NoView(String),
}

/// Looks for a view; none if there is nothing of its name.
pub(super) async fn find(rest: &Rest, view: &NewView, project: &str) -> Result<Option<FoundView>, WarehouseError> {
    let (name, query) = parts(view, project)?;
    let found = |there: LiveTable| match there.kind.as_deref() {
        _ if is_view(&there, view, &query) => FoundView::Same,
        Some("VIEW") => FoundView::Another,
        kind => FoundView::NoView(kind.unwrap_or("TABLE").to_owned()),
    };
    Ok(rest.table(&name).await?.map(found))
}

/// A view's name and its query.
fn parts(view: &NewView, project: &str) -> Result<(TableName, String), WarehouseError> {
    let (name, table) = (TableName::parse(&view.name, project)?, TableName::parse(&view.table, project)?);
    let query = view.query(&table.sql(), Dialect::Bigquery);
    Ok((name, query.map_err(|text| WarehouseError { text, retryable: false })?))
}

/// Makes a view, unless it is there. Returns whether what is there is the view.
pub(super) async fn create(rest: &Rest, view: &NewView, project: &str) -> Result<bool, WarehouseError> {
    let (name, query) = parts(view, project)?;
    if let Some(there) = rest.table(&name).await? {
        return Ok(is_view(&there, view, &query));
    }
    let made = rest.query(&create_view_statement(view, project)?, Vec::new()).await;
    made.map_err(|failure| WarehouseError {
        text: format!("cannot make view {name}: {}", failure.text),
        retryable: failure.retryable,
    })?;
    let Some(there) = rest.table(&name).await? else {
        let text = format!("view {name} was made, and is not there: was it dropped at once?");
        return Err(WarehouseError { text, retryable: true });
    };
    Ok(is_view(&there, view, &query))
}

/// Whether what is there is the view: by its query, or by its columns where it is not told.
fn is_view(there: &LiveTable, view: &NewView, query: &str) -> bool {
    let columns = there.fields().iter().map(|field| field.name.as_str());
    there.kind.as_deref() == Some("VIEW")
        && match there.view_query() {
            Some(there) => there.split_whitespace().eq(query.split_whitespace()),
            None => columns.eq(view.columns()),
        }
}
