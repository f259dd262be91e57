//! The host's side of `wit/rules.wit`, generated.

#![expect(missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "validator",
    ownership: Borrowing { duplicate_if_necessary: true },
    imports: { default: trappable },
});
