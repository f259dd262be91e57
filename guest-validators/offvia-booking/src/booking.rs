//! The row, and what makes a booking a good one. Apart from the export, so that later builds of this rule begin with it.

use preflight_sdk::prelude::*;

row!(
    /// One validated booking, as in `offvia_silver.fact_bookings`; the host adds ingestion time and message id.
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
    }
);

/// Every booking has its ids, a fare above zero and a time with an offset.
pub fn validate(event: &Event) -> Verdict<Booking> {
    let booking = event.json()?;
    require!(booking => booking_id, passenger_id, flight_number, origin, destination, fare, event_time);

    let fare_amount = fare.numeric().or_reject(stage::BUSINESS_RULE_VALIDATION, "Invalid fare")?;
    if fare_amount <= Numeric::ZERO {
        return reject(stage::BUSINESS_RULE_VALIDATION, "Invalid fare: fare must be greater than zero");
    }
    let event_time = event_time.timestamp().or_reject(stage::EVENT_TIME_VALIDATION, "Invalid event_time")?;

    Ok(Booking {
        booking_id: booking_id.text()?,
        passenger_id: passenger_id.text()?,
        flight_number: flight_number.text()?,
        origin_airport: origin.text()?,
        destination_airport: destination.text()?,
        fare_amount,
        currency: booking.text_or("currency", "USD")?,
        booking_status: booking.text_or("status", "CONFIRMED")?,
        event_timestamp: event_time.into(),
    })
}
