//! Every test that needs more than one crate. `cargo xtask test` builds what they need first.

mod batching;
mod cli;
mod crash;
mod demo;
mod goldens;
mod ledger;
mod payloads;
mod source;
