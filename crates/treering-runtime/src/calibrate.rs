//! What measuring one call costs: how much of it falls into the measured interval, and how much
//! into the caller.
//!
//! It is measured around some 50 ns of work. Around nothing, as is usual, the figures come out
//! much too high, because a processor reads its counter while it works on other things: taking
//! them off would take off work. They are measured as well, as the upper end.

use core::sync::atomic::{AtomicU64, Ordering};

use treering_events::{NEAR_CHILDREN, Node, Thread};

use crate::event::{NO_FRAME, enter, leave};
use crate::process;
use crate::registry::to_ref;
use crate::store::{self, LOCK};
use crate::{sys, thread};

/// How often each loop is run; medians are taken.
const ROUNDS: usize = 25;

/// Times that the body of a loop is run: short enough to be seldom interrupted.
const TURNS: u64 = 250;

/// The number of no function.
const SCRATCH: u32 = 0;

/// What a call costs, inside of the measured interval and outside.
#[derive(Clone, Copy)]
struct Costs {
    inside: f64,
    outside: f64,
}

impl Costs {
    fn pair(self) -> f64 {
        self.inside + self.outside
    }

    /// What the hooks of an interpreter cost besides is outside.
    fn through_hooks(self, pair: f64) -> Self {
        Self { outside: self.outside.max(pair - self.inside), ..self }
    }

    fn map2(self, other: Self, choose: fn(f64, f64) -> f64) -> Self {
        Self { inside: choose(self.inside, other.inside), outside: choose(self.outside, other.outside) }
    }
}

/// What was measured, in nanoseconds for each call.
#[derive(Clone, Copy)]
struct Bias {
    around_work: Costs,
    around_nothing: Costs,
    spread: f64,
}

/// What a call costs altogether through the hooks of an interpreter, in ticks as the bits of an
/// `f64`; 0 where that was not measured.
static HOOKED_TICKS: AtomicU64 = AtomicU64::new(0);

/// Says what recording a call costs in an interpreter, in [ticks](crate::ticks): its hooks have to
/// find out what is called, and what is in no cache has to come from memory. The part of it that
/// does not fall into the measured interval is the caller's, and is taken to be no less than it is
/// without an interpreter. Counts for profiles that are begun afterwards; 0 takes it back.
///
/// ```
/// treering_runtime::set_call_cost(150.0);
/// # treering_runtime::set_call_cost(0.0);
/// ```
pub fn set_call_cost(ticks: f64) {
    let sound = if ticks.is_finite() { ticks.max(0.0) } else { 0.0 };
    HOOKED_TICKS.store(sound.to_bits(), Ordering::Relaxed);
}

/// Measures the costs with a record that no reader knows of, and writes them to the header.
pub(crate) fn calibrate() {
    if let Some(bias) = measure() {
        write(bias);
    }
}

/// Measures the costs once more, at the end. A processor that was busy with something else, or
/// slow, at one of the two times makes them differ: the lower ones are certain, and the difference
/// is part of their spread.
pub(crate) fn calibrate_again() {
    let Some(again) = measure() else { return };
    // SAFETY: a store is open.
    let before = unsafe {
        let header = store::header();
        Bias {
            around_work: Costs { inside: (*header).inside_ns, outside: (*header).outside_ns },
            around_nothing: Costs { inside: (*header).empty_inside_ns, outside: (*header).empty_outside_ns },
            spread: (*header).spread_ns,
        }
    };
    let between = (before.around_work.pair() - again.around_work.pair()).abs();
    write(Bias {
        around_work: before.around_work.map2(again.around_work, f64::min),
        around_nothing: before.around_nothing.map2(again.around_nothing, f64::max),
        spread: before.spread.max(again.spread).max(between),
    });
}

fn write(bias: Bias) {
    // SAFETY: a store is open.
    unsafe {
        let header = store::header();
        (*header).inside_ns = bias.around_work.inside;
        (*header).outside_ns = bias.around_work.outside;
        (*header).empty_inside_ns = bias.around_nothing.inside;
        (*header).empty_outside_ns = bias.around_nothing.outside;
        (*header).spread_ns = bias.spread;
    }
}

fn measure() -> Option<Bias> {
    let (scratch, node) = scratch()?;
    let before = sys::current();
    sys::set_current(scratch);
    // The first rounds find nothing in the caches.
    let rounds: Vec<(Costs, Costs)> =
        (0..ROUNDS + 5).map(|_| (around_work(node), around_nothing(node))).skip(5).collect();
    sys::set_current(before);
    process::refresh_clock();
    // SAFETY: a store is open.
    let ns = unsafe { (*store::header()).ns_per_tick };
    let of = |pick: fn(&(Costs, Costs)) -> f64| quartiles(rounds.iter().map(pick).collect());
    let (inside, outside) = (of(|round| round.0.inside), of(|round| round.0.outside));
    let median = |pick: fn(&(Costs, Costs)) -> f64| of(pick)[1].max(0.0) * ns;
    let bias = Bias {
        around_work: Costs { inside: inside[1].max(0.0) * ns, outside: outside[1].max(0.0) * ns },
        around_nothing: Costs {
            inside: median(|round| round.1.inside),
            outside: median(|round| round.1.outside),
        },
        spread: ((inside[2] - inside[0]) / 2.0).max((outside[2] - outside[0]) / 2.0) * ns,
    };
    let hooked = f64::from_bits(HOOKED_TICKS.load(Ordering::Relaxed)) * ns;
    let around_work = bias.around_work.through_hooks(hooked);
    Some(Bias { around_work, around_nothing: bias.around_nothing.through_hooks(hooked), ..bias })
}

