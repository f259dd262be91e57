//! BigQuery for tests: the real emulator, and a strict fake for what it cannot do.

pub mod emulator;
pub mod fake;
pub mod offvia;

pub use emulator::Emulator;
pub use fake::Fake;
