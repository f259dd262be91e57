//! The grammar of decimals: a text becomes sign, digits and exponent.

/// A text of the grammar, taken apart.
pub(super) struct Number<'a> {
    pub(super) negative: bool,
    integer: &'a [u8],
    fraction: &'a [u8],
    /// Saturated: beyond any length a text can have.
    exponent: i64,
}

impl<'a> Number<'a> {
    pub(super) fn scan(text: &'a [u8]) -> Option<Self> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let (integer, text) = split_digits(text)?;
        if integer.len() > 1 && integer[0] == b'0' {
            return None;
        }
        let (fraction, text) = match text {
            [b'.', rest @ ..] => split_digits(rest)?,
            _ => (&[][..], text),
        };
        let exponent = match text {
            [] => 0,
            [b'e' | b'E', rest @ ..] => scan_exponent(rest)?,
            _ => return None,
        };
        Some(Self { negative, integer, fraction, exponent })
    }

    /// The digits without the zeros that carry nothing, at either end.
    pub(super) fn significant(&self) -> (&'a [u8], &'a [u8]) {
        let integer = trim_start(self.integer);
        let fraction = trim_end(self.fraction);
        match (integer, fraction) {
            ([], _) => (integer, trim_start(fraction)),
            (_, []) => (trim_end(integer), fraction),
            _ => (integer, fraction),
        }
    }

    /// How many of the significant digits stand before the decimal point.
    pub(super) fn point(&self, no_integer: bool, significant_fraction: &[u8]) -> i64 {
        let unscaled = if no_integer {
            len(significant_fraction) - len(trim_end(self.fraction))
        } else {
            len(trim_start(self.integer))
        };
        unscaled.saturating_add(self.exponent)
    }
}

/// The digits at the start, at least one, and what follows them.
fn split_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| text.split_at(digits))
}

fn scan_exponent(text: &[u8]) -> Option<i64> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (digits, []) = split_digits(text)? else {
        return None;
    };
    let magnitude = digits.iter().fold(0i64, |sum, byte| sum.saturating_mul(10).saturating_add(i64::from(byte - b'0')));
    // Halved so that adding the length of a text cannot overflow.
    let magnitude = magnitude.min(i64::MAX / 2);
    Some(if negative { -magnitude } else { magnitude })
}

fn trim_start(digits: &[u8]) -> &[u8] {
    &digits[digits.iter().take_while(|byte| **byte == b'0').count()..]
}

fn trim_end(digits: &[u8]) -> &[u8] {
    &digits[..digits.len() - digits.iter().rev().take_while(|byte| **byte == b'0').count()]
}

/// A length as a number that can be subtracted from.
pub(super) fn len(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).expect("no text has 2^63 bytes")
}
