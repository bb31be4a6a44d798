//! Memory is attributed to functions in flat profiles too.

mod live;

use live::Live;
use treering_runtime::{Allocator, Kind, Options, scope};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::new();

#[test]
fn a_function_of_a_flat_profile_gets_its_memory_from_all_callers() {
    let live = Live::record("memory_flat", Options { kind: Kind::Flat, ..Options::default() });
    let take = || {
        scope!("taker");
        std::hint::black_box(vec![1_u8; 300])
    };
    let (first, second) = (take(), {
        scope!("caller");
        take()
    });
    let both = live.node("taker");
    drop((first, second));
    let after = live.node("taker");
    assert_eq!((both.calls, both.allocations, both.allocated, both.live, both.peak), (2, 2, 600, 600, 600));
    assert_eq!((after.live, after.peak), (0, 600));
    assert_eq!(live.node("caller").allocations, 0);
}
