//! Offvia's booking events, version 2: the fare carries its currency, airports are IATA codes, and a booking may have a loyalty tier.
//!
//! All else is as in version 1, and so is the table: one more column, which version 1 leaves null.

use preflight_sdk::prelude::*;

row!(
    /// One validated booking, as in `offvia_silver.fact_bookings` with the column `loyalty_tier` added.
    pub struct Booking {
        pub booking_id: Text,
        pub passenger_id: Text,
        pub flight_number: Text,
        pub origin_airport: Text,
        pub destination_airport: Text,
        pub fare_amount: Numeric,
        pub currency: Text,
        pub booking_status: Text,
        pub event_timestamp: EventTime,
        pub loyalty_tier: Option<Text>,
    }
);

validator!(validate, event_versions: ["2"]);

/// Every booking has its ids, two airports, a fare above zero and a time with an offset.
pub fn validate(event: &Event) -> Verdict<Booking> {
    let booking = event.json()?;
    require!(booking => booking_id, passenger_id, flight_number, origin, destination, fare, event_time);
    if let Some(currency) = booking.get("currency") {
        // Ignoring it would turn a version 1 producer's euros into the default dollars.
        return Err(currency.error("must be a part of fare in version 2").into());
    }

    let (fare_amount, currency) = read_fare(fare)?;
    let event_time = event_time.timestamp().or_reject(stage::EVENT_TIME_VALIDATION, "Invalid event_time")?;

    Ok(Booking {
        booking_id: booking_id.text()?,
        passenger_id: passenger_id.text()?,
        flight_number: flight_number.text()?,
        origin_airport: airport_code(origin)?,
        destination_airport: airport_code(destination)?,
        fare_amount,
        currency,
        booking_status: booking.text_or("status", "CONFIRMED")?,
        event_timestamp: event_time.into(),
        loyalty_tier: booking.opt_text("loyalty_tier")?,
    })
}

/// Amount and currency of `{"amount": …, "currency": …}`; the currency defaults to US dollars, as in version 1.
fn read_fare(fare: Field<'_>) -> Verdict<(Numeric, Text)> {
    let fare = fare.object().or_reject(stage::BUSINESS_RULE_VALIDATION, "Invalid fare")?;
    let Some(amount) = fare.get("amount") else {
        return reject(stage::SCHEMA_VALIDATION, "Missing required fields: fare.amount");
    };
    let amount = amount.numeric().or_reject(stage::BUSINESS_RULE_VALIDATION, "Invalid fare")?;
    if amount <= Numeric::ZERO {
        return reject(stage::BUSINESS_RULE_VALIDATION, "Invalid fare: amount must be greater than zero");
    }
    Ok((amount, fare.text_or("currency", "USD")?))
}

/// An IATA airport code, in upper case.
fn airport_code(field: Field<'_>) -> Result<Text, FieldError> {
    let code = field.text()?;
    if code.len() == 3 && code.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        Ok(code.to_ascii_uppercase())
    } else {
        Err(field.found("must be an IATA code of three letters", &code))
    }
}

#[cfg(test)]
mod tests;
