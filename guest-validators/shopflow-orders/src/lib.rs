//! ShopFlow's orders: lines of a CSV file, cleaned as the shop's Beam pipeline cleans them.
//!
//! The host hands a record over as a JSON object of strings, one for each column. README.md says what is cleaned, what is refused, and where
//! this rule differs from the pipeline on purpose.

mod read;

use preflight_sdk::prelude::*;
use read::{integer, utc};

/// What an order can be. Nothing else is one.
const STATUSES: [&str; 4] = ["placed", "shipped", "delivered", "cancelled"];
/// The currency of an order that names none.
const CURRENCY: &str = "USD";

row!(
    /// One order, as in `shopflow_silver.orders`.
    pub struct Order {
        pub order_id: i64,
        pub customer_id: i64,
        /// Lower case.
        pub channel: Text,
        /// When it was placed, by a clock that shows UTC.
        pub order_ts: EventTime,
        /// One of placed, shipped, delivered, cancelled.
        pub status: Text,
        /// Upper case; USD where the line has none.
        pub currency: Text,
        /// None for an order without a promotion.
        pub promo_id: Option<i64>,
    }
);

validator!(validate, event_versions: ["1"]);

/// An order has integers for ids, a time of the calendar and a known status; the rest is cleaned.
pub fn validate(event: &Event) -> Verdict<Order> {
    let order = event.json()?;
    require!(order => order_id, customer_id, channel, order_ts, status);

    Ok(Order {
        order_id: integer(order_id, &order_id.any_text()?)?,
        customer_id: integer(customer_id, &customer_id.any_text()?)?,
        channel: channel.any_text()?.trim().to_lowercase(),
        order_ts: utc(order_ts).or_reject(stage::EVENT_TIME_VALIDATION, "Invalid order_ts")?.into(),
        status: known_status(status).or_reject(stage::BUSINESS_RULE_VALIDATION, "Invalid status")?,
        currency: currency(&order)?,
        promo_id: promotion(&order)?,
    })
}

/// A status as it is written in [`STATUSES`].
fn known_status(field: Field<'_>) -> Result<Text, FieldError> {
    let text = field.any_text()?;
    let known = STATUSES.into_iter().find(|known| known.eq_ignore_ascii_case(text.trim()));
    known.map(str::to_owned).ok_or_else(|| field.found("must be one of placed, shipped, delivered, cancelled", &text))
}

fn currency(order: &Object<'_>) -> Result<Text, FieldError> {
    let text = order.get("currency").map(Field::any_text).transpose()?.unwrap_or_default();
    let currency = text.trim();
    Ok(if currency.is_empty() { CURRENCY.to_owned() } else { currency.to_uppercase() })
}

fn promotion(order: &Object<'_>) -> Result<Option<i64>, FieldError> {
    let Some(field) = order.get("promo_id") else {
        return Ok(None);
    };
    let text = field.any_text()?;
    if text.trim().is_empty() { Ok(None) } else { integer(field, &text).map(Some) }
}

#[cfg(test)]
mod tests;
