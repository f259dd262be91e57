//! Lines that are no order.

/// What is wrong with a line. Each is one physical line and one rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    CustomerUnknown,
    NotADate,
    CustomerNotAvailable,
    StatusUnknown,
    FieldMissing,
    FieldTooMany,
    /// Nobody closes it: the next quote of the file opens a field, and what follows it is text, which no closed field has behind it.
    QuoteNeverClosed,
    NoSuchDay,
    NoCustomer,
    OrderInWords,
    PromotionInWords,
    NoTime,
}

use Fault::{
    CustomerNotAvailable, CustomerUnknown, FieldMissing, FieldTooMany, NoCustomer, NoSuchDay, NoTime, NotADate,
    OrderInWords, PromotionInWords, QuoteNeverClosed, StatusUnknown,
};

/// All of them, those that the seed shows first. Lines go through them in turn.
pub(super) const FAULTS: [Fault; 12] = [
    CustomerUnknown,
    NotADate,
    CustomerNotAvailable,
    StatusUnknown,
    FieldMissing,
    QuoteNeverClosed,
    NoSuchDay,
    FieldTooMany,
    NoCustomer,
    OrderInWords,
    PromotionInWords,
    NoTime,
];

impl Fault {
    /// The stage that the line is rejected at.
    pub(super) fn stage(self) -> &'static str {
        match self {
            FieldMissing | FieldTooMany | QuoteNeverClosed => "PARSE_CSV",
            CustomerUnknown | CustomerNotAvailable | NoCustomer | OrderInWords | PromotionInWords => {
                "SCHEMA_VALIDATION"
            }
            NotADate | NoSuchDay | NoTime => "EVENT_TIME_VALIDATION",
            StatusUnknown => "BUSINESS_RULE_VALIDATION",
        }
    }

    /// Puts it into the fields of an order.
    pub(super) fn put(self, fields: &mut Vec<String>) {
        let [order_id, customer_id, channel, order_ts, status, _, promo_id] = fields.as_mut_slice() else {
            unreachable!("an order has seven fields")
        };
        let (field, text) = match self {
            CustomerUnknown => (customer_id, "unknown"),
            CustomerNotAvailable => (customer_id, "N/A"),
            NoCustomer => (customer_id, ""),
            NotADate => (order_ts, "not a date"),
            NoSuchDay => (order_ts, "2026-02-30 10:00:00"),
            NoTime => (order_ts, ""),
            StatusUnknown => (status, "returned"),
            PromotionInWords => (promo_id, "SUMMER"),
            QuoteNeverClosed => (channel, "\"app"),
            // What makes a line unlike all others stays in it.
            OrderInWords => return order_id.insert_str(0, "order "),
            FieldMissing => return drop(fields.pop()),
            FieldTooMany => return fields.push("gift".to_owned()),
        };
        text.clone_into(field);
    }
}
