//! How many lines there are of each kind.

/// Statuses, as they are in silver.
pub const STATUSES: [&str; 4] = ["delivered", "placed", "cancelled", "shipped"];

/// The shop's own file: lines, lines that say an earlier one again, lines that are no order, and orders by status.
const LINES: u64 = 40_150;
const DUPLICATES: u64 = 150;
const REJECTED: u64 = 100;
const BY_STATUS: [u64; 4] = [28_005, 4_096, 3_907, 3_892];

/// What a set of files holds, in lines without headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// All of them.
    pub lines: u64,
    /// Those that say an earlier line again, byte for byte.
    pub duplicates: u64,
    /// Those that are no order.
    pub rejected: u64,
    /// Orders by status, in the order of [`STATUSES`].
    pub by_status: [u64; 4],
}

impl Default for Shape {
    fn default() -> Self {
        Self::of(LINES)
    }
}

impl Shape {
    /// The shape of the shop's own file with so many lines.
    pub fn of(lines: u64) -> Self {
        let (duplicates, rejected) = (share(lines, DUPLICATES, LINES), share(lines, REJECTED, LINES));
        let accepted = lines - duplicates - rejected;
        let all: u64 = BY_STATUS.iter().sum();
        // Of running sums, so that what is rounded away from one is given to the next and all of them add up.
        let (mut sum, mut given) = (0, 0);
        let by_status = BY_STATUS.map(|orders| {
            sum += orders;
            let orders = share(accepted, sum, all) - given;
            given += orders;
            orders
        });
        Self { lines, duplicates, rejected, by_status }
    }

    /// Orders: the rows of silver.
    pub fn accepted(&self) -> u64 {
        self.by_status.iter().sum()
    }
}

/// `part` of `whole`, for so many: rounded.
fn share(of: u64, part: u64, whole: u64) -> u64 {
    let exact = u128::from(of) * u128::from(part) + u128::from(whole / 2);
    u64::try_from(exact / u128::from(whole)).expect("a part is no more than the whole")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_itself_the_shape_is_that_of_the_shops_own_file() {
        let shape = Shape { lines: LINES, duplicates: DUPLICATES, rejected: REJECTED, by_status: BY_STATUS };
        assert_eq!(Shape::default(), shape);
        assert_eq!(shape.accepted(), 39_900);
    }

    #[test]
    fn whatever_the_number_of_lines_the_kinds_add_up_to_it() {
        for lines in (0..2_000).chain([401_500, 20_000_000, u64::MAX]) {
            let shape = Shape::of(lines);
            assert_eq!(shape.accepted() + shape.duplicates + shape.rejected, lines);
            assert!(lines == 0 || shape.accepted() > 0, "there is an order to say again: {shape:?}");
        }
        let shape = Shape::of(4_015);
        assert_eq!((shape.duplicates, shape.rejected, shape.by_status), (15, 10, [2_801, 409, 391, 389]));
    }
}
