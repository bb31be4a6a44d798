//! The cost of measuring one call: how much of it falls into the measured interval, and how much into the
//! caller.
//!
//! It is measured around some 50 ns of work. Around nothing, as is usual, the figures come out
//! much too high, because a processor reads its counter while it works on other things: taking
//! them off would take off work. They are measured as well, as the upper end.
//!
//! How much is hidden depends on the work, so several kinds are tried: the profile states the middle
//! between them, and half their distance as the spread. A processor begins a function's first instructions
//! before it has read the clock, so mostly less than nothing falls inside.

use core::sync::atomic::{AtomicU64, Ordering};

use treering_events::cells::{Node, Thread};

use crate::event::{NO_FRAME, enter};
use crate::leave::leave;
use crate::record::{self, address};
use crate::store::{self, STORE, to_ref};
use crate::{course, process, sys, thread};

/// How often each loop is run; medians are taken.
const ROUNDS: usize = 9;

/// How many rounds come before, as these find nothing in the caches.
const FIRST: usize = 2;

/// Times that the body of a loop is run: short enough to be seldom interrupted.
const TURNS: u64 = 200;

/// The number of no function.
const SCRATCH: u32 = 0;

/// The cost of a call, inside of the measured interval and outside. The inside alone may be negative, the
/// sum never is.
#[derive(Clone, Copy)]
struct Costs {
    inside: f64,
    outside: f64,
}

impl Costs {
    fn pair(self) -> f64 {
        self.inside + self.outside
    }

    /// Divides the cost of both parts together into the part inside and the rest.
    fn of_pair(pair: f64, inside: f64) -> Self {
        let pair = pair.max(0.0);
        let inside = inside.min(pair);
        Self { inside, outside: pair - inside }
    }

    /// Adds the cost of an interpreter's hooks, all of it outside.
    fn through_hooks(self, pair: f64) -> Self {
        Self::of_pair(pair.max(self.pair()), self.inside)
    }

    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { inside: change(self.inside), outside: change(self.outside) }
    }
}

/// The measured costs, in nanoseconds for each call.
#[derive(Clone, Copy)]
struct Bias {
    around_work: Costs,
    around_nothing: Costs,
    spread: f64,
}

/// The cost of a call altogether through the hooks of an interpreter, in ticks as the bits of an `f64`; 0
/// where that was not measured.
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
    let Some(header) = store::header() else { return };
    let before = Bias {
        around_work: Costs { inside: header.inside_ns.get(), outside: header.outside_ns.get() },
        around_nothing: Costs { inside: header.empty_inside_ns.get(), outside: header.empty_outside_ns.get() },
        spread: header.spread_ns.get(),
    };
    write(before.joined(again));
}

impl Bias {
    /// The costs that two measurements are certain of: those of the one that found a call to cost less.
    fn joined(self, other: Self) -> Self {
        let (low, high) = match self.around_work.pair() <= other.around_work.pair() {
            true => (self, other),
            false => (other, self),
        };
        let between = high.around_work.pair() - low.around_work.pair();
        let [a, b] = [low.around_nothing, high.around_nothing];
        Self {
            around_work: low.around_work,
            around_nothing: Costs { inside: a.inside.max(b.inside), outside: a.outside.max(b.outside) },
            spread: low.spread.max(high.spread).max(between),
        }
    }
}

fn write(bias: Bias) {
    store::change_header(|header| {
        header.inside_ns.set(bias.around_work.inside);
        header.outside_ns.set(bias.around_work.outside);
        header.empty_inside_ns.set(bias.around_nothing.inside);
        header.empty_outside_ns.set(bias.around_nothing.outside);
        header.spread_ns.set(bias.spread);
    });
}

fn measure() -> Option<Bias> {
    let (scratch, node) = scratch()?;
    let before = sys::current();
    sys::set_current(Some(scratch));
    let mut state = State::new();
    let works = KINDS.map(|kind| around_work(node, kind, &mut state));
    let nothing = around_nothing(node);
    sys::set_current(before);
    process::refresh_clock();
    let ns = process::ns_per_tick();
    let hooked = f64::from_bits(HOOKED_TICKS.load(Ordering::Relaxed));
    let (work, spread) = between(&works);
    let in_ns = |costs: Costs| costs.through_hooks(hooked).map(|ticks| ticks * ns);
    Some(Bias { around_work: in_ns(work), around_nothing: in_ns(nothing), spread: spread * ns })
}

