//! The ledger and the warehouse's append contract: exactly once, and a clear word when that cannot be kept.

mod append;
mod busy;
mod custody;
mod disk;
mod gone;
mod refused;
mod upserts;
