//! What a pipeline needs on Google Cloud: datasets, tables, topics and subscriptions, made from its pipeline file.
//!
//! ```text
//! pipeline file, rules ─► wanted ─┐
//!                                 ├─► compare ─► steps ─► apply (or commands, as text)
//! what is there ─► look ─► found ─┘
//! ```
//!
//! Nothing that is there is ever dropped, replaced or narrowed. What is missing is made; a nullable column is added to a
//! table only if that is asked for; all else that differs is said, with the command by which an operator would change it.
//! So the same call may be repeated, and the second one changes nothing.
//!
//! All but [`mod@look`] and [`apply`] is pure. They need no more than to read and to create: roles are not granted here,
//! [`roles`] says which ones each identity needs.

pub mod apply;
mod bigquery;
pub mod commands;
pub mod compare;
pub mod look;
pub mod model;
mod pubsub;
pub mod roles;
pub mod script;
pub mod shards;
pub mod wanted;

pub use compare::{Change, Difference, Step, compare};
pub use model::{Dataset, Purpose, Resource, Subscription, Table, TableName, TableRole, Topic, View, Wanted};
pub use wanted::{Options, wanted};
