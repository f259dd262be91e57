//! The contract of a warehouse: one suite, run against each that keeps it. And what BigQuery alone can do to a writer.

mod connecting;
mod contract;
mod credentials;
mod errors;
mod fakes;
mod faults;
mod narrow;
mod place;
mod refused;
mod scan;
mod schema;
mod tables;
mod upserts;
mod views;
