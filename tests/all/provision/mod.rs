//! `preflight provision`.

mod aggregates;
mod dry_run;
mod emulators;
