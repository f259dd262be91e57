//! BigQuery: what the tests run against.

mod emulator;
