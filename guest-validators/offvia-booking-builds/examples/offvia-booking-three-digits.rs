//! Version 0.3.0: wants three digits of a flight number. So have all in the fixtures; in the world, many have four.

use offvia_booking_builds::Booking;
use preflight_sdk::prelude::*;

validator!(validate, event_versions: ["1"], name: "offvia-booking", version: "0.3.0");

fn validate(event: &Event) -> Verdict<Booking> {
    let booking = offvia_booking_builds::validate(event)?;
    let digits = booking.flight_number.strip_prefix("OF-");
    if !digits.is_some_and(|digits| digits.len() == 3 && digits.bytes().all(|digit| digit.is_ascii_digit())) {
        let reason = "Invalid flight_number: flight_number must be OF- and three digits";
        return reject(stage::BUSINESS_RULE_VALIDATION, reason);
    }
    Ok(booking)
}
