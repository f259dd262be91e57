//! The wasm export of a rule, in one line: [`validator!`](crate::validator!) or [`enricher!`](crate::enricher!).
//!
//! The export exists in a component only. Natively the macros leave `manifest()` and all their checks, so `cargo check` and a rule's unit
//! tests need no wasm at all.

#[cfg(target_arch = "wasm32")]
mod component;

#[cfg(target_arch = "wasm32")]
pub use component::{HostLookup, describe, enrich, validate};

#[cfg(test)]
mod tests;

/// Makes a function the validator that the component exports.
///
/// `fn validate(event: &Event) -> Verdict<R>`, or with `tables:` `fn validate(event: &Event, tables: &dyn Lookup) -> Verdict<R>`, where `R`
/// is a [`row!`](crate::row!). What can be given, in this order:
///
/// | | |
/// | --- | --- |
/// | `event_versions: ["1"]` | the event versions that the rule judges: at least one |
/// | `attributes: ["source"]` | the attributes that it reads; each costs as much as a column, so none by default |
/// | `tables: [AIRPORTS]` | constants of type [`Table`](crate::lookup::Table) that it looks things up in |
/// | `name: "…"`, `version: "…"` | of the rule; the package's by default |
///
/// It also adds `fn manifest() -> Manifest` to the crate.
///
/// ```
/// use preflight_sdk::prelude::*;
///
/// row!(pub struct Sale { pub id: Text });
/// validator!(validate, event_versions: ["1", "2"], attributes: ["shop"], name: "sales");
///
/// fn validate(event: &Event) -> Verdict<Sale> {
///     let sale = event.json()?;
///     require!(sale => id);
///     Ok(Sale { id: id.text()? })
/// }
///
/// # fn main() {
/// assert_eq!(manifest().name, "sales");
/// # }
/// ```
///
/// A rule for no event version does not compile, nor does one that names a version twice:
///
/// ```compile_fail
/// use preflight_sdk::prelude::*;
/// row!(pub struct Sale { pub id: Text });
/// validator!(validate, event_versions: []);
/// fn validate(_: &Event) -> Verdict<Sale> { ignore("") }
/// fn main() {}
/// ```
///
/// ```compile_fail
/// use preflight_sdk::prelude::*;
/// row!(pub struct Sale { pub id: Text });
/// validator!(validate, event_versions: ["1", "1"]);
/// fn validate(_: &Event) -> Verdict<Sale> { ignore("") }
/// fn main() {}
/// ```
#[macro_export]
macro_rules! validator {
    (
        $validate:path, event_versions: [$($event_version:literal),* $(,)?]
        $(, attributes: [$($attribute:literal),* $(,)?])?
        $(, name: $name:literal)? $(, version: $version:literal)? $(,)?
    ) => {
        $crate::__manifest! {
            with_output($validate), [$($event_version),*], [$($($attribute),*)?], [], [$($name)?], [$($version)?]
        }
        $crate::__export_validator!(|event| $validate(event));
        const _: () = $crate::manifest::check_names(&[$($event_version),*], false);
    };
    (
        $validate:path, event_versions: [$($event_version:literal),* $(,)?]
        $(, attributes: [$($attribute:literal),* $(,)?])?, tables: [$($table:path),* $(,)?]
        $(, name: $name:literal)? $(, version: $version:literal)? $(,)?
    ) => {
        $crate::__manifest! {
            with_output_of_lookup($validate), [$($event_version),*], [$($($attribute),*)?], [$($table),*], [$($name)?], [$($version)?]
        }
        $crate::__export_validator!(|event| $validate(event, &$crate::export::HostLookup));
        const _: () = $crate::manifest::check_names(&[$($event_version),*], false);
    };
}

/// Makes a function the enricher that the component exports.
///
/// `fn enrich(input: I, tables: &dyn Lookup) -> Verdict<R>`: the columns of `I` are those it reads, the columns of `R` those it adds. With
/// `tables: [AIRPORTS]`, `name:` and `version:` as in [`validator!`](crate::validator!).
///
/// ```
/// use preflight_sdk::prelude::*;
///
/// row!(pub struct Route { pub origin_airport: Text });
/// row!(pub struct Origin { pub origin_city: Option<Text> });
/// row!(pub struct Airport { pub city: Text });
/// const AIRPORTS: Table<Text, Airport> = Table::new("airports");
/// enricher!(enrich, tables: [AIRPORTS]);
///
/// fn enrich(route: Route, tables: &dyn Lookup) -> Verdict<Origin> {
///     let airport = AIRPORTS.get(tables, route.origin_airport)?;
///     Ok(Origin { origin_city: airport.map(|airport| airport.city) })
/// }
///
/// # fn main() {
/// assert_eq!(manifest().inputs[0].name, "origin_airport");
/// # }
/// ```
#[macro_export]
macro_rules! enricher {
    ($enrich:path $(, tables: [$($table:path),* $(,)?])? $(, name: $name:literal)? $(, version: $version:literal)? $(,)?) => {
        $crate::__manifest! { with_input_and_output($enrich), [], [], [$($($table),*)?], [$($name)?], [$($version)?] }
        $crate::__export_enricher!($enrich);
    };
}

/// The function `manifest` that both macros add.
#[doc(hidden)]
#[macro_export]
macro_rules! __manifest {
    (
        $with_columns:ident($rule:path), [$($event_version:literal),*], [$($attribute:literal),*], [$($table:path),*],
        [$($name:literal)?], [$($version:literal)?]
    ) => {
        /// What this rule says of itself.
        pub(crate) fn manifest() -> $crate::manifest::Manifest {
            $crate::manifest::Manifest {
                name: $crate::__or!([$($name)?] ::core::env!("CARGO_PKG_NAME")),
                version: $crate::__or!([$($version)?] ::core::env!("CARGO_PKG_VERSION")),
                event_versions: &[$($event_version),*],
                attributes: &[$($attribute),*],
                inputs: &[],
                columns: &[],
                event_time: ::core::option::Option::None,
                tables: ::std::vec![$($table.describe()),*],
            }
            .$with_columns($rule)
        }

        // Checks the function's signature natively too.
        const _: fn() -> $crate::manifest::Manifest = manifest;
        const _: () = $crate::manifest::check_names(&[$($attribute),*], true);
        const _: () = $crate::manifest::check_names(&[$($table.describe().name),*], true);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __or {
    ([] $default:expr) => {
        $default
    };
    ([$given:literal] $default:expr) => {
        $given
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_validator {
    ($judge:expr) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::bindings::validator as bindings;

            struct Component;

            impl bindings::exports::preflight::rules::validation::Guest for Component {
                fn describe() -> bindings::preflight::rules::types::Manifest {
                    $crate::export::describe(&manifest())
                }

                fn validate(
                    event: bindings::preflight::rules::types::Event,
                ) -> bindings::preflight::rules::types::Verdict {
                    $crate::export::validate(event, $judge)
                }
            }

    bindings::export_validator!(Component with_types_in bindings);
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_enricher {
    ($enrich:path) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::bindings::enricher as bindings;
            use $crate::bindings::validator::preflight::rules::types;

            struct Component;

            impl bindings::exports::preflight::rules::enrichment::Guest for Component {
                fn describe() -> types::Manifest {
                    $crate::export::describe(&manifest())
                }

                fn enrich(inputs: types::Row) -> types::Verdict {
                    $crate::export::enrich(inputs, $enrich)
                }
            }

    bindings::export_enricher!(Component with_types_in bindings);
        };
    };
}
