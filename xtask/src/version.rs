//! Version numbers as programs print them.

use std::fmt;

/// A version of three numbers. What a program leaves out counts as zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version([u32; 3]);

impl Version {
    /// A version known when this is written.
    pub(crate) const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self([major, minor, patch])
    }

    /// The first word of `text` that begins like a version: `rustc 1.95.0 (59807616e 2026-04-14)` gives 1.95.0. What follows
    /// the numbers in the same word (`-nightly`, `rc1`, `+dfsg1`) is left aside.
    pub(crate) fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(Self::parse)
    }

    fn parse(word: &str) -> Option<Self> {
        let mut numbers = [0; 3];
        let mut parts = word.split('.');
        let mut found = 0;
        for number in &mut numbers {
            let Some(part) = parts.next() else { break };
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            let Ok(value) = part[..digits].parse() else {
                break;
            };
            *number = value;
            found += 1;
            if digits < part.len() {
                break;
            }
        }
        (found >= 2).then_some(Self(numbers))
    }

    /// The compiler that `rust-toolchain.toml` asks for. `None` when its channel is a name such as `stable`.
    pub(crate) fn of_toolchain_file(text: &str) -> Option<Self> {
        let value = text.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == "channel").then_some(value)
        })?;
        Self::parse(value.trim().trim_matches('"'))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (text, expected) in [
            ("rustc 1.95.0 (59807616e 2026-04-14)", Version::new(1, 95, 0)),
            ("rustc 1.97.0-nightly (abc 2026-07-01)", Version::new(1, 97, 0)),
            ("Python 3.9.2", Version::new(3, 9, 2)),
            ("Python 3.14.0rc1", Version::new(3, 14, 0)),
            ("Python 3.13+", Version::new(3, 13, 0)),
            ("git version 2.39.5", Version::new(2, 39, 5)),
        ] {
            assert_eq!(Version::find(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn text_without_a_version_has_none() {
        for text in ["", "rustc", "command not found", "7", "a.b.c"] {
            assert_eq!(Version::find(text), None, "{text}");
        }
    }

    #[test]
    fn versions_compare_by_number_and_not_by_text() {
        assert!(Version::new(3, 9, 0) < Version::new(3, 11, 7));
        assert!(Version::new(1, 100, 0) > Version::new(1, 95, 9));
    }

    #[test]
    fn the_pin_is_read_from_the_toolchain_file() {
        let file = "# why\n[toolchain]\nchannel = \"1.95.0\"\n";
        assert_eq!(Version::of_toolchain_file(file), Some(Version::new(1, 95, 0)));
        assert_eq!(Version::of_toolchain_file("[toolchain]\nchannel = \"stable\"\n"), None);
        assert_eq!(Version::of_toolchain_file(""), None);
    }
}
