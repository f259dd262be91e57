//! Every test that needs more than one crate. `cargo xtask test` builds what they need first.

#![expect(clippy::unwrap_used, reason = "this is all tests: what is not there fails the one that wants it")]

mod batching;
mod cache;
mod cli;
mod crash;
mod demo;
mod goldens;
mod ledger;
mod load;
mod payloads;
mod sandbox;
mod source;
