//! What is looked at before anything is read: which files there are, and their headers.

use super::SourceError;
use super::csv::{Header, columns_of_all};
use super::files::{self, Found};
use crate::config::Format;
use crate::record::Columns;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Finds the files that a path means, and refuses those whose headers differ from what they should be.
pub(super) fn look_for(path: &Path, format: &Format, max_payload: usize) -> Result<(), SourceError> {
    let found = find(path)?;
    if !is_stream(&found) {
        look(&found, format, max_payload)?;
    }
    Ok(())
}

/// The files that a path means.
pub(super) fn find(path: &Path) -> Result<Vec<Found>, SourceError> {
    files::find(path).map_err(|error| SourceError::Files(error.to_string()))
}

/// Where they are, in the order in which they are read.
pub(super) fn paths(path: &Path) -> Result<Vec<PathBuf>, SourceError> {
    Ok(find(path)?.into_iter().map(|found| found.path).collect())
}

/// Whether it is a pipe or a terminal: nothing to remember, and nothing to look at beforehand.
pub(super) fn is_stream(found: &[Found]) -> bool {
    matches!(found, [Found { path, .. }] if !path.metadata().is_ok_and(|metadata| metadata.is_file()))
}

/// What headers have to say, and the columns of each file.
pub(super) struct Looked {
    pub header: Option<Header>,
    pub columns: Vec<Option<Arc<Columns>>>,
}

/// Looks at the headers, if the format has them.
pub(super) fn look(found: &[Found], format: &Format, max_payload: usize) -> Result<Looked, SourceError> {
    let Format::Csv(options) = format else { return Ok(Looked { header: None, columns: vec![None; found.len()] }) };
    let mut header = Header::of(options);
    let paths = found.iter().map(|found| found.path.as_path());
    let columns =
        columns_of_all(paths, &mut header, max_payload).map_err(|(path, error)| SourceError::Io { path, error })?;
    Ok(Looked { header: Some(header), columns })
}
