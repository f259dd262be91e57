//! BigQuery: what the tests run against, and workers that write to it.

mod emulator;
mod fake;
mod hostile;
mod quarantine;
mod replaced;
