//! Durations and sizes as text with a unit: `"1 s"`, `"500 ms"`, `"64 MiB"`.

use std::time::Duration;

/// A duration: a whole number and one of ms, s, m, h, d.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let help =
        || format!("{text:?} is not a duration: write a whole number and a unit (ms, s, m, h, d), such as \"1 s\"");
    let (number, unit) = split(text).ok_or_else(help)?;
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(help()),
    };
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(|| format!("{text:?} is too long"))
}

/// A duration as it can be written in a pipeline file: in the largest unit that it is a whole number of.
pub(crate) fn shown(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fits = units.into_iter().find(|(unit, _)| millis > 0 && millis.is_multiple_of(*unit));
    let (unit, name) = fits.unwrap_or((1, if millis == 0 { "s" } else { "ms" }));
    format!("{} {name}", millis / unit)
}

/// A size in bytes: a whole number and one of B, kB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024).
pub(super) fn size(text: &str) -> Result<usize, String> {
    let help = || {
        format!(
            "{text:?} is not a size: write a whole number and a unit (B, KiB, MiB, GiB, kB, MB, GB), such as \"64 MiB\""
        )
    };
    let (number, unit) = split(text).ok_or_else(help)?;
    let bytes: u64 = match unit {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(help()),
    };
    number
        .checked_mul(bytes)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| format!("{text:?} is too large"))
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_')?;
    let number = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_carry_a_unit() {
        assert_eq!(duration("1 s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2 d"), Ok(Duration::from_hours(48)));
        for bad in ["", "1", "s", "1.5 s", "-1 s", "1 fortnight"] {
            assert!(duration(bad).unwrap_err().contains("duration"), "{bad}");
        }
        assert!(duration("99999999999999999 d").unwrap_err().contains("too long"));
    }

    #[test]
    fn a_duration_is_shown_as_it_can_be_written() {
        for text in ["0 s", "1 ms", "1500 ms", "90 s", "5 m", "25 h", "2 d"] {
            assert_eq!(shown(duration(text).unwrap()), text);
        }
        assert_eq!(shown(Duration::from_hours(1)), "1 h");
    }

    #[test]
    fn sizes_carry_a_unit() {
        assert_eq!(size("64 MiB"), Ok(64 << 20));
        assert_eq!(size("1_000 kB"), Ok(1_000_000));
        for bad in ["", "64", "MiB", "1 mib", "0x10 B"] {
            assert!(size(bad).unwrap_err().contains("size"), "{bad}");
        }
        assert!(size("99999999999999 GiB").unwrap_err().contains("too large"));
    }
}
