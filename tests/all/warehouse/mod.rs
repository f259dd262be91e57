//! The contract of a warehouse: one suite, run against each that keeps it.

mod connecting;
mod contract;
mod credentials;
mod faults;
mod place;
mod tables;
