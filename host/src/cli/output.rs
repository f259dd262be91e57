//! Printing. A reader that went away (`| head`) is no error.

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::io::{self, Write};

/// Prints text to standard output.
pub(super) fn print(text: &str) {
    bytes(text.as_bytes());
}

/// Writes bytes to standard output.
pub(super) fn bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    // The only failure is a closed pipe: whoever read has seen enough.
    out.write_all(bytes).and_then(|()| out.flush()).ok();
}

/// Prints one line of JSON.
pub(super) fn json(value: &impl Serialize) {
    let mut text = serde_json::to_string(value).expect("reports are plain data");
    text.push('\n');
    print(&text);
}

/// Prints an error with its causes.
pub(super) fn error(error: &anyhow::Error) {
    writeln!(io::stderr().lock(), "error: {error:#}").ok();
}

/// Says something on standard error while a command goes on.
pub(super) fn note(text: &str) {
    writeln!(io::stderr().lock(), "{text}").ok();
}

/// Text of an event for a terminal: what would steer the terminal is shown as U+FFFD. Lines and tabs stay.
pub(super) fn harmless(text: &str) -> String {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.chars().map(|c| if steers(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
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
