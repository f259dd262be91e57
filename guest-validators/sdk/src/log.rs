//! Log lines: to the host's log inside a component, to standard error in a test.

/// A line for whoever develops the rule.
pub fn debug(text: &str) {
    emit(Level::Debug, text);
}

/// A line of ordinary news.
pub fn info(text: &str) {
    emit(Level::Info, text);
}

/// A line that someone should look at.
pub fn warn(text: &str) {
    emit(Level::Warn, text);
}

/// A line about something that is broken.
pub fn error(text: &str) {
    emit(Level::Error, text);
}

#[derive(Clone, Copy, Debug)]
enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

#[cfg(target_arch = "wasm32")]
fn emit(level: Level, text: &str) {
    use crate::bindings::validator::preflight::rules::log;
    let level = match level {
        Level::Debug => log::Level::Debug,
        Level::Info => log::Level::Info,
        Level::Warn => log::Level::Warn,
        Level::Error => log::Level::Error,
    };
    log::emit(level, text);
}

#[cfg(not(target_arch = "wasm32"))]
fn emit(level: Level, text: &str) {
    eprintln!("{level:?}: {text}");
}
