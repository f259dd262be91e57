//! The two kinds of sinks that entries go to: the tables of a warehouse, and the file of rejects.

use super::super::retry::retrying;
use super::{DeliverError, Delivery};
use crate::ledger::Stream;
use crate::reject_files::RejectFiles;
use crate::warehouse::{AppendError, Appended, Encoding, Entry, Layout, StreamRows, Tier, WarehouseError};
use std::io;
use std::path::Path;
use std::sync::Arc;

impl Delivery {
    /// The same, which writes to files of rejects, too.
    #[must_use]
    pub fn with_files(self, files: Option<RejectFiles>) -> Self {
        Self { files: files.map(Arc::new), ..self }
    }

    /// Appends the entries of a commit.
    pub(super) async fn append(&self, entries: &Arc<Vec<Entry>>) -> Vec<Result<Appended, AppendError>> {
        let Some(at) = entries.iter().position(|entry| entry.tier == Tier::Rejects) else {
            return self.warehouse.append(Arc::clone(entries)).await;
        };
        // The one file of a pipeline has one entry in a commit.
        let mut tables = Vec::clone(entries);
        let rejects = tables.remove(at);
        let (rejects, mut results) = tokio::join!(self.write(rejects), self.warehouse.append(Arc::new(tables)));
        results.insert(at, rejects);
        results
    }

    /// Makes a stream for the rows of a target, and returns its name.
    pub(super) async fn create_stream(
        &self,
        tier: Tier,
        wanted: &str,
        layout: &Layout,
    ) -> Result<String, DeliverError> {
        if tier != Tier::Rejects {
            return Ok(retrying(&self.patience, || self.warehouse.create_stream(wanted, &layout.table)).await?);
        }
        let (files, path) = (self.files(), layout.table.clone());
        let made = blocking(move || files.create(Path::new(&path)).map_err(io::Error::other)).await;
        made.map_err(|error| fatal(&layout.table, &error))?;
        Ok(wanted.to_owned())
    }

    /// Finalizes a stream and says how far it reaches.
    pub(super) async fn end_stream(&self, stream: &Stream) -> Result<StreamRows, DeliverError> {
        match stream.layout.encoding {
            Encoding::Lines => self.reach(stream).await,
            _ => Ok(retrying(&self.patience, || self.warehouse.finalize_stream(&stream.name)).await?),
        }
    }

    /// How far a stream reaches.
    pub(super) async fn reach(&self, stream: &Stream) -> Result<StreamRows, DeliverError> {
        if stream.layout.encoding != Encoding::Lines {
            return Ok(retrying(&self.patience, || self.warehouse.stream_rows(&stream.name)).await?);
        }
        let (files, path) = (self.files(), stream.layout.table.clone());
        let extent = blocking(move || files.extent(Path::new(&path))).await;
        let extent = extent.map_err(|error| fatal(&stream.layout.table, &error))?;
        Ok(extent.map_or(StreamRows::Missing, StreamRows::Rows))
    }

    async fn write(&self, entry: Entry) -> Result<Appended, AppendError> {
        let (files, path) = (self.files(), entry.layout.table.clone());
        let write = move || files.write(Path::new(&entry.layout.table), entry.first_offset, entry.rows.iter());
        // By offset and bytes it is the same however often it is written.
        blocking(write).await.map(|()| Appended::Written).map_err(|error| {
            let text = format!("file {path}: {error}");
            match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::Interrupted => {
                    AppendError::Retryable(text)
                }
                _ => AppendError::Fatal(text),
            }
        })
    }

    /// What a ledger has promised to a file is written whatever the pipeline file has become.
    fn files(&self) -> Arc<RejectFiles> {
        self.files.clone().unwrap_or_default()
    }
}

fn fatal(path: &str, error: &io::Error) -> DeliverError {
    WarehouseError { text: format!("file {path}: {error}"), retryable: false }.into()
}

async fn blocking<T: Send + 'static>(call: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(call).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
