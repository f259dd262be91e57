//! What the tests share: where things are, a pipeline in a temporary directory, reading tables.

pub mod goldens;
pub mod paths;
pub mod pipeline;
pub mod tables;

pub use pipeline::{Ended, Pipeline};
