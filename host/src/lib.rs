//! Preflight: rules as sandboxed WebAssembly components over streams and files.
//!
//! The path of one event, and the modules along it:
//!
//! ```text
//! source ─► rules ─► pipeline ─► ledger ─► warehouse
//! events    verdicts  rows        durable   append at an offset
//! ```
//!
//! Dependence goes one way: [`event`], [`row`], [`verdict`], [`time`] ← [`rules`], [`source`], [`ledger`],
//! [`warehouse`] ← [`releases`] ← [`pipeline`], [`diff`] ← [`cli`]. Only [`rules`] names wasmtime.

pub mod cli;
pub mod config;
pub mod diff;
pub mod digest;
pub mod event;
pub mod failpoint;
pub mod files;
pub mod fixtures;
pub mod ledger;
pub mod pipeline;
pub mod releases;
pub mod row;
pub mod rules;
pub mod source;
pub mod telemetry;
pub mod time;
pub mod verdict;
pub mod warehouse;
