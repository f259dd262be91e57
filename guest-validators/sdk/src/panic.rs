//! Last words: a panic's text reaches the host before the trap.

use std::fmt::{self, Write};

/// Bytes of a panic's text that are passed on. A text of megabytes would exhaust what the host allows a call to hand over, and be lost.
pub const MAX_PANIC_BYTES: usize = 1000;

/// Sends the text of every panic to the host, from now on. To be called before a rule's own code runs; further calls do nothing.
#[cfg(target_arch = "wasm32")]
pub fn install_hook() {
    use std::sync::atomic::{AtomicBool, Ordering};

    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if !INSTALLED.swap(true, Ordering::Relaxed) {
        std::panic::set_hook(Box::new(|info| {
            crate::bindings::validator::preflight::rules::log::panicked(&clipped(info));
        }));
    }
}

/// The first [`MAX_PANIC_BYTES`] of what `text` displays, whole characters only, without building the rest.
#[cfg_attr(not(any(target_arch = "wasm32", test)), expect(dead_code, reason = "a component uses it, and its tests"))]
fn clipped(text: &impl fmt::Display) -> String {
    let mut clip = Clip(String::new());
    // An error says that the clip is full.
    let _ = write!(clip, "{text}");
    clip.0
}

struct Clip(String);

impl Write for Clip {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_PANIC_BYTES - self.0.len();
        let fitting = text.floor_char_boundary(room);
        self.0.push_str(&text[..fitting]);
        if fitting == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PANIC_BYTES, clipped};

    #[test]
    fn a_short_text_is_kept() {
        assert_eq!(clipped(&format_args!("{} of {}", 1, "é")), "1 of é");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = clipped(&format_args!("x{}", "é".repeat(1000)));
        assert_eq!(text.len(), MAX_PANIC_BYTES - 1);
        assert!(text.ends_with('é'));
    }
}
