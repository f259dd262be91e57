//! Required fields, bound by name.

/// Binds the named fields of an object to variables of the same names, or rejects the event with all that are missing.
///
/// `require!(booking => booking_id, fare);` is `let` for `booking_id` and `fare`, each a [`Field`](crate::json::Field). A field that is
/// missing rejects the event: `SCHEMA_VALIDATION`, `Missing required fields: booking_id, fare`, sorted; one that is null does with
/// `Required fields must not be null: fare`. A key that is no Rust name, or should have another one here, is written `"event-time" as time`.
///
/// ```
/// use preflight_sdk::prelude::*;
///
/// fn total(event: &Event) -> Verdict<Numeric> {
///     let order = event.json()?;
///     require!(order => net, "value-added-tax" as tax);
///     Ok(net.numeric()? + tax.numeric()?)
/// }
///
/// assert_eq!(total(&Event::new(r#"{"net": 100, "value-added-tax": "19.00"}"#)), Ok(119.into()));
/// let Err(NotAccepted::Reject(rejection)) = total(&Event::new("{}")) else { panic!() };
/// assert_eq!(rejection.reason, "Missing required fields: net, value-added-tax");
/// ```
#[macro_export]
macro_rules! require {
    // Names and variables come from the same tokens, so origin and destination cannot be swapped.
    (@bind $object:expr => [$($key:expr, $variable:ident;)+]) => {
        let [$($variable),+] = $object.required([$($key),+])?;
    };
    (@bind $object:expr => [$($done:tt)*] $key:literal as $variable:ident $(, $($rest:tt)*)?) => {
        $crate::require!(@bind $object => [$($done)* $key, $variable;] $($($rest)*)?);
    };
    (@bind $object:expr => [$($done:tt)*] $field:ident $(, $($rest:tt)*)?) => {
        $crate::require!(@bind $object => [$($done)* $crate::require::name(::core::stringify!($field)), $field;] $($($rest)*)?);
    };
    ($object:expr => $($fields:tt)+) => {
        $crate::require!(@bind $object => [] $($fields)+);
    };
}

/// A variable's name as a key: `r#type` is the key `type`.
#[doc(hidden)]
pub fn name(variable: &'static str) -> &'static str {
    variable.strip_prefix("r#").unwrap_or(variable)
}
