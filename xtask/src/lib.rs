//! What the project's own commands share with its tests: data that is made, not kept.

pub mod shopflow;