/// A record for this thread alone, and the node that all calls lead to.
fn scratch() -> Option<(*mut Thread, *mut Node)> {
    let _held = LOCK.hold();
    let thread = thread::unlisted();
    let node = store::at::<Node>(to_ref(store::allocate(Node::BYTES as u64)?));
    if thread.is_null() {
        return None;
    }
    // SAFETY: both records were allocated for this, and the lock is held.
    unsafe {
        let root = store::at::<Node>((*thread).root);
        let (function, parent) = (SCRATCH, (*thread).root);
        node.write(Node { threshold: u32::MAX, ..thread::empty_node((function, parent, 0)) });
        (*root).private_children = [node as u64; NEAR_CHILDREN];
        let (table, length) = (sys::map_private(4096).cast::<*mut Node>(), 1);
        if table.is_null() {
            return None;
        }
        table.write(node);
        (*thread).private[thread::word::FLAT] = table as u64;
        (*thread).private[thread::word::FLAT_LENGTH] = length;
        (*thread).epoch = process::epoch();
    }
    Some((thread, node))
}

/// The caller works as much as the function does, or nothing would be done while the clock is read
/// for the next call.
///
/// What a function does first may be done before the clock was read, so that less than nothing falls
/// inside. That depends on what it does; it is taken for nothing, and the caller's for what both cost.
fn around_work(node: *mut Node) -> Costs {
    let state = core::cell::Cell::new(1);
    let work = |_| work(&state);
    let alone = timed(|| {
        for turn in 0..TURNS {
            work(turn);
            work(turn);
        }
    });
    let (all, measured) = with_calls(node, work, work);
    core::hint::black_box(state);
    let inside = (measured - alone / 2.0).max(0.0);
    Costs { inside, outside: all - alone - inside }
}

fn around_nothing(node: *mut Node) -> Costs {
    let alone = timed(|| (0..TURNS).for_each(nothing));
    let (all, inside) = with_calls(node, |_| {}, nothing);
    Costs { inside, outside: all - alone - inside }
}

/// Ticks for each turn of a loop with a call around its body: altogether, and as measured.
fn with_calls(node: *mut Node, before_it: impl Fn(u64), body: impl Fn(u64)) -> (f64, f64) {
    // SAFETY: the node is ours alone.
    let before = unsafe { (*node).total };
    let all = timed(|| {
        for turn in 0..TURNS {
            before_it(turn);
            let token = event_enter();
            body(turn);
            event_leave(token);
        }
    });
    // SAFETY: as above.
    let measured = unsafe { (*node).total } - before;
    (all, measured as f64 / TURNS as f64)
}

/// Ticks for each turn of a loop.
fn timed(run: impl FnOnce()) -> f64 {
    let start = sys::ticks();
    run();
    sys::ticks().wrapping_sub(start) as f64 / TURNS as f64
}

// Calls as a program makes them, which the compiler must not look into.
#[inline(never)]
fn event_enter() -> u64 {
    enter(SCRATCH, NO_FRAME, 0)
}

#[inline(never)]
fn event_leave(token: u64) {
    leave(token);
}

/// Some 50 ns of work: multiplications that wait for each other, and for those of the last turn,
/// so that turns take no less time one after another than one by itself. Between two of them stands
/// what no compiler can make one of both.
#[inline(always)]
fn work(state: &core::cell::Cell<u64>) {
    let mut at = state.get();
    for _ in 0..40 {
        at = at.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66;
    }
    state.set(core::hint::black_box(at));
}

#[inline(always)]
fn nothing(turn: u64) {
    core::hint::black_box(turn);
}

/// The lower quartile, the median and the upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let at = |part: usize| values.get(values.len() * part / 4).copied().unwrap_or(0.0);
    [at(1), at(2), at(3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hooks_cost_is_outside_and_never_less_than_without() {
        let costs = Costs { inside: 20.0, outside: 30.0 };
        assert_eq!(costs.through_hooks(120.0).pair(), 120.0);
        assert_eq!(costs.through_hooks(120.0).inside, 20.0);
        assert_eq!(costs.through_hooks(0.0).pair(), 50.0);
        assert_eq!(costs.through_hooks(40.0).pair(), 50.0);
    }

    #[test]
    fn a_cost_that_is_no_number_counts_for_nothing() {
        for (given, kept) in [(f64::NAN, 0.0), (f64::INFINITY, 0.0), (-1.0, 0.0), (2.5, 2.5)] {
            set_call_cost(given);
            assert_eq!(f64::from_bits(HOOKED_TICKS.load(Ordering::Relaxed)), kept);
        }
        set_call_cost(0.0);
    }
}
