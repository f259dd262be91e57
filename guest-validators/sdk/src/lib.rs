//! What a Preflight rule is written with.

pub mod decimal;
pub mod time;
