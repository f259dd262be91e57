//! Every test that needs more than one crate. `cargo xtask test` builds what they need first.

#![expect(clippy::unwrap_used, reason = "a test's helpers may fail where a test may")]

mod batching;
mod cli;
#![expect(clippy::unwrap_used, reason = "this is all tests: what is not there fails the one that wants it")]

mod cache;
mod crash;
mod demo;
mod goldens;
mod ledger;
mod payloads;
mod source;
mod load;
mod sandbox;
