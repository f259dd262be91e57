//! Lumen & Loom's order events: what was sold, where, on which channel, for how much, and when.
//!
//! README.md says what an event looks like, and what was decided where the seed says nothing.

use preflight_sdk::prelude::*;

/// Where an order can come from.
const CHANNELS: [&str; 3] = ["web", "app", "store"];

row!(
    /// One order of one article, as in `lumen_silver.orders`.
    pub struct Order {
        pub event_id: Text,
        pub sku: Text,
        /// None where the seller has no region, as a pop-up store.
        pub region: Option<Text>,
        pub channel: Text,
        /// None for a guest.
        pub customer_id: Option<Text>,
        pub quantity: i64,
        pub revenue: Numeric,
        pub occurred_at: EventTime,
    }
);

validator!(validate, event_versions: ["1"]);

/// An order has its ids, a known channel, at least one piece, revenue that is not negative, and a time with an offset.
pub fn validate(event: &Event) -> Verdict<Order> {
    let order = event.json()?;
    require!(order => event_id, sku, channel, quantity, revenue, occurred_at);

    let channel = known_channel(channel).or_reject(stage::BUSINESS_RULE_VALIDATION, "Invalid channel")?;
    let quantity = quantity.int64().or_reject(stage::BUSINESS_RULE_VALIDATION, "Invalid quantity")?;
    if quantity < 1 {
        return reject(stage::BUSINESS_RULE_VALIDATION, "Invalid quantity: quantity must be at least 1");
    }
    let revenue = revenue.numeric().or_reject(stage::BUSINESS_RULE_VALIDATION, "Invalid revenue")?;
    if revenue < Numeric::ZERO {
        return reject(stage::BUSINESS_RULE_VALIDATION, "Invalid revenue: revenue must not be negative");
    }
    let occurred_at = occurred_at.timestamp().or_reject(stage::EVENT_TIME_VALIDATION, "Invalid occurred_at")?;

    Ok(Order {
        event_id: event_id.text()?,
        sku: sku.text()?,
        region: order.opt_text("region")?,
        channel,
        customer_id: order.opt_text("customer_id")?,
        quantity,
        revenue,
        occurred_at: occurred_at.into(),
    })
}

/// A channel, as it is written in [`CHANNELS`].
fn known_channel(field: Field<'_>) -> Result<Text, FieldError> {
    let channel = field.text()?;
    if CHANNELS.contains(&channel.as_str()) {
        Ok(channel)
    } else {
        Err(field.found("must be one of web, app, store", &channel))
    }
}

#[cfg(test)]
mod tests;
