//! From what wasmtime reports to the fault that is recorded.
//!
//! The order matters: a refused allocation shows as a panic, last words come before the trap they explain.

use super::store::{Guest, UndeclaredTable};
use crate::verdict::{Fault, FaultCode};
use wasmtime::Trap;

/// What the host itself could not do. Never the event's fault: the call is repeated later.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox failed: {0}")]
pub struct SandboxError(pub String);

impl From<wasmtime::Error> for SandboxError {
    fn from(error: wasmtime::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

/// wasmtime's words when a guest passes more data than `limits.result`; its error type is private.
const HOSTCALL_FUEL: &str = "fuel allocated for hostcalls has been exhausted";

/// Names the fault behind an error of a call into a guest.
pub(super) fn classify(error: &wasmtime::Error, guest: &mut Guest) -> Result<Fault, SandboxError> {
    if let Some(denied) = guest.limiter.denied.take() {
        let what = denied.what;
        let detail = format!("the rule asked for {} of {what}, the limit is {}", denied.requested, denied.limit);
        return Ok(Fault::new(FaultCode::Memory, detail));
    }
    if let Some(undeclared) = error.downcast_ref::<UndeclaredTable>() {
        return Ok(Fault::new(FaultCode::Import, undeclared.to_string()));
    }
    if error.is::<wasmtime::OutOfMemory>() {
        return Err(SandboxError(format!("{error:#}")));
    }
    let Some(trap) = error.downcast_ref::<Trap>() else {
        return Ok(abi(error));
    };
    Ok(match trap {
        Trap::OutOfFuel => Fault::new(FaultCode::Fuel, "the rule used up the fuel of this event"),
        Trap::Interrupt => Fault::new(FaultCode::WallClock, "the rule ran longer than `limits.wall_clock`"),
        Trap::StackOverflow => Fault::new(FaultCode::Stack, "the rule's call stack overflowed"),
        Trap::UnreachableCodeReached => Fault::new(
            FaultCode::Panic,
            guest.last_words.take().unwrap_or_else(|| "the rule reached `unreachable` without last words".into()),
        ),
        Trap::StringOutOfBounds
        | Trap::ListOutOfBounds
        | Trap::InvalidChar
        | Trap::InvalidDiscriminant
        | Trap::UnalignedPointer => Fault::new(FaultCode::Abi, format!("the rule broke the component ABI: {trap}")),
        // Also a panic there: a panic hook calls `log.panicked`.
        Trap::CannotLeaveComponent => Fault::new(
            FaultCode::Abi,
            "the rule broke the component ABI: it called an import from cabi_realloc or post-return (the panic hook does too)",
        ),
        Trap::CannotEnterComponent => {
            return Err(SandboxError(format!("a store was used again after a trap: {trap}")));
        }
        other => Fault::new(FaultCode::Trap, format!("the rule trapped: {other}")),
    })
}

/// Errors that are not traps come from lifting what the guest passed.
fn abi(error: &wasmtime::Error) -> Fault {
    let text = format!("{error:#}");
    let detail = if text.contains(HOSTCALL_FUEL) {
        "the rule returned more data than `limits.result` allows".to_owned()
    } else {
        format!("the rule broke the component ABI: {text}")
    };
    Fault::new(FaultCode::Abi, detail)
}