/// The middle of the costs around several kinds of work, and half the distance between the least and the
/// greatest.
fn between(works: &[Costs]) -> (Costs, f64) {
    let of = |pick: fn(&Costs) -> f64| Spread::of(works.iter().map(pick).collect());
    let (pair, inside) = (of(|costs| costs.pair()), of(|costs| costs.inside));
    (Costs::of_pair(pair.middle, inside.middle), (pair.greatest - pair.least) / 2.0)
}

/// Where values lie.
struct Spread {
    least: f64,
    /// The median.
    middle: f64,
    greatest: f64,
}

impl Spread {
    /// Of at least one value.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let last = values.len() - 1;
        let middle = f64::midpoint(values[last / 2], values[last.div_ceil(2)]);
        Self { least: values[0], middle, greatest: values[last] }
    }
}

/// A record for this thread alone, and the node that all calls lead to.
fn scratch() -> Option<(&'static Thread, &'static Node)> {
    let mut store = STORE.hold();
    let thread = thread::unlisted(&mut store)?;
    let place = store.allocate(size_of::<Node>() as u64).map(to_ref)?;
    let function = thread::empty_node((SCRATCH, thread.root.get(), 0));
    let node = record::make::<Node>(place, treering_events::Node { threshold: u32::MAX, ..function });
    let root = record::at::<Node>(thread.root.get());
    root.private_children.iter().for_each(|child| child.set(address(node)));
    if !record::lengthen_flat_table(thread, 1) {
        return None;
    }
    record::flat_entry(thread, SCRATCH)?.set(address(node));
    thread.epoch.set(process::epoch());
    drop(store);
    course::begin_unlisted(thread);
    Some((thread, node))
}

/// The caller works as much as the function does, or nothing would be done while the clock is read
/// for the next call.
fn around_work(node: &Node, kind: Kind, state: &mut State) -> Costs {
    let state = core::cell::RefCell::new(state);
    let work = |_| kind.work(&mut state.borrow_mut());
    median_costs(|| {
        let alone = timed(|| {
            for turn in 0..TURNS {
                work(turn);
                work(turn);
            }
        });
        let (all, measured) = with_calls(node, work, work);
        Costs { inside: measured - alone / 2.0, outside: all - measured - alone / 2.0 }
    })
}

fn around_nothing(node: &Node) -> Costs {
    let costs = median_costs(|| {
        let alone = timed(|| (0..TURNS).for_each(nothing));
        let (all, inside) = with_calls(node, |_| {}, nothing);
        Costs { inside, outside: all - alone - inside }
    });
    costs.map(|cost| cost.max(0.0))
}

/// The medians of many rounds.
fn median_costs(round: impl Fn() -> Costs) -> Costs {
    let rounds: Vec<Costs> = (0..FIRST + ROUNDS).map(|_| round()).skip(FIRST).collect();
    let median = |pick: fn(&Costs) -> f64| Spread::of(rounds.iter().map(pick).collect()).middle;
    Costs { inside: median(|costs| costs.inside), outside: median(|costs| costs.outside) }
}

