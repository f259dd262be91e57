//! The contract of a warehouse: one suite, run against each that keeps it.

mod contract;
mod place;
