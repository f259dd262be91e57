//! Version 0.2.0, which is good.

preflight_sdk::validator!(
    offvia_booking_builds::validate, event_versions: ["1"], name: "offvia-booking", version: "0.2.0"
);
