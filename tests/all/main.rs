//! Every test that needs more than one crate. `cargo xtask test` builds what they need first.

mod demo;
mod goldens;
