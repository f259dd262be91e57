//! Version 0.3.1: panics at a currency that it does not know. The fixtures hold none of those.

use offvia_booking_builds::Booking;
use preflight_sdk::prelude::*;

validator!(validate, event_versions: ["1"], name: "offvia-booking", version: "0.3.1");

const CURRENCIES: [&str; 3] = ["EUR", "GBP", "USD"];

fn validate(event: &Event) -> Verdict<Booking> {
    let booking = offvia_booking_builds::validate(event)?;
    let currency = CURRENCIES.iter().find(|currency| **currency == booking.currency);
    Ok(Booking { currency: (*currency.expect("we sell in euros, pounds and dollars")).to_owned(), ..booking })
}
