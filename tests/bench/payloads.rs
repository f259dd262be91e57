//! Offvia's payload with varying values, so that no cache is measured.

use std::fmt::Write;

/// The payloads that the loops go through.
pub(crate) const SAMPLE: usize = 5_000;

/// A good booking of version 1: the seed's, with other values.
pub(crate) fn booking(number: usize) -> String {
    const AIRPORTS: [&str; 6] = ["JFK", "LHR", "SFO", "HND", "FCO", "GRU"];
    // A multiplicative hash spreads the values without a random source.
    let spread = number.wrapping_mul(2_654_435_761) >> 7;
    format!(
        concat!(
            r#"{{"booking_id": "BK-{}", "passenger_id": "PAX-{}", "flight_number": "OF-{}", "origin": "{}", "#,
            r#""destination": "{}", "fare": "{}.{:02}", "currency": "USD", "status": "CONFIRMED", "#,
            r#""event_time": "2026-10-07T{:02}:{:02}:{:02}Z"}}"#
        ),
        number,
        spread % 10_000,
        100 + spread % 900,
        AIRPORTS[spread % 6],
        AIRPORTS[(spread / 6) % 6],
        1 + spread % 2_000,
        spread % 100,
        spread % 24,
        spread % 60,
        (spread / 60) % 60,
    )
}

/// Lines of bookings.
pub(crate) fn lines(count: usize) -> String {
    (0..count).fold(String::with_capacity(count * 240), |mut lines, number| {
        writeln!(lines, "{}", booking(number)).expect("writing to a string cannot fail");
        lines
    })
}
