//! Builds of Offvia's booking rule that its author ships after the first one: each is an example of this package.
//!
//! They begin with the source of `offvia-booking`, not with the crate: that exports a component, and a component exports one rule.

#[path = "../../offvia-booking/src/booking.rs"]
mod booking;

pub use booking::Booking;
use preflight_sdk::prelude::*;

/// Version 0.2.0: as 0.1.0, with airports in upper case however they were written, and not from an airport to itself.
pub fn validate(event: &Event) -> Verdict<Booking> {
    let mut booking = booking::validate(event)?;
    booking.origin_airport.make_ascii_uppercase();
    booking.destination_airport.make_ascii_uppercase();
    if booking.origin_airport == booking.destination_airport {
        return reject(stage::BUSINESS_RULE_VALIDATION, "Invalid destination: destination must not be the origin");
    }
    Ok(booking)
}
