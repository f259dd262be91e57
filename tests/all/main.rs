//! Every test that needs more than one crate. `cargo xtask test` builds what they need first.

mod cache;
mod crash;
mod demo;
mod goldens;
mod ledger;
mod load;
mod sandbox;
