//! What the tests share: where things are, a pipeline in a temporary directory, reading tables.

pub mod beam;
pub mod bigquery;
pub mod booking;
pub mod bookings;
pub mod disk;
pub mod events;
pub mod forgetful;
pub mod goldens;
pub mod guest;
pub mod handmade;
pub mod http;
pub mod orders;
pub mod paths;
pub mod pipeline;
pub mod proxy;
pub mod pubsub;
pub mod rule_store;
pub mod running;
pub mod scenes;
pub mod shopflow;
pub mod soak;
pub mod swap;
pub mod tables;

pub use booking::Booking;
pub use disk::SmallDisk;
pub use guest::Guest;
pub use handmade::Toy;
pub use pipeline::{Ended, Pipeline};
pub use proxy::Proxy;
pub use rule_store::Store;
pub use running::Running;
pub use swap::Following;
