//! Rows and texts that break the manifest, or the contract itself.

use crate::bindings::preflight::rules::types::{Row, Value};

/// Positions of the manifest's columns.
pub(crate) mod column {
    pub(crate) const N: usize = 0;
    pub(crate) const T: usize = 1;
    pub(crate) const AMOUNT: usize = 2;
    pub(crate) const AT: usize = 3;
    pub(crate) const F: usize = 4;
    pub(crate) const D: usize = 5;
    pub(crate) const B: usize = 6;
    pub(crate) const J: usize = 7;
    pub(crate) const COUNT: usize = 8;
}

/// A row that fits: `n` and nothing else.
pub(crate) fn fitting(n: i64) -> Row {
    with(column::N, Value::Int64(n))
}

/// The row that fits with `n` = 1, but for one value.
pub(crate) fn with(column: usize, value: Value) -> Row {
    let mut row = vec![Value::Null; column::COUNT];
    row[column::N] = Value::Int64(1);
    row[column] = value;
    row
}

/// A row of `length` values, the first of which fit.
pub(crate) fn of_arity(length: usize) -> Row {
    let mut row = fitting(1);
    row.resize(length, Value::Null);
    row
}

/// `bytes` bytes of text.
pub(crate) fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// A string that is none: a Latin-1 é, and an overlong slash.
pub(crate) fn bad_utf8() -> String {
    let bytes = b"caf\xE9 \xC0\xAF".to_vec();
    // SAFETY: this breaks the one promise of `String`, on purpose. Nothing here looks inside: it goes to the host as it is.
    unsafe { String::from_utf8_unchecked(bytes) }
}

/// A string that lies beyond the end of memory.
#[expect(clippy::same_length_and_capacity, reason = "a capacity that differs would make lowering reallocate")]
pub(crate) fn out_of_memory_bounds() -> String {
    const LENGTH: usize = 64;
    let pointer = std::ptr::without_provenance_mut(usize::MAX - 2 * LENGTH);
    // SAFETY: there is no such memory, on purpose. Lowering a string passes pointer and length on without a look at the bytes, and what
    // the host cannot lift it never gives back to be freed.
    unsafe { String::from_raw_parts(pointer, LENGTH, LENGTH) }
}
