//! The header of a CSV file: its columns, and whether they are those that every file shall have.

use super::super::decode::Input;
use super::super::stream::{Start, Stream};
use crate::config::CsvOptions;
use crate::record::{Columns, fields};
use crate::verdict::clip;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a message about columns: a header may be as long as a record.
const MESSAGE: usize = 2_000;

/// What a file's header has to say.
#[derive(Debug, Clone, Default)]
pub(in crate::source) struct Header {
    options: Arc<CsvOptions>,
    /// The columns of the first file, and which that is: where no columns are named, later files have the same, in any order.
    first: Option<(Vec<String>, PathBuf)>,
}

impl Header {
    /// As the pipeline file says it.
    pub fn of(options: &Arc<CsvOptions>) -> Self {
        Self { options: Arc::clone(options), first: None }
    }

    /// How records stand in a file.
    pub fn options(&self) -> &CsvOptions {
        &self.options
    }

    /// The columns of a file without a header; none if it has one.
    pub fn columns(&self) -> Option<Arc<Columns>> {
        let columns = self.options.columns.clone().filter(|_| !self.options.header)?;
        Some(Columns::new(columns, self.options.dialect).expect("they were checked with the pipeline file").into())
    }

    /// Reads a header.
    pub fn parse(&self, text: &[u8]) -> Result<Arc<Columns>, String> {
        let wrong = |what: String| format!("its header is wrong: {}", clip(&what, MESSAGE));
        let names = fields(self.options.dialect, text).map_err(wrong)?;
        let columns = Columns::new(names, self.options.dialect).map_err(wrong)?;
        if let Some(wanted) = &self.options.columns {
            if wanted != columns.names() {
                let what = differ(columns.names(), wanted, "the pipeline file");
                return Err(clip(&what, MESSAGE).into_owned());
            }
        } else if let Some((wanted, file)) = &self.first {
            let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
            if sorted(wanted) != sorted(columns.names()) {
                let what = differ(columns.names(), wanted, &file.display().to_string());
                return Err(clip(&what, MESSAGE).into_owned());
            }
        }
        Ok(columns.into())
    }
}

/// How two headers differ.
fn differ(names: &[String], wanted: &[String], of: &str) -> String {
    let listed = |names: Vec<&String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let missing: Vec<&String> = wanted.iter().filter(|name| !names.contains(name)).collect();
    let unknown: Vec<&String> = names.iter().filter(|name| !wanted.contains(name)).collect();
    let mut differences = Vec::new();
    if !missing.is_empty() {
        differences.push(format!("it lacks {}", listed(missing)));
    }
    if !unknown.is_empty() {
        differences.push(format!("it has {} beside them", listed(unknown)));
    }
    if let Some((name, other)) = names.iter().zip(wanted).find(|(name, other)| name != other)
        && differences.is_empty()
    {
        differences.push(format!("`{name}` stands where `{other}` should"));
    }
    format!("its columns are not those of {of}: {}", differences.join(", and "))
}

/// The columns of regular files, by their headers alone. None for one without a record, or that cannot be read so far: that
/// is told when its turn comes. The error is of a file whose columns are wrong, or are not those of the files before it.
pub(in crate::source) fn columns_of_all<'a>(
    paths: impl Iterator<Item = &'a Path>,
    header: &mut Header,
    max_payload: usize,
) -> Result<Vec<Option<Arc<Columns>>>, (PathBuf, io::Error)> {
    let mut all = Vec::new();
    for path in paths {
        let columns = columns(path, header, max_payload).map_err(|error| (path.to_owned(), error))?;
        if let Some(columns) = &columns {
            header.first.get_or_insert_with(|| (columns.names().to_vec(), path.to_owned()));
        }
        // Of many files nearly all have the same, and each its own would be much memory.
        let same = all.last().and_then(Option::as_ref).filter(|last| columns.as_ref() == Some(last)).cloned();
        all.push(same.or(columns));
    }
    Ok(all)
}

fn columns(path: &Path, header: &Header, max_payload: usize) -> io::Result<Option<Arc<Columns>>> {
    let Ok(mut input) = Input::open(path) else { return Ok(None) };
    let mut stream = Stream::of_csv(header, max_payload, Start::default());
    loop {
        if let Some(columns) = stream.columns()? {
            return Ok(Some(columns));
        }
        if stream.has_ended() || stream.fill(&mut input).is_err() {
            return Ok(None);
        }
    }
}
