//! Offvia's booking events in any number, the same for the same number.

use std::fmt::Write as _;

/// `count` events, a line each: most are good, every fifth has a bad fare, every eleventh is no JSON.
pub fn lines(count: usize) -> String {
    from(0, count)
}

/// The same, numbered from `first`: what a file grows by.
pub fn from(first: usize, count: usize) -> String {
    let mut lines = String::with_capacity(count * 200);
    for number in first..first + count {
        if number % 11 == 10 {
            writeln!(lines, "{{\"booking_id\": \"BK-{number}\", cut off").expect("a string takes any text");
        } else {
            let fare = if number % 5 == 4 { "-1.00" } else { "749.50" };
            lines.push_str(&booking(number, fare));
        }
    }
    lines
}

/// `count` events that are all accepted.
pub fn good(count: usize) -> String {
    (0..count).map(|number| booking(number, "749.50")).collect()
}

fn booking(number: usize, fare: &str) -> String {
    format!(
        "{{\"booking_id\": \"BK-{number}\", \"passenger_id\": \"PAX-{}\", \"flight_number\": \"OF-104\", \
         \"origin\": \"JFK\", \"destination\": \"LHR\", \"fare\": \"{fare}\", \
         \"event_time\": \"2026-10-07T14:10:00Z\"}}\n",
        number % 977
    )
}
