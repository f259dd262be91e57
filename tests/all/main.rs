//! Every test that needs more than one crate. `cargo xtask test` builds what they need first.

mod crash;
mod demo;
<<<<<<< HEAD
mod goldens;
=======
mod ledger;
>>>>>>> f59c7d99bba427f5854eab2e6e4bd18d48801117
