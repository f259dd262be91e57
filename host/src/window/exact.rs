//! Sums that come out the same whatever the order, and without a digit lost.

use serde::{Deserialize, Serialize};

/// Digits of a NUMERIC behind the point.
const SCALE: u32 = 9;
/// One, in billionths.
const ONE: i128 = 10_i128.pow(SCALE);
/// The greatest NUMERIC, in billionths: 38 nines.
const GREATEST: i128 = 10_i128.pow(38) - 1;
/// Halves of a whole sum: 19 digits each, so that neither overflows before 2^62 numbers are added.
const HALF: i128 = 10_i128.pow(19);

/// A sum of whole numbers of at most 38 digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeSum {
    high: i128,
    low: i128,
}

impl WholeSum {
    /// Adds a number.
    pub fn add(&mut self, number: i128) {
        self.high += number / HALF;
        self.low += number % HALF;
    }

    /// Adds what another has.
    pub fn merge(&mut self, other: Self) {
        self.high += other.high;
        self.low += other.low;
    }

    /// The sum, if it has at most 38 digits.
    pub fn total(self) -> Option<i128> {
        let total = self.high.checked_mul(HALF)?.checked_add(self.low)?;
        (-GREATEST..=GREATEST).contains(&total).then_some(total)
    }

    /// The mean of `count` numbers, which is not 0: a half is rounded away from zero.
    pub fn mean(self, count: u64) -> i128 {
        let count = i128::from(count);
        let rest = (self.high % count) * HALF + self.low;
        let (whole, rest) = ((self.high / count) * HALF + rest / count, rest % count);
        if 2 * rest.abs() >= count { whole + rest.signum() } else { whole }
    }
}

/// A NUMERIC in billionths, from its canonical text: what `rules::convert` has checked.
pub fn billionths(text: &str) -> i128 {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number = |digits: &str| digits.bytes().fold(0, |number: i128, digit| number * 10 + i128::from(digit - b'0'));
    let behind = u32::try_from(fraction.len()).expect("a NUMERIC has nine digits behind the point");
    let magnitude = number(whole) * ONE + number(fraction) * 10_i128.pow(SCALE - behind);
    if negative { -magnitude } else { magnitude }
}

/// The canonical text of a NUMERIC that is given in billionths.
pub fn numeric(billionths: i128) -> String {
    let sign = if billionths < 0 { "-" } else { "" };
    let magnitude = billionths.abs();
    let (whole, fraction) = (magnitude / ONE, magnitude % ONE);
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let fraction = format!("{fraction:09}");
    format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
}

/// A sum of floats: exact, and rounded once when it is asked for. The partial sums do not overlap, each is more than all
/// before it (Shewchuk, "Adaptive Precision Floating-Point Arithmetic", 1997: grow-expansion).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FloatSum {
    partials: Vec<f64>,
    /// A sum on the way was beyond what a float holds.
    overflowed: bool,
}

impl FloatSum {
    /// Adds a finite number.
    pub fn add(&mut self, number: f64) {
        let mut carried = number;
        let mut kept = 0;
        for index in 0..self.partials.len() {
            let partial = self.partials[index];
            let (large, small) = if carried.abs() < partial.abs() { (partial, carried) } else { (carried, partial) };
            let sum = large + small;
            let error = small - (sum - large);
            if error != 0.0 {
                self.partials[kept] = error;
                kept += 1;
            }
            carried = sum;
        }
        self.partials.truncate(kept);
        if carried.is_finite() {
            self.partials.push(carried);
        } else {
            self.overflowed = true;
        }
    }

    /// Adds what another has.
    pub fn merge(&mut self, other: &Self) {
        self.overflowed |= other.overflowed;
        for partial in &other.partials {
            self.add(*partial);
        }
    }

    /// The sum, rounded to the nearest float; none if it is beyond them.
    pub fn total(&self) -> Option<f64> {
        if self.overflowed {
            return None;
        }
        let mut partials = self.partials.iter().rev();
        let Some(mut sum) = partials.next().copied() else { return Some(0.0) };
        while let Some(partial) = partials.next() {
            let before = sum;
            sum = before + partial;
            let error = partial - (sum - before);
            if error != 0.0 {
                // Exactly between two floats so far: what is behind decides.
                if let Some(next) = partials.next()
                    && error.is_sign_negative() == next.is_sign_negative()
                {
                    let doubled = error * 2.0;
                    let other = sum + doubled;
                    #[expect(clippy::float_cmp, reason = "whether the addition was exact is the question")]
                    if doubled == other - sum {
                        sum = other;
                    }
                }
                break;
            }
        }
        // Adding nothing but negative zeros is zero.
        sum.is_finite().then_some(sum + 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGEST: &str = "99999999999999999999999999999.999999999";

    fn total(numbers: &[&str]) -> Option<String> {
        let mut sum = WholeSum::default();
        for number in numbers {
            sum.add(billionths(number));
        }
        sum.total().map(numeric)
    }

    #[test]
    fn numerics_are_summed_to_the_last_digit() {
        assert_eq!(total(&["0.1", "0.2"]).unwrap(), "0.3");
        assert_eq!(total(&["-0.000000001", "5"]).unwrap(), "4.999999999");
        assert_eq!(total(&[]).unwrap(), "0");
        assert_eq!(total(&[LARGEST]).unwrap(), LARGEST);
        assert_eq!(total(&["-1", "0.5"]).unwrap(), "-0.5");
    }

    #[test]
    fn a_sum_beyond_numeric_is_told_and_one_that_only_passes_through_is_right() {
        assert_eq!(total(&[LARGEST, "0.000000001"]), None);
        assert_eq!(total(&[LARGEST, LARGEST, LARGEST, LARGEST]), None);
        let negative = format!("-{LARGEST}");
        assert_eq!(total(&[LARGEST, LARGEST, &negative, "-1"]).unwrap(), "99999999999999999999999999998.999999999");
        assert_eq!(total(&[&negative, "-0.000000001"]), None);
    }

    #[test]
    fn a_mean_is_rounded_half_away_from_zero_and_never_overflows() {
        let mean = |numbers: &[&str]| {
            let mut sum = WholeSum::default();
            for number in numbers {
                sum.add(billionths(number));
            }
            numeric(sum.mean(numbers.len() as u64))
        };
        assert_eq!(mean(&["1", "2"]), "1.5");
        assert_eq!(mean(&["0.000000001", "0.000000002"]), "0.000000002");
        assert_eq!(mean(&["-0.000000001", "-0.000000002"]), "-0.000000002");
        assert_eq!(mean(&["1", "0", "0"]), "0.333333333");
        assert_eq!(mean(&[LARGEST, LARGEST, LARGEST]), LARGEST);
    }

    #[test]
    fn floats_are_summed_as_if_with_all_digits() {
        let total = |numbers: &[f64]| {
            let mut sum = FloatSum::default();
            for number in numbers {
                sum.add(*number);
            }
            sum.total()
        };
        assert_eq!(total(&[0.1; 10]), Some(1.0));
        assert_eq!(total(&[1e100, 1.0, -1e100]), Some(1.0));
        assert_eq!(total(&[1e16, 1.0, 1e-16]), Some(10_000_000_000_000_002.0));
        assert_eq!(total(&[f64::MAX, f64::MAX]), None);
        assert_eq!(total(&[]), Some(0.0));
        assert!(total(&[-0.0]).unwrap().is_sign_positive());
    }
}
