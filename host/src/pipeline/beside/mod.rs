//! Rules that judge events beside those that serve them: shadows, canaries' counterparts, guards.
//!
//! [`pair`] is what comparing two rules has shown so far; [`queue`] judges beside, on a thread of its own and of lower
//! priority, with a bounded queue: what does not fit is skipped and counted, and nothing that happens here touches the
//! serving path. [`differences`] writes what was found to a table of the warehouse.

pub mod differences;
pub mod pair;
pub mod queue;
pub mod registry;

pub use pair::{Pair, PairKey};
pub use queue::{Besides, Collector, Finding, Settings};
pub use registry::Registry;
