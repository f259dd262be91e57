//! The log, on standard error: text on a terminal, JSON lines otherwise.

use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// Starts logging. `RUST_LOG` chooses what is logged; a terminal shows warnings, since it has the progress bar.
pub fn start() {
    let terminal = io::stderr().is_terminal();
    let default = if terminal { "warn" } else { "info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // A second start, in a test, changes nothing.
    if terminal {
        log.without_time().with_target(false).try_init().ok();
    } else {
        log.json().flatten_event(true).with_current_span(false).try_init().ok();
    }
}
