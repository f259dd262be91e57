//! How many events may be rejected before a run fails.

use std::fmt;
use std::str::FromStr;

/// One per cent, in the parts that a share is counted in.
const PERCENT: u64 = 10_000;

/// How many events of a run may be rejected. As many as that are no failure, one more is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxRejects {
    /// So many events: a run fails with the first that is one too many.
    Events(u64),
    /// A share of the events that are judged, in millionths: it is known at the end of the source.
    Share(u64),
}

/// What is counted of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Events that were rejected.
    pub rejected: u64,
    /// Events that were read, those left out that came again.
    pub judged: u64,
}

impl MaxRejects {
    /// Whether so many are too many, whatever is still to come.
    pub fn is_broken_for_good(self, counted: Counted) -> bool {
        matches!(self, Self::Events(_)) && self.is_broken(counted)
    }

    /// Whether so many are too many at the end of the source.
    pub fn is_broken(self, Counted { rejected, judged }: Counted) -> bool {
        match self {
            Self::Events(most) => rejected > most,
            Self::Share(millionths) => u128::from(rejected) * 1_000_000 > u128::from(millionths) * u128::from(judged),
        }
    }
}

impl fmt::Display for MaxRejects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(events) => events.fmt(f),
            Self::Share(millionths) => {
                let (whole, rest) = (millionths / PERCENT, millionths % PERCENT);
                let text = format!("{whole}.{rest:04}");
                write!(f, "{}%", text.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

impl FromStr for MaxRejects {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no bound: give a number of events, or a percentage up to 100% with at most four decimals"
            )
        };
        let Some(percent) = text.strip_suffix('%') else {
            return text.parse().map(Self::Events).map_err(|_| wrong());
        };
        let (whole, decimals) = percent.split_once('.').unwrap_or((percent, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 4 || whole.len() > 3 {
            return Err(wrong());
        }
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let millionths = number(whole)? * PERCENT + number(&format!("{decimals:0<4}"))?;
        if millionths > 100 * PERCENT { Err(wrong()) } else { Ok(Self::Share(millionths)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_a_number_or_a_percentage_and_is_shown_as_it_is_written() {
        for text in ["0", "100", "0%", "1%", "0.5%", "12.0625%", "100%"] {
            assert_eq!(text.parse::<MaxRejects>().unwrap().to_string(), text);
        }
        for text in ["", "-1", "1.5", "%", "1,5%", "0.00001%", "100.1%", "1000%", " 1%", "1e2", ".5%", "5.%"] {
            assert!(text.parse::<MaxRejects>().unwrap_err().contains("no bound"), "{text}");
        }
    }

    #[test]
    fn as_many_as_the_bound_are_not_too_many() {
        let broken = |bound: &str, rejected, judged| {
            let bound: MaxRejects = bound.parse().unwrap();
            let counted = Counted { rejected, judged };
            (bound.is_broken(counted), bound.is_broken_for_good(counted))
        };
        assert_eq!((broken("2", 2, 2), broken("2", 3, 3)), ((false, false), (true, true)));
        assert_eq!((broken("0", 0, 9), broken("0", 1, 9)), ((false, false), (true, true)));
        // A share may become less with what is still to come.
        assert_eq!((broken("1%", 4, 400), broken("1%", 5, 400)), ((false, false), (true, false)));
        assert_eq!((broken("0.25%", 1, 400), broken("0.25%", 1, 399)), ((false, false), (true, false)));
        assert_eq!((broken("0%", 0, 0), broken("100%", 7, 7)), ((false, false), (false, false)));
    }
}
