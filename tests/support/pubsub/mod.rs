//! Google's Pub/Sub emulator, and topics in it.
//!
//! One emulator serves all tests of a process; every test has topics and subscriptions of its own. Its message ids are small
//! numbers that begin at 1 with each emulator.

mod emulator;
mod feed;
mod front;
mod jar;
mod wire;

pub use emulator::Emulator;
pub use feed::{Feed, message};
pub use front::{Front, Log};
