//! Version 0.2.1: rounds fares to cents, as if there were no others. The fixtures know better.

use offvia_booking_builds::Booking;
use preflight_sdk::prelude::*;

validator!(validate, event_versions: ["1"], name: "offvia-booking", version: "0.2.1");

fn validate(event: &Event) -> Verdict<Booking> {
    let booking = offvia_booking_builds::validate(event)?;
    Ok(Booking { fare_amount: booking.fare_amount.round_dp(2), ..booking })
}
