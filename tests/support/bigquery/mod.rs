//! BigQuery for tests: the real emulator.

pub mod emulator;

pub use emulator::Emulator;
