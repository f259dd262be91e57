//! Pub/Sub as a source, with Google's emulator.

mod pulled;
