//! How many tests ran, from what `cargo test` prints.

use std::fmt;

/// Sums over all test binaries and doc tests of one run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    /// Tests that failed, and one for each binary that ended without giving its result: it crashed.
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// Reads the output of one run, line by line.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    totals: Totals,
    /// A binary has begun and not yet given its result.
    running: bool,
}

impl Reader {
    /// Takes in one line of output; most lines say nothing about how many tests there were.
    pub(crate) fn read(&mut self, line: &str) {
        if is_beginning(line) {
            self.close();
            self.running = true;
        } else if let Some(result) = parse(line) {
            self.running = false;
            self.totals.passed += result.passed;
            self.totals.failed += result.failed;
            self.totals.skipped += result.skipped;
        }
    }

    /// The sums, once the output has ended.
    pub(crate) fn finish(mut self) -> Totals {
        self.close();
        self.totals
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.running) {
            self.totals.failed += 1;
        }
    }
}

impl Totals {
    /// Tests that were executed, whatever came of them.
    pub(crate) fn ran(self) -> u64 {
        self.passed + self.failed
    }
}

/// The closing line: `12 passed, 0 failed`, and `, 3 skipped` when tests were ignored.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// `running 5 tests`, with which a binary begins.
fn is_beginning(line: &str) -> bool {
    let count = line
        .trim_end()
        .strip_prefix("running ")
        .and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")));
    count.is_some_and(|count| count.parse::<u64>().is_ok())
}

/// Reads `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`.
fn parse(line: &str) -> Option<Totals> {
    let (_ok_or_failed, counts) = line.trim_end().strip_prefix("test result: ")?.split_once(". ")?;
    let count =
        |name: &str| counts.split("; ").find_map(|part| part.strip_suffix(name)?.strip_suffix(' ')?.parse().ok());
    Some(Totals { passed: count("passed")?, failed: count("failed")?, skipped: count("ignored")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals_of(output: &str) -> Totals {
        let mut reader = Reader::default();
        output.lines().for_each(|line| reader.read(line));
        reader.finish()
    }

    #[test]
    fn results_of_all_binaries_are_summed() {
        let totals = totals_of(
            "running 2 tests\n\
             test a ... ok\n\
             test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             \n\
             test result: FAILED. 40 passed; 3 failed; 2 ignored; 0 measured; 7 filtered out; finished in 12.50s\n\
             test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        );
        assert_eq!(totals, Totals { passed: 42, failed: 3, skipped: 3 });
        assert_eq!(totals.ran(), 45);
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in [
            "",
            "test result: ok",
            "test result: ok. many passed; 0 failed; 0 ignored",
            "test tests::reads_test_result: ok. 5 passed; 0 failed; 0 ignored ... ok",
            "  test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            "5 passed; 0 failed; 0 ignored",
        ] {
            assert_eq!(totals_of(line), Totals::default(), "{line}");
        }
    }

    /// Such a run used to close with `2 passed, 0 failed`.
    #[test]
    fn a_binary_that_crashed_counts_as_a_failure() {
        let crashed = "running 3 tests\ntest a ... ok\n";
        let whole = "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let expected = Totals { passed: 2, failed: 1, skipped: 0 };
        assert_eq!(totals_of(&format!("{crashed}{whole}")), expected);
        assert_eq!(totals_of(&format!("{whole}{crashed}")), expected);
    }

    #[test]
    fn a_carriage_return_at_the_end_is_no_part_of_the_line() {
        let line = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\r";
        assert_eq!(totals_of(line).passed, 1);
    }

    #[test]
    fn the_closing_line_names_skipped_tests_only_when_there_are_any() {
        let all = Totals { passed: 12, failed: 0, skipped: 0 };
        assert_eq!(all.to_string(), "12 passed, 0 failed");
        assert_eq!(Totals { skipped: 3, ..all }.to_string(), "12 passed, 0 failed, 3 skipped");
    }
}
