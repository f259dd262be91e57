//! Ways to hang, to die and to eat memory.

use std::hint::black_box;
use std::num::NonZeroU32;

/// Turns of an empty loop. README.md says what one costs.
pub(crate) fn spin(turns: usize) {
    for turn in 0..turns {
        black_box(turn);
    }
}

pub(crate) fn spin_for_ever() -> ! {
    loop {
        black_box(());
    }
}

/// Allocates a mebibyte after the other and keeps all of them.
pub(crate) fn allocate_for_ever() -> ! {
    loop {
        touched(1 << 20).leak();
    }
}

/// Allocates `bytes`, writes to each of their pages, and frees them.
pub(crate) fn allocate(bytes: usize) {
    drop(touched(bytes));
}

/// Room for `bytes`, with something written to each page. Writing to each byte would cost a unit of fuel each, and fuel would end first.
fn touched(bytes: usize) -> Vec<u8> {
    let mut room = Vec::with_capacity(bytes);
    for page in room.spare_capacity_mut().chunks_mut(4096) {
        page[0].write(1);
    }
    black_box(room)
}

/// Recurses `depth` times with frames so small that the engine's stack ends before the one in linear memory does.
#[inline(never)]
pub(crate) fn recurse(depth: usize) -> usize {
    match black_box(depth) {
        0 => 0,
        depth => black_box(recurse(depth - 1)).wrapping_add(1),
    }
}

/// Recurses for ever with frames so big that the stack in linear memory ends before the engine's does: out of bounds, below address 0.
#[inline(never)]
#[expect(unconditional_recursion, clippy::large_stack_arrays, reason = "that is what it is for")]
pub(crate) fn recurse_big(depth: usize) -> usize {
    let frame = black_box([1u8; 32 * 1024]);
    black_box(recurse_big(depth.wrapping_add(1))).wrapping_add(frame[depth % frame.len()].into())
}

/// Executes `unreachable`, without a panic before it.
pub(crate) fn trap() -> ! {
    core::arch::wasm32::unreachable()
}

/// Divides by zero, so that the instruction traps.
pub(crate) fn divide() -> u32 {
    // SAFETY: the promise is broken on purpose: a check would panic before the division could trap.
    let zero = unsafe { NonZeroU32::new_unchecked(black_box(0)) };
    black_box(black_box(1) / zero)
}

/// Reads beyond the end of memory.
pub(crate) fn read_out_of_bounds() -> u8 {
    let beyond: *const u8 = std::ptr::without_provenance(black_box(usize::MAX - 8));
    // SAFETY: there is no such memory, on purpose: the engine traps.
    unsafe { beyond.read_volatile() }
}
