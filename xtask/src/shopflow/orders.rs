//! Lines of orders, as a shop's systems write them: in several spellings, with blanks, some quoted.

use std::fmt::Write;

use super::fault::Fault;
use super::random::Random;
use super::shape::STATUSES;

/// The header of each file.
pub(super) const HEADER: &str = "order_id,customer_id,channel,order_ts,status,currency,promo_id";

/// As they stand in the file. Text in quotes begins with something else than a comma or a quote, so that no quote that was left open before it
/// could end with it.
const CHANNELS: [&str; 12] = [
    "web",
    "Web",
    "app",
    "APP",
    " app ",
    "marketplace",
    "Marketplace ",
    "wholesale",
    "store",
    "\"Home, Kitchen\"",
    "\"The \"\"Outlet\"\"\"",
    "\"store\"",
];
const CURRENCIES: [&str; 12] = ["USD", "USD", "USD", "EUR", "EUR", "INR", "GBP", "usd", " eur", "\"INR\"", "", " "];
/// Three spellings of each of [`STATUSES`].
const SPELLINGS: [[&str; 3]; 4] = [
    ["delivered", "Delivered", " DELIVERED "],
    ["placed", "Placed", "PLACED "],
    ["cancelled", "Cancelled", " CANCELLED"],
    ["shipped", "Shipped", "SHIPPED"],
];
const _: () = assert!(SPELLINGS.len() == STATUSES.len());

/// Days of the months of a year that is no leap year.
const DAYS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/// Months that orders are of, from January 2025.
const MONTHS: usize = 21;

/// Makes one line after the other.
pub(super) struct Orders {
    random: Random,
    ids: Ids,
    fields: Vec<String>,
}

impl Orders {
    /// Of so many orders, each with an id of its own.
    pub(super) fn new(seed: u64, orders: u64) -> Self {
        let mut random = Random::new(seed);
        let ids = Ids::new(&mut random, orders);
        Self { random, ids, fields: Vec::new() }
    }

    /// The random numbers, for what else there is to decide.
    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Writes an order of that status, without an end of line.
    pub(super) fn good(&mut self, status: usize, line: &mut String) {
        self.fill(status);
        self.join(line);
    }

    /// Writes a line that is no order.
    pub(super) fn bad(&mut self, fault: Fault, line: &mut String) {
        let status = self.random.index(STATUSES.len());
        self.fill(status);
        fault.put(&mut self.fields);
        self.join(line);
    }

    fn fill(&mut self, status: usize) {
        self.fields.resize_with(7, String::new);
        for field in &mut self.fields {
            field.clear();
        }
        let random = &mut self.random;
        let [order_id, customer_id, channel, order_ts, spelling, currency, promo_id] = self.fields.as_mut_slice()
        else {
            unreachable!("there are seven of them")
        };
        number(random, order_id, self.ids.next());
        let customer = 1 + random.below(5_000);
        number(random, customer_id, customer);
        channel.push_str(random.pick(&CHANNELS));
        time(random, order_ts);
        let spellings = &SPELLINGS[status];
        spelling.push_str(if random.percent(70) { spellings[0] } else { random.pick(&spellings[1..]) });
        currency.push_str(random.pick(&CURRENCIES));
        if random.percent(30) {
            let promotion = 1 + random.below(40);
            number(random, promo_id, promotion);
        }
    }

    fn join(&self, line: &mut String) {
        line.clear();
        for (at, field) in self.fields.iter().enumerate() {
            if at > 0 {
                line.push(',');
            }
            line.push_str(field);
        }
    }
}

/// A number, a few of them with a blank before or behind it.
fn number(random: &mut Random, field: &mut String, number: u64) {
    let (before, behind) = match random.below(50) {
        0 => (" ", ""),
        1 => ("", " "),
        _ => ("", ""),
    };
    write!(field, "{before}{number}{behind}").expect("a String takes any text");
}

/// `YYYY-MM-DD HH:MM:SS`, of a day that the calendar has.
fn time(random: &mut Random, field: &mut String) {
    let month = random.index(MONTHS);
    let (year, month) = (2025 + month / 12, month % 12);
    let day = 1 + random.below(DAYS[month]);
    let second = random.below(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write!(field, "{year}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}", month + 1)
        .expect("a String takes any text");
}

/// Each number from 1 to `count` once, in an order of no meaning and without remembering any.
struct Ids {
    at: u64,
    step: u64,
    count: u64,
}

impl Ids {
    fn new(random: &mut Random, count: u64) -> Self {
        let count = count.max(1);
        let at = random.below(count);
        // A step that has no divisor in common with the count visits all of them before the first again.
        let from = 1 + random.below(count);
        let step = (from..from + count).find(|step| gcd(*step, count) == 1).expect("of so many in a row one has none");
        Self { at, step: step % count, count }
    }

    fn next(&mut self) -> u64 {
        let id = self.at + 1;
        self.at = (self.at + self.step) % self.count;
        id
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_comes_once() {
        for count in [1, 2, 6, 30_030, 40_000] {
            let mut ids = Ids::new(&mut Random::new(count), count);
            let mut seen: Vec<u64> = (0..count).map(|_| ids.next()).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(1..=count), "{count}");
        }
    }

    #[test]
    fn text_in_quotes_begins_so_that_it_cannot_close_a_quote_before_it() {
        let quoted =
            CHANNELS.iter().chain(&CURRENCIES).chain(SPELLINGS.as_flattened()).filter(|text| text.contains('"'));
        let mut found = 0;
        for text in quoted {
            let rest = text.strip_prefix('"').expect("a quote is the first of its field");
            assert!(rest.starts_with(char::is_alphanumeric), "{text}");
            found += 1;
        }
        assert!(found >= 3);
    }

    #[test]
    fn twelve_spellings_are_of_four_statuses() {
        for (spellings, status) in SPELLINGS.iter().zip(STATUSES) {
            assert!(spellings.iter().all(|spelling| spelling.trim().to_lowercase() == status));
        }
        let all: std::collections::BTreeSet<_> = SPELLINGS.as_flattened().iter().collect();
        assert_eq!(all.len(), 12);
    }
}
