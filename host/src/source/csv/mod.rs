//! The `csv` format: where records end, and what a header says.

mod header;
mod records;

pub(super) use header::{Header, columns_of_all};
pub(super) use records::Records;
