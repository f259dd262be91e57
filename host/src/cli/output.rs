//! Printing. A reader that went away (`| head`) is no error.
//!
//! Texts quote events, rules and files that anybody may have written: whatever is printed here is [`harmless`].

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Prints text to standard output.
pub(super) fn print(text: &str) {
    bytes(harmless(text).as_bytes());
}

/// Writes bytes to standard output as they are.
pub(super) fn bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        // Whoever read has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            self::error(&anyhow::Error::from(error).context("cannot print"));
            // Nothing that follows could be told either.
            std::process::exit(1);
        }
        _ => {}
    }
}

/// Prints one line of JSON.
pub(super) fn json(value: &impl Serialize) {
    print(&json_line(value));
}

/// JSON escapes only U+0000 to U+001F by itself. What further steers a terminal can stand nowhere but in its strings.
fn json_line(value: &impl Serialize) -> String {
    let mut line = String::new();
    for c in serde_json::to_string(value).expect("reports are plain data").chars() {
        if c.is_control() {
            write!(line, "\\u{:04x}", u32::from(c)).expect("a string takes any text");
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

/// Prints an error with its causes.
pub(super) fn error(error: &anyhow::Error) {
    note(&format!("error: {error:#}"));
}

/// Says something on standard error while a command goes on.
pub(super) fn note(text: &str) {
    writeln!(io::stderr().lock(), "{}", harmless(text)).ok();
}

/// Text for a terminal: what would steer the terminal is shown as U+FFFD. Lines and tabs stay.
pub(super) fn harmless(text: &str) -> String {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.chars().map(|c| if steers(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The same on one line: a text cannot pass for several.
pub(super) fn one_line(text: &str) -> String {
    harmless(&text.replace(['\n', '\t'], " "))
}

/// A table with numbers in its last column.
pub(super) fn counts(header: [&str; 3], rows: impl IntoIterator<Item = [String; 3]>) -> Table {
    table(header, rows, Some(2))
}

/// A table, perhaps with numbers in one of its columns.
pub(super) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    numbers: Option<usize>,
) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    if let Some(column) = numbers.and_then(|index| table.column_mut(index)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEERS: &str = "a\u{1b}[2J\u{7f}\u{9b}\r\n\tb";

    #[test]
    fn what_steers_a_terminal_is_shown_and_lines_stay_where_they_are_meant() {
        assert_eq!(harmless(STEERS), "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\n\tb");
        assert_eq!(one_line(STEERS), "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}  b");
    }

    #[test]
    fn json_escapes_what_steers_a_terminal_and_loses_nothing() {
        let line = json_line(&[STEERS]);
        assert_eq!(line, "[\"a\\u001b[2J\\u007f\\u009b\\r\\n\\tb\"]\n");
        assert_eq!(serde_json::from_str::<Vec<String>>(&line).unwrap(), [STEERS]);
    }
}
