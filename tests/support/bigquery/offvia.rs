//! Offvia's pipeline into BigQuery: the fake or the emulator.

use super::{Emulator, Fake, emulator, fake};
use crate::Pipeline;
use std::fmt::Display;

/// Raw events.
pub const BRONZE: &str = "offvia_bronze.raw_bookings";
/// Accepted rows.
pub const SILVER: &str = "offvia_silver.fact_bookings";
/// Rejected events.
pub const QUARANTINE: &str = "offvia_quarantine.poisoned_events";

/// The local pipeline with another warehouse.
fn into_bigquery(pipeline: Pipeline, project: &str, rest: impl Display, storage: impl Display) -> Pipeline {
    let file = std::fs::read_to_string(pipeline.file()).expect("the file was written");
    let bigquery = format!(
        "[warehouse.bigquery]\nproject = {project:?}\nendpoint = \"{rest}\"\nstorage_endpoint = \"{storage}\"\n[ledger]\npath = \"ledger\""
    );
    let changed = file.replace("[warehouse.sqlite]\npath = \"warehouse.db\"", &bigquery);
    assert_ne!(changed, file, "the pipeline has a SQLite file");
    std::fs::write(pipeline.file(), changed).expect("it can be written to");
    pipeline
}

impl Fake {
    /// A local pipeline that writes here instead. It makes its tables.
    pub fn warehouse_of(&self, pipeline: Pipeline) -> Pipeline {
        into_bigquery(pipeline, fake::PROJECT, self.rest(), self.storage())
    }

    /// Offvia's pipeline from a file. Failures are tried again quickly, and small micro-batches make many commits.
    pub fn offvia(&self, input: impl AsRef<[u8]>) -> Pipeline {
        self.warehouse_of(Pipeline::offvia(input).warm().set("batch.max_events=50").set("run.threads=2"))
    }
}

impl Emulator {
    /// A local pipeline that writes to a dataset here instead, and makes its tables there.
    pub fn warehouse_of(&self, pipeline: Pipeline, dataset: &str) -> Pipeline {
        let tables = [("bronze", BRONZE), ("silver", SILVER), ("quarantine", QUARANTINE)];
        let pipeline = tables.into_iter().fold(pipeline, |pipeline, (tier, table)| {
            let table = table.rsplit('.').next().unwrap_or_default();
            pipeline.set(format!("{tier}.table={dataset}.{table}"))
        });
        into_bigquery(pipeline, emulator::PROJECT, self.rest(), self.storage())
    }
}