/// Ticks for each turn of a loop with a call around its body: altogether, and as measured.
fn with_calls(node: &Node, before_it: impl Fn(u64), body: impl Fn(u64)) -> (f64, f64) {
    let before = node.total.get();
    let all = timed(|| {
        for turn in 0..TURNS {
            before_it(turn);
            let token = event_enter();
            body(turn);
            event_leave(token);
        }
    });
    let measured = node.total.get() - before;
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

/// Kinds of work that a processor overlaps with reading its counter more or less.
#[derive(Clone, Copy)]
enum Kind {
    /// Multiplications that wait for each other.
    Multiplying,
    /// The same with additions, in floating point.
    Floating,
    /// Loads whose addresses are loaded.
    Chasing,
    /// Additions that wait for one in four.
    Adding,
}

const KINDS: [Kind; 4] = [Kind::Multiplying, Kind::Floating, Kind::Chasing, Kind::Adding];

/// The values that a piece of work continues from and leaves behind. A piece waits for the one before, so a
/// sequence of pieces takes no less time than the pieces take by themselves.
struct State {
    integer: u64,
    float: f64,
    place: u32,
    circle: [u32; 64],
    sums: [u64; 4],
}

impl State {
    fn new() -> Self {
        let circle = core::array::from_fn(|at| (at as u32 + 27) % 64);
        Self { integer: 1, float: 1.0, place: 0, circle, sums: [1, 2, 3, 4] }
    }
}

impl Kind {
    /// Some 50 ns of work, in a loop whose length no compiler knows.
    #[inline(always)]
    fn work(self, state: &mut State) {
        let steps = |steps: u32| 0..core::hint::black_box(steps);
        match self {
            Self::Multiplying => {
                let mut value = state.integer;
                steps(40).for_each(|_| value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66);
                state.integer = core::hint::black_box(value);
            }
            Self::Floating => {
                let mut value = state.float;
                steps(30).for_each(|_| value = value * 0.999 + 1.0);
                state.float = core::hint::black_box(value);
            }
            Self::Chasing => {
                steps(30).for_each(|_| state.place = state.circle[state.place as usize % 64]);
                core::hint::black_box(state.place);
            }
            Self::Adding => {
                let mut sums = state.sums;
                for step in steps(40) {
                    sums.iter_mut().for_each(|sum| *sum = sum.wrapping_add((*sum >> 7) ^ u64::from(step)));
                }
                state.sums = core::hint::black_box(sums);
            }
        }
    }
}

#[inline(always)]
fn nothing(turn: u64) {
    core::hint::black_box(turn);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_of_hooks_is_outside_and_never_less_than_without_hooks() {
        let costs = Costs { inside: 20.0, outside: 30.0 };
        assert_eq!(costs.through_hooks(120.0).pair(), 120.0);
        assert_eq!(costs.through_hooks(120.0).inside, 20.0);
        assert_eq!(costs.through_hooks(0.0).pair(), 50.0);
        assert_eq!(costs.through_hooks(40.0).pair(), 50.0);
    }

    #[test]
    fn less_than_nothing_may_fall_inside_but_not_altogether() {
        let costs = |pair, inside| {
            let costs = Costs::of_pair(pair, inside);
            (costs.inside, costs.outside)
        };
        assert_eq!(costs(2.0, -5.0), (-5.0, 7.0));
        assert_eq!(costs(-2.0, -5.0), (-5.0, 5.0));
        assert_eq!(costs(-2.0, 3.0), (0.0, 0.0));
        assert_eq!(Costs { inside: -5.0, outside: 6.0 }.through_hooks(40.0).outside, 45.0);
    }

    #[test]
    fn cost_is_the_middle_between_kinds_of_work_and_spread_half_their_distance() {
        let of = |pair: f64, inside: f64| Costs::of_pair(pair, inside);
        let (costs, spread) = between(&[of(1.0, -6.0), of(20.0, 4.0), of(5.0, -1.0), of(2.0, -3.0)]);
        assert_eq!((costs.pair(), costs.inside, spread), (3.5, -2.0, 9.5));
    }

    #[test]
    fn of_two_measurements_the_lower_holds() {
        let of = |pair, inside, nothing| Bias {
            around_work: Costs::of_pair(pair, inside),
            around_nothing: Costs { inside: nothing, outside: nothing },
            spread: 1.0,
        };
        for joined in [of(4.0, -3.0, 9.0).joined(of(9.0, 2.0, 8.0)), of(9.0, 2.0, 9.0).joined(of(4.0, -3.0, 8.0))] {
            assert_eq!((joined.around_work.inside, joined.around_work.outside), (-3.0, 7.0));
            assert_eq!((joined.around_nothing.inside, joined.spread), (9.0, 5.0));
        }
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
