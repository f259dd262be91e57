//! A component that misbehaves as its events tell it to, so that the sandbox can be tested.
//!
//! The payload names the misbehaviour: `NAME` or `NAME:ARGUMENT`. README.md lists them. The crate is written on the contract's bindings and
//! not on the SDK, whose types would not let it break its own manifest. Natively nothing is left of it but the tests of `directive`.

#[cfg(any(target_arch = "wasm32", test))]
mod directive;

#[cfg(target_arch = "wasm32")]
mod allocator;
#[cfg(target_arch = "wasm32")]
#[expect(clippy::same_length_and_capacity, reason = "generated: what the host hands over has no room to spare")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "validator" });
}
#[cfg(target_arch = "wasm32")]
mod faults;
#[cfg(target_arch = "wasm32")]
mod manifest;
#[cfg(target_arch = "wasm32")]
mod rows;
#[cfg(target_arch = "wasm32")]
mod rule;
