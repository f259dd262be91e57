//! The host's side of `wit/rules.wit`, generated.

#![expect(missing_docs, reason = "generated code; the contract documents it")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "validator",
    ownership: Borrowing { duplicate_if_necessary: true },
    imports: { default: trappable },
});
