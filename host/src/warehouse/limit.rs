//! Columns that are narrower than their type: what they take is known from the table, and checked before a row is promised.

use crate::row::ValueRef;

/// What a column takes of the values of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A text of so many characters.
    Characters(u64),
    /// So many bytes.
    Bytes(u64),
    /// A number of so many digits. More behind the point BigQuery would round.
    Digits {
        /// Before the point.
        before: u64,
        /// Behind the point.
        behind: u64,
    },
}

impl Limit {
    /// Why the column does not take a value, if it does not.
    pub fn broken_by(self, value: ValueRef<'_>) -> Option<String> {
        match (self, value) {
            (Self::Characters(limit), ValueRef::Text(text) | ValueRef::Json(text)) => {
                let count = text.chars().count() as u64;
                (count > limit).then(|| format!("has {count} characters, the column takes {limit}"))
            }
            (Self::Bytes(limit), ValueRef::Bytes(bytes)) => {
                let count = bytes.len() as u64;
                (count > limit).then(|| format!("has {count} bytes, the column takes {limit}"))
            }
            (Self::Digits { before, behind }, ValueRef::Numeric(text)) => too_wide(text, before, behind),
            (Self::Digits { before, behind }, ValueRef::Int64(number)) => too_wide(&number.to_string(), before, behind),
            _ => None,
        }
    }
}

/// A number in its canonical form: a sign if it is negative, no zeros that say nothing.
fn too_wide(number: &str, before: u64, behind: u64) -> Option<String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.trim_start_matches(['-', '0']);
    let fits = whole.len() as u64 <= before && fraction.len() as u64 <= behind;
    (!fits).then(|| {
        let (whole, fraction) = (whole.len(), fraction.len());
        format!("has {whole} digits before and {fraction} behind the point, the column takes {before} and {behind}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_within_a_limit_is_taken_and_the_next_is_not() {
        let takes = |limit: Limit, value| limit.broken_by(value).is_none();
        let characters = Limit::Characters(2);
        assert!(takes(characters, ValueRef::Text("éü")) && !takes(characters, ValueRef::Text("éüa")));
        assert!(takes(characters, ValueRef::Null));
        assert!(takes(Limit::Bytes(2), ValueRef::Bytes(b"ab")) && !takes(Limit::Bytes(2), ValueRef::Bytes(b"abc")));
        let digits = Limit::Digits { before: 3, behind: 2 };
        for number in ["0", "-0.25", "999.99", "-999.99", "0.01"] {
            assert!(takes(digits, ValueRef::Numeric(number)), "{number}");
        }
        for number in ["1000", "-1000.5", "0.001", "1.125"] {
            assert!(!takes(digits, ValueRef::Numeric(number)), "{number}");
        }
        assert!(takes(digits, ValueRef::Int64(-999)) && !takes(digits, ValueRef::Int64(1_000)));
        let why = digits.broken_by(ValueRef::Numeric("-1234.5")).unwrap();
        assert_eq!(why, "has 4 digits before and 1 behind the point, the column takes 3 and 2");
    }
}
