//! What both Google services share: where they are, and who we are there.

pub mod credentials;
pub mod endpoint;
