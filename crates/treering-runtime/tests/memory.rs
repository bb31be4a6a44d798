//! Memory is attributed to what runs, to the last byte.

mod live;

use std::alloc::{GlobalAlloc, Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::sync::Mutex;

use live::Live;
use treering_runtime::{Allocator, Options, scope};

#[global_allocator]
static ALLOCATOR: Allocator<Checked> = Allocator::around(Checked);

/// The system's allocator, which checks that blocks come back with the layout that they left with.
struct Checked;

/// Bytes behind every block, for its size and alignment.
const BEHIND: usize = 16;

impl Checked {
    fn with_room(layout: Layout) -> Option<Layout> {
        Layout::from_size_align(layout.size().checked_add(BEHIND)?, layout.align()).ok()
    }
}

// SAFETY: everything is handed on to the system's allocator, with room for what is checked.
unsafe impl GlobalAlloc for Checked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(larger) = Self::with_room(layout) else { return std::ptr::null_mut() };
        // SAFETY: the block has room for two words behind its size.
        unsafe {
            let block = std::alloc::System.alloc(larger);
            if !block.is_null() {
                block
                    .add(layout.size())
                    .cast::<[usize; 2]>()
                    .write_unaligned([layout.size(), layout.align()]);
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `alloc` with this layout, so the words stand behind it and it is that much larger.
        unsafe {
            let found = block.add(layout.size()).cast::<[usize; 2]>().read_unaligned();
            assert_eq!(found, [layout.size(), layout.align()], "not the layout that it was allocated with");
            std::alloc::System
                .dealloc(block, Layout::from_size_align_unchecked(layout.size() + BEHIND, layout.align()));
        }
    }
}

/// One recording for all tests of the process.
static LIVE: Mutex<Option<Live>> = Mutex::new(None);

fn recorded(test: impl FnOnce(&Live)) {
    let mut live = LIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    test(live.get_or_insert_with(|| Live::record("memory", Options::default())));
}

/// A value in a block of its own, even if the optimiser sees that the value is not used.
fn block<T>(value: T) -> Box<T> {
    std::hint::black_box(Box::new(value))
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).expect("a layout")
}

#[test]
fn allocations_and_bytes_are_those_of_the_node_that_runs() {
    recorded(|live| {
        {
            scope!("outer");
            let first = block([0_u8; 100]);
            {
                scope!("inner");
                drop(std::hint::black_box(vec![1_u8; 1000]));
                std::mem::forget(block(7_u64));
            }
            drop(first);
            std::mem::forget(block([0_u8; 24]));
        }
        let (outer, inner) = (live.node("outer"), live.node("inner"));
        assert_eq!((outer.allocations, outer.allocated, outer.live, outer.peak), (2, 124, 24, 100));
        assert_eq!((inner.allocations, inner.allocated, inner.live, inner.peak), (2, 1008, 8, 1000));
        assert_ne!(live.header().flags & treering_events::flag::MEMORY, 0);
    });
}

#[test]
fn blocks_freed_later_are_subtracted_where_they_were_allocated() {
    recorded(|live| {
        let block = {
            scope!("taker");
            block([0_u8; 500])
        };
        assert_eq!(live.node("taker").live, 500);
        {
            scope!("giver");
            drop(block);
        }
        assert_eq!((live.node("taker").live, live.node("taker").peak), (0, 500));
        assert_eq!((live.node("giver").allocations, live.node("giver").live), (0, 0));
    });
}

#[test]
fn blocks_freed_by_another_thread_are_counted_separately() {
    recorded(|live| {
        let produce = |count: usize| {
            scope!("producer");
            let mut blocks = Vec::with_capacity(count);
            blocks.resize_with(count, || block([0_u8; 64]));
            blocks
        };
        let blocks = produce(8);
        std::thread::spawn(move || drop(blocks)).join().expect("the thread");
        let node = live.node("producer");
        assert_eq!((node.allocations, node.allocated), (9, 8 * 64 + 64));
        assert_eq!((node.live, node.freed_elsewhere), (576, 576));
        // New memory does not raise the peak as long as less is in use.
        drop(produce(7));
        assert_eq!((live.node("producer").peak, live.node("producer").live), (576, 576));
    });
}

#[test]
fn resizing_frees_and_allocates() {
    recorded(|live| {
        {
            scope!("resizing");
            // SAFETY: each block is used with the layout that it has.
            unsafe {
                let block = alloc(layout(16, 8));
                block.write_bytes(0xAB, 16);
                let block = realloc(block, layout(16, 8), 4000);
                assert!((0..16).all(|at| *block.add(at) == 0xAB));
                block.write_bytes(0xCD, 4000);
                let block = realloc(block, layout(4000, 8), 10);
                assert!((0..10).all(|at| *block.add(at) == 0xCD));
                dealloc(block, layout(10, 8));
            }
        }
        let node = live.node("resizing");
        assert_eq!((node.allocated, node.live, node.peak), (16 + 4000 + 10, 0, 4000));
    });
}

#[test]
fn blocks_keep_their_alignment_and_zeros() {
    recorded(|live| {
        {
            scope!("aligned");
            for power in 0..=12 {
                for size in [1_usize, 7, 8, 100, 4096, 5000] {
                    let wanted = layout(size, 1 << power);
                    // SAFETY: the block is written within its size and freed with its layout.
                    unsafe {
                        let block = alloc_zeroed(wanted);
                        assert_eq!(block as usize % wanted.align(), 0);
                        assert!((0..size).all(|at| *block.add(at) == 0));
                        block.write_bytes(0xFF, size);
                        dealloc(block, wanted);
                    }
                }
            }
        }
        let node = live.node("aligned");
        assert_eq!((node.allocations, node.allocated), (13 * 6, 13 * (1 + 7 + 8 + 100 + 4096 + 5000)));
        assert_eq!((node.live, node.peak), (0, 5000));
    });
}

#[test]
fn types_without_a_size_and_sizes_beyond_memory_do_no_harm() {
    recorded(|live| {
        {
            scope!("extremes");
            std::hint::black_box(block(()));
            std::hint::black_box(Vec::<u64>::new());
            let huge = layout(isize::MAX as usize - 7, 1);
            // SAFETY: the layout is not empty; a block that cannot be had is null.
            assert!(unsafe { ALLOCATOR.alloc(huge) }.is_null());
        }
        let node = live.node("extremes");
        assert_eq!((node.allocations, node.allocated, node.live), (0, 0, 0));
    });
}

#[test]
fn many_threads_together_lose_no_byte() {
    recorded(|live| {
        let (sender, receiver) = std::sync::mpsc::channel::<Vec<u8>>();
        let receiver = Mutex::new(receiver);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                let sender = sender.clone();
                threads.spawn(move || {
                    for size in 1..=1000 {
                        let block = {
                            scope!("sending");
                            vec![0_u8; size]
                        };
                        sender.send(block).expect("a receiver");
                    }
                });
            }
            drop(sender);
            for _ in 0..4 {
                threads.spawn(|| while receiver.lock().expect("the lock").recv().is_ok() {});
            }
        });
        let nodes = live.nodes("sending");
        let sum =
            |of: fn(&treering_events::Node) -> i64| nodes.iter().map(|(_, node, _)| of(node)).sum::<i64>();
        assert_eq!(sum(|node| node.allocations as i64), 4000);
        assert_eq!(sum(|node| node.allocated as i64), 4 * 500_500);
        assert_eq!(sum(|node| node.live - node.freed_elsewhere as i64), 0);
    });
}
