//! Event time: windows, watermark, late data, aggregates.
//!
//! The engine alone is tried by scripts of commits: [`script`] is how they are written down, [`model`] says from the definitions what has to
//! come out, and [`play`] what does come out, restarted and interrupted in many ways. [`stories`] are examples to be read, [`exhaustive`] and
//! [`random`] let model and engine compare themselves on very many scripts. [`parity`] compares with Apache Beam, through the command.

mod challenge;
mod exactly;
mod exhaustive;
mod limits;
mod live;
mod measures;
mod model;
mod parity;
mod play;
mod random;
mod rebuild;
mod records;
mod said;
mod script;
mod stories;
