//! The sandbox: the only module that names wasmtime.
//!
//! A component's way in: [`load`] reads and checks it, [`cache`] gives its machine code, a trial instantiation
//! gives its [`manifest`]. An event's way through: [`judge`] calls the rule in a store made by [`store`],
//! [`fault`] names what went wrong, [`convert`] checks what came back. Nothing a guest says is used before that.
//!
//! Which rule judges an event: [`set`]. How two rules' verdicts on the same event differ: [`compare`]; when that takes a
//! rule out of service: [`guard`].
//!
//! Invariants: every store is made by one function with every limit set; fuel and deadline are set anew before
//! every call; a store in which anything failed is dropped; any fault is judged once more, alone, in a fresh
//! store, and only that verdict counts.

pub mod bindings;
pub mod cache;
pub mod compare;
pub mod convert;
pub mod engine;
pub mod fault;
pub mod guard;
pub mod judge;
pub mod limits;
pub mod load;
pub mod manifest;
pub mod metering;
pub mod pack;
pub mod pool;
mod route;
pub mod set;
pub mod share;
pub mod store;

pub use engine::Sandbox;
pub use judge::Judge;
pub use limits::Limits;
pub use load::{LoadError, Rule};
pub use manifest::Manifest;
pub use pool::JudgePool;
pub use set::{Routing, RuleSet, Served};
