//! The allocator of a component: lists of free blocks for small sizes, the standard library's for the rest.
//!
//! A verdict is a dozen short texts, each allocated on its own because the contract hands them over one by one. With the standard library's
//! allocator that is a tenth of the cost of an event. Here a small block is taken from, and put back on, the list of its size.
//!
//! Blocks keep their size until the instance ends, after some hundred events. So an instance holds at most the sum over the sizes of what it
//! ever needed of each at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

/// Blocks have 16, 32, … 1,024 bytes.
const CLASSES: usize = 7;
const SMALLEST: usize = 16;
const LARGEST: usize = SMALLEST << (CLASSES - 1);
/// What is taken from the standard library's allocator at once, and cut into blocks.
const CHUNK: usize = 16 * 1024;

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: SmallBlocks = SmallBlocks::new();

struct SmallBlocks {
    /// The first free block of each size; each free block begins with a pointer to the next one.
    free: [Cell<*mut u8>; CLASSES],
    /// Where the rest of the newest chunk begins, and its size.
    chunk: Cell<*mut u8>,
    left: Cell<usize>,
}

// SAFETY: a component has one thread: the contract has no way to start another.
#[cfg(target_arch = "wasm32")]
unsafe impl Sync for SmallBlocks {}

/// The list that a layout's blocks are on, if it is a small one. It is the same for allocation and deallocation.
#[inline]
fn class(layout: Layout) -> Option<usize> {
    let size = layout.size();
    (size <= LARGEST && layout.align() <= SMALLEST).then(|| {
        let bits = usize::BITS - (size.saturating_sub(1) | (SMALLEST - 1)).leading_zeros();
        (bits - SMALLEST.trailing_zeros()) as usize
    })
}

impl SmallBlocks {
    const fn new() -> Self {
        Self {
            free: [const { Cell::new(ptr::null_mut()) }; CLASSES],
            chunk: Cell::new(ptr::null_mut()),
            left: Cell::new(0),
        }
    }

    /// A block that no list has, cut off the newest chunk.
    #[cold]
    fn cut(&self, class: usize) -> *mut u8 {
        let size = SMALLEST << class;
        if self.left.get() < size {
            // What is left of the old chunk is too small to matter.
            // SAFETY: the alignment is a power of two, and the size is not zero and far from overflowing.
            let chunk = unsafe { System.alloc(Layout::from_size_align_unchecked(CHUNK, SMALLEST)) };
            if chunk.is_null() {
                return chunk;
            }
            self.chunk.set(chunk);
            self.left.set(CHUNK);
        }
        let block = self.chunk.get();
        self.chunk.set(block.wrapping_add(size));
        self.left.set(self.left.get() - size);
        block
    }
}

