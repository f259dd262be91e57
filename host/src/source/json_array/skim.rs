//! Where a value ends that is too long to be held.

/// Finds the end of a value that is not looked at otherwise.
#[derive(Debug, Default)]
pub(super) struct Skim {
    depth: usize,
    in_text: bool,
    escaped: bool,
    begun: bool,
}

impl Skim {
    /// How many bytes are of the value, and whether it ends there.
    pub fn go_on(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (at, &byte) in bytes.iter().enumerate() {
            if self.in_text {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_text = false,
                    _ => continue,
                }
                if !self.in_text && self.depth == 0 {
                    return (at + 1, true);
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'[' | b'{' => self.depth += 1,
                // Of the array around it: the value is a number.
                b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 && self.begun => {
                    return (at, true);
                }
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                _ => {}
            }
            self.begun = true;
        }
        (bytes.len(), false)
    }
}
