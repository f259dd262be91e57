//! The contract's bindings, generated from `wit/`. For the macros: a rule is written against the SDK's own types.

/// The world `validator`.
pub mod validator {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "validator",
        pub_export_macro: true,
        export_macro_name: "export_validator",
        default_bindings_module: "preflight_sdk::bindings::validator",
    });
}

/// The world `enricher`; types and imports are those of `validator`.
pub mod enricher {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "enricher",
        pub_export_macro: true,
        export_macro_name: "export_enricher",
        default_bindings_module: "preflight_sdk::bindings::enricher",
        with: {
            "preflight:rules/types@0.1.0": crate::bindings::validator::preflight::rules::types,
            "preflight:rules/lookup@0.1.0": crate::bindings::validator::preflight::rules::lookup,
            "preflight:rules/log@0.1.0": crate::bindings::validator::preflight::rules::log,
        },
    });
}
