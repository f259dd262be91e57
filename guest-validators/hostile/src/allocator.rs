//! An allocator that misbehaves on demand.
//!
//! The host calls into the component's allocator before a call, to pass the event, and after it, to give the verdict's memory back
//! (`cabi_realloc` and the post-return function). These are guest code too, and may hang, trap, call an import, which the component ABI
//! forbids there, or hand out memory that does not exist.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::bindings::preflight::rules::log::{self, Level};
use crate::faults;

/// What the allocator does when the host calls it.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Misbehaviour {
    SpinInRealloc = 1,
    TrapInRealloc = 2,
    BadPointerFromRealloc = 3,
    SpinInPostReturn = 4,
    TrapInPostReturn = 5,
    LogInRealloc = 6,
    LogInPostReturn = 7,
}

impl Misbehaviour {
    /// The misbehaviour that a directive asks for.
    pub(crate) fn named(directive: &str) -> Option<Self> {
        Some(match directive {
            "spin-in-realloc" => Self::SpinInRealloc,
            "trap-in-realloc" => Self::TrapInRealloc,
            "bad-pointer-from-realloc" => Self::BadPointerFromRealloc,
            "spin-in-post-return" => Self::SpinInPostReturn,
            "trap-in-post-return" => Self::TrapInPostReturn,
            "log-in-realloc" => Self::LogInRealloc,
            "log-in-post-return" => Self::LogInPostReturn,
            _ => return None,
        })
    }
}

static MISBEHAVIOUR: AtomicU8 = AtomicU8::new(0);
/// Whether the rule itself runs, which needs an allocator that works.
static RULE_RUNS: AtomicU8 = AtomicU8::new(0);

#[global_allocator]
static ALLOCATOR: Hostile = Hostile;

struct Hostile;

/// Runs the rule, with an allocator that behaves.
pub(crate) fn behaving<R>(rule: impl FnOnce() -> R) -> R {
    RULE_RUNS.store(1, Ordering::Relaxed);
    let result = rule();
    RULE_RUNS.store(0, Ordering::Relaxed);
    result
}

/// Misbehaves from the end of this call on.
pub(crate) fn misbehave(how: Misbehaviour) {
    MISBEHAVIOUR.store(how as u8, Ordering::Relaxed);
}

/// Only texts and payloads have an alignment of 1. So what the bindings need to hand over a verdict, a list of values, does not misbehave.
fn asked_for(how: Misbehaviour, layout: Layout) -> bool {
    let asked_for = MISBEHAVIOUR.load(Ordering::Relaxed) == how as u8;
    asked_for && RULE_RUNS.load(Ordering::Relaxed) == 0 && layout.align() == 1
}

// SAFETY: all memory comes from and goes to `System`, but for a pointer that is bad on purpose.
unsafe impl GlobalAlloc for Hostile {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if asked_for(Misbehaviour::SpinInRealloc, layout) {
            faults::spin_for_ever();
        }
        if asked_for(Misbehaviour::TrapInRealloc, layout) {
            faults::trap();
        }
        if asked_for(Misbehaviour::LogInRealloc, layout) {
            log::emit(Level::Info, "");
        }
        if asked_for(Misbehaviour::BadPointerFromRealloc, layout) {
            return std::ptr::without_provenance_mut(usize::MAX - 16);
        }
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if asked_for(Misbehaviour::SpinInPostReturn, layout) {
            faults::spin_for_ever();
        }
        if asked_for(Misbehaviour::TrapInPostReturn, layout) {
            faults::trap();
        }
        if asked_for(Misbehaviour::LogInPostReturn, layout) {
            log::emit(Level::Info, "");
        }
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}
