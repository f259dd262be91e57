//! What `check` says of dedup, and what it refuses.