// SAFETY: a block is `SMALLEST << class` bytes, at least the layout's size, and aligned to `SMALLEST`, since chunks are and all sizes are
// multiples of it. It is on one list or in use, never both. All else is `System`'s.
#[expect(clippy::cast_ptr_alignment, reason = "blocks are aligned for a pointer")]
unsafe impl GlobalAlloc for SmallBlocks {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class(layout) else {
            // SAFETY: the caller keeps the promises of `GlobalAlloc`.
            return unsafe { System.alloc(layout) };
        };
        let block = self.free[class].get();
        if block.is_null() {
            return self.cut(class);
        }
        // SAFETY: a free block begins with a pointer, written by `dealloc`; blocks are aligned for one.
        self.free[class].set(unsafe { block.cast::<*mut u8>().read() });
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(class) = class(layout) else {
            // SAFETY: the caller keeps the promises of `GlobalAlloc`, and `alloc` took this layout from `System` too.
            return unsafe { System.dealloc(block, layout) };
        };
        // SAFETY: the block is ours, no longer in use, and has room and alignment for a pointer.
        unsafe { block.cast::<*mut u8>().write(self.free[class].get()) };
        self.free[class].set(block);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size fits the alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (class(layout), class(new_layout)) {
            // SAFETY: the caller keeps the promises of `GlobalAlloc`, and both layouts are `System`'s.
            (None, None) => unsafe { System.realloc(block, layout, new_size) },
            (Some(old), Some(new)) if old == new => block,
            // SAFETY: as above; the two blocks are distinct and have room for the smaller size.
            _ => unsafe {
                let new_block = self.alloc(new_layout);
                if !new_block.is_null() {
                    ptr::copy_nonoverlapping(block, new_block, layout.size().min(new_size));
                    self.dealloc(block, layout);
                }
                new_block
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout};

    use proptest::prelude::*;

    use super::{LARGEST, SmallBlocks};

    #[derive(Clone, Debug)]
    enum Step {
        Allocate { size: usize, align: usize },
        Free(prop::sample::Index),
        Resize(prop::sample::Index, usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let size = || prop_oneof![1usize..80, 1..=LARGEST + 40];
        let step = prop_oneof![
            (size(), 0u32..6).prop_map(|(size, power)| Step::Allocate { size, align: 1 << power }),
            any::<prop::sample::Index>().prop_map(Step::Free),
            (any::<prop::sample::Index>(), size()).prop_map(|(which, size)| Step::Resize(which, size)),
        ];
        prop::collection::vec(step, 0..300)
    }

    /// A block in use, every byte of which is `fill`.
    struct Block {
        start: *mut u8,
        layout: Layout,
        fill: u8,
    }

    impl Block {
        fn new(start: *mut u8, layout: Layout, fill: u8) -> Self {
            assert_eq!(start.align_offset(layout.align()), 0);
            // SAFETY: the allocator gave room for the layout.
            unsafe { start.write_bytes(fill, layout.size()) };
            Self { start, layout, fill }
        }

        fn keeps(&self, bytes: usize) -> bool {
            // SAFETY: the block is in use, and all of it has been written.
            unsafe { std::slice::from_raw_parts(self.start, bytes) }.iter().all(|byte| *byte == self.fill)
        }
    }

    proptest! {
        #[test]
        fn no_block_touches_another(steps in steps()) {
            let allocator = SmallBlocks::new();
            let mut blocks: Vec<Block> = Vec::new();
            for (fill, step) in (0u8..=255).cycle().zip(steps) {
                match step {
                    Step::Allocate { size, align } => {
                        let layout = Layout::from_size_align(size, align).unwrap();
                        // SAFETY: the layout is not empty.
                        blocks.push(Block::new(unsafe { allocator.alloc(layout) }, layout, fill));
                    }
                    Step::Free(which) if !blocks.is_empty() => {
                        let block = blocks.swap_remove(which.index(blocks.len()));
                        // SAFETY: the block is in use and of that layout.
                        unsafe { allocator.dealloc(block.start, block.layout) };
                    }
                    Step::Resize(which, size) if !blocks.is_empty() => {
                        let block = blocks.swap_remove(which.index(blocks.len()));
                        // SAFETY: the block is in use and of that layout, and the new size is not zero.
                        let start = unsafe { allocator.realloc(block.start, block.layout, size) };
                        let moved = Block { start, ..block };
                        prop_assert!(moved.keeps(size.min(block.layout.size())));
                        let layout = Layout::from_size_align(size, block.layout.align()).unwrap();
                        blocks.push(Block::new(start, layout, fill));
                    }
                    Step::Free(_) | Step::Resize(..) => {}
                }
                prop_assert!(blocks.iter().all(|block| block.keeps(block.layout.size())));
            }
            for block in blocks {
                // SAFETY: the block is in use and of that layout.
                unsafe { allocator.dealloc(block.start, block.layout) };
            }
        }
    }

    #[test]
    fn a_freed_block_is_the_next_of_its_size() {
        let allocator = SmallBlocks::new();
        let (ten, sixteen) = (Layout::array::<u8>(10).unwrap(), Layout::array::<u8>(16).unwrap());
        // SAFETY: no layout is empty, and each block is freed once, with its own layout.
        unsafe {
            let block = allocator.alloc(ten);
            allocator.dealloc(block, ten);
            assert_eq!(allocator.alloc(sixteen), block);
            assert_ne!(allocator.alloc(ten), block);
        }
    }
}
