//! `preflight provision`.

mod dry_run;
