//! The events of the scenes: bookings by number, the same for the same number.

use std::fmt::Write as _;

/// Appends the envelope of an event, a line. Its message id is its number.
///
/// Some of version 1 are bad for every build of its rule, by their fare or since they are cut off; some are ordinary,
/// and not what every build makes of them: airports in lower case, four digits in a flight number, Swiss francs, a
/// flight back to where it starts.
pub(super) fn write(lines: &mut String, number: u64, version: u8) {
    let every = |n: u64, of: u64| number % n == of;
    write!(lines, "{{\"message_id\":\"{number}\",\"attributes\":{{\"event_version\":\"{version}\"}},\"data\":\"")
        .expect("a string takes any text");
    write!(lines, "{{\\\"booking_id\\\":\\\"BK-{number}\\\",").expect("a string takes any text");
    if every(97, 5) {
        lines.push_str("cut off\"}\n");
        return;
    }
    let (origin, destination) = match () {
        () if every(10, 3) => ("jfk", "lhr"),
        () if every(400, 11) => ("LHR", "LHR"),
        () => ("JFK", "LHR"),
    };
    let flight = if every(8, 1) { 1_000 + number % 9_000 } else { 100 + number % 900 };
    let (sign, amount) = (if every(100, 7) { "-" } else { "" }, 50 + number % 900);
    let currency = if every(25, 9) { "CHF" } else { "EUR" };
    let fare = match version {
        1 => format!("\\\"{sign}{amount}.50\\\",\\\"currency\\\":\\\"{currency}\\\""),
        _ => format!("{{\\\"amount\\\":\\\"{sign}{amount}.50\\\",\\\"currency\\\":\\\"{currency}\\\"}}"),
    };
    writeln!(
        lines,
        "\\\"passenger_id\\\":\\\"PAX-{}\\\",\\\"flight_number\\\":\\\"OF-{flight}\\\",\\\"origin\\\":\\\"{origin}\\\",\
         \\\"destination\\\":\\\"{destination}\\\",\\\"fare\\\":{fare},\
         \\\"event_time\\\":\\\"2026-10-07T14:10:00Z\\\"}}\"}}",
        number % 977
    )
    .expect("a string takes any text");
}
