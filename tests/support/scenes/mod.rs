//! The scenes of `cargo xtask demo swap`: a worker under load whose rules are changed by the real commands. The demo plays
//! all of them, the tests each by itself.
//!
//! A scene fails where something does not come out as it tells it, and so does the end: every event that was fed is
//! there once, judged by the component that was active for it.

pub mod cloud;
mod ending;
mod events;
mod feeder;
mod operator;
mod play;
mod process;
mod stage;
mod timeline;
mod warehouse;

pub use ending::end;
pub use play::{faults, next_version, refused_by_fixtures, rejects_too_much, repair, unknown_version};
pub use stage::{Settings, Stage};
