//! What a person or a program sees while it runs: the log, the progress bar, metrics, and what a pipeline says of itself.

pub mod event_time;
pub mod log;
pub mod metrics;
pub mod out_of_orderness;
pub mod progress;
pub mod status;
pub mod tally;
pub mod value_counts;
pub mod window_counts;
