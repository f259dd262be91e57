//! What a person or a program sees while it runs: the log and the progress bar.

pub mod log;
pub mod progress;
