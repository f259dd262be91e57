//! `preflight provision`.

mod dry_run;
mod emulators;
