//! Every test that needs more than one crate. `cargo xtask test` builds what they need first.

#![expect(clippy::unwrap_used, reason = "a test's helpers may fail where a test may")]

mod admin;
mod batching;
mod bigquery;
mod cache;
mod cli;
mod crash;
mod csv;
mod dedup;
mod demo;
mod demo_cloud;
mod demo_swap;
mod diff;
mod goldens;
mod ledger;
mod load;
mod payloads;
mod provision;
mod pubsub;
mod quarantine;
mod releases;
mod replace;
mod sandbox;
mod shopflow;
mod soak;
mod source;
mod swap;
mod warehouse;
mod windows;
