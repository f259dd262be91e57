//! What measures come to does not depend on the order of events, nor on how they were put together.

use preflight::row::{ColumnType, Value};
use preflight::window::accumulator::Content;
use preflight::window::exact::{FloatSum, billionths, numeric};
use preflight::window::{Function, Measure};
use proptest::prelude::*;

const NINES: i128 = 99_999_999_999_999_999_999_999_999_999;

fn float_sum(numbers: &[f64]) -> FloatSum {
    let mut sum = FloatSum::default();
    for number in numbers {
        sum.add(*number);
    }
    sum
}

proptest! {
    /// To the bit.
    #[test]
    fn a_float_sum_does_not_depend_on_order(
        mut numbers in prop::collection::vec(-1e300..1e300_f64, 1..30),
        cut in 0..30_usize,
    ) {
        let whole = float_sum(&numbers);
        numbers.reverse();
        let (left, right) = numbers.split_at(cut.min(numbers.len()));
        let mut merged = float_sum(right);
        merged.merge(&float_sum(left));
        prop_assert_eq!(whole.total().map(f64::to_bits), merged.total().map(f64::to_bits));
    }

    #[test]
    fn a_numeric_reads_back(whole in -NINES..=NINES, fraction in 0..1_000_000_000_i128) {
        let number = whole * 1_000_000_000 + if whole < 0 { -fraction } else { fraction };
        prop_assert_eq!(billionths(&numeric(number)), number);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn about_how_many_are_distinct_depends_on_the_values_alone(seed in any::<u64>(), count in 1..3_000_u64) {
        let distinct = [Measure { function: Function::ApproxCountDistinct, input: Some(ColumnType::Int64) }];
        let all = |order: &mut dyn Iterator<Item = u64>| {
            let mut content = Content::new(&distinct);
            order.for_each(|n| content.add(&[Value::Int64(i64::try_from(n).unwrap())]));
            content
        };
        let forward = all(&mut (0..count));
        let mut first = all(&mut (0..count).map(|n| n.wrapping_mul(seed | 1) % count));
        let mut second = all(&mut (0..count).rev());
        second.merge(&first);
        first.merge(&forward);
        let Value::Int64(estimate) = forward.values(&distinct).0[0] else { panic!("a count is an integer") };
        prop_assert!((estimate as f64 - count as f64).abs() <= 0.1 * count as f64 + 1.0, "{} of {}", estimate, count);
        prop_assert_eq!(first.values(&distinct), second.values(&distinct));
        prop_assert_eq!(first.values(&distinct), forward.values(&distinct));
    }
}
