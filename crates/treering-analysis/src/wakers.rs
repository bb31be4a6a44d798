//! Where threads waited, and who ended the waits.

use std::collections::HashMap;

use treering_profile::{FunctionId, MetricId, NodeId, Profile, ThreadId, WaitKind, WakerKind};

use crate::function_name;
use crate::own::own_functions;

/// The waits of one kind in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPlace {
    /// The innermost of the program's own functions, or of all where none is its own.
    pub function: FunctionId,
    /// The kind of what threads waited for.
    pub kind: WaitKind,
    /// How many waits.
    pub waits: u64,
    /// How long they were together, in nanoseconds.
    pub time_ns: u64,
    /// The wakers that ended them, the longest sums first.
    pub wakers: Vec<Waker>,
    /// How many waits have a waker that is not known, and how long these were.
    pub unknown: (u64, u64),
}

/// A kind of waker that ended some waits of a place, with their sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waker {
    /// The kind; a soft interrupt only where its stack does not tell whose it is.
    pub kind: WakerKind,
    /// The place in a thread of the program, as of [`WaitingPlace`]; of others, a function that says what it is. Nothing
    /// where the stack is not known, or is outside of the selected part.
    pub function: Option<FunctionId>,
    /// The function of the kernel through which an interrupt did it, where its stack tells.
    pub through: Option<FunctionId>,
    /// The threads of the program that did it; none for others.
    pub threads: Vec<ThreadId>,
    /// How many waits.
    pub waits: u64,
    /// How long they were together, in nanoseconds.
    pub time_ns: u64,
}

/// The metrics of the time and the number of waits, if they were measured.
pub fn wait_metrics(profile: &Profile) -> Option<(MetricId, MetricId)> {
    let timed = profile.timeline.as_ref().and_then(|timeline| timeline.waits.as_ref());
    let timed = timed.map(|waits| (waits.time, waits.count));
    timed.or_else(|| Some((profile.find_metric("off-cpu")?, profile.find_metric("waits")?)))
}

/// The places where threads waited, the longest sums first. Over all wakers, those that are not known included, waits and
/// times add up to those of their place, and over all places to those of the run.
pub fn waiting_places(profile: &Profile) -> Vec<WaitingPlace> {
    let Some((time, count)) = wait_metrics(profile) else { return Vec::new() };
    let kinds = profile.wait_kinds();
    let own = own_functions(profile);
    let mut places: Vec<WaitingPlace> = Vec::new();
    let mut place_of: HashMap<(FunctionId, WaitKind), usize> = HashMap::new();
    for node in profile.tree.nodes() {
        let (time_ns, waits) = (profile.tree.self_cost(time, node), profile.tree.self_cost(count, node));
        if time_ns == 0 && waits == 0 {
            continue;
        }
        let (function, kind) = (own[node.index()], kinds[node.index()]);
        let at = *place_of.entry((function, kind)).or_insert_with(|| {
            places.push(WaitingPlace {
                function,
                kind,
                waits: 0,
                time_ns: 0,
                wakers: Vec::new(),
                unknown: (0, 0),
            });
            places.len() - 1
        });
        places[at].waits += waits;
        places[at].time_ns += time_ns;
    }
    let naming = Naming::of(profile, &own);
    let mut waker_of: HashMap<(usize, WakerKind, Option<FunctionId>, Option<FunctionId>), usize> =
        HashMap::new();
    for row in &profile.ended_waits {
        let key = (own[row.waiting.index()], kinds[row.waiting.index()]);
        let Some(&at) = place_of.get(&key) else { continue };
        let (kind, function, through) = naming.waker(row.kind, row.waker);
        let wakers = &mut places[at].wakers;
        let waker = *waker_of.entry((at, kind, function, through)).or_insert_with(|| {
            wakers.push(Waker { kind, function, through, threads: Vec::new(), waits: 0, time_ns: 0 });
            wakers.len() - 1
        });
        let waker = &mut wakers[waker];
        waker.waits += row.waits;
        waker.time_ns += row.time_ns;
        if let Some(thread) = naming.thread(row.kind, row.waker)
            && !waker.threads.contains(&thread)
        {
            waker.threads.push(thread);
        }
    }
    for place in &mut places {
        let known = place
            .wakers
            .iter()
            .fold((0, 0), |(waits, time), waker| (waits + waker.waits, time + waker.time_ns));
        place.unknown = (place.waits.saturating_sub(known.0), place.time_ns.saturating_sub(known.1));
        place.wakers.sort_by_key(|waker| std::cmp::Reverse((waker.time_ns, waker.waits)));
    }
    places.sort_by_key(|place| std::cmp::Reverse((place.time_ns, place.waits)));
    places
}

/// How wakers are called.
struct Naming<'a> {
    profile: &'a Profile,
    own: &'a [FunctionId],
    entries: Vec<Option<bool>>,
    threads: Vec<ThreadId>,
}

impl<'a> Naming<'a> {
    fn of(profile: &'a Profile, own: &'a [FunctionId]) -> Self {
        Self { profile, own, entries: profile.kernel_entries(), threads: profile.node_threads() }
    }

    /// The kind, the function, and the function of the kernel through which an interrupt did it.
    fn waker(
        &self,
        kind: WakerKind,
        waker: Option<NodeId>,
    ) -> (WakerKind, Option<FunctionId>, Option<FunctionId>) {
        let resolved = Profile::waker_kind(kind, waker, &self.entries);
        let Some(waker) = waker else { return (resolved, None, None) };
        match resolved {
            WakerKind::Thread | WakerKind::SoftInterrupt => {
                let is_root = self.profile.tree.parent(waker).is_none();
                (resolved, Some(self.own[waker.index()]).filter(|_| !is_root), None)
            }
            WakerKind::Interrupt => (resolved, None, self.telling(waker)),
            _ => (resolved, Some(self.outermost(waker)), None),
        }
    }

    /// The function directly below the root.
    fn outermost(&self, node: NodeId) -> FunctionId {
        let tree = &self.profile.tree;
        let below_root =
            |node: &NodeId| tree.parent(*node).is_some_and(|parent| tree.parent(parent).is_none());
        tree.function(tree.path(node).find(below_root).unwrap_or(node))
    }

    /// The innermost function that is not there for every waking.
    fn telling(&self, node: NodeId) -> Option<FunctionId> {
        let tree = &self.profile.tree;
        let functions = tree.path(node).map(|node| tree.function(node)).filter(|&at| at != Profile::ROOT);
        let mut named = functions.filter(|&function| {
            let name = function_name(self.profile, function);
            !name.starts_with('[')
                && !EVERY_WAKING.iter().any(|known| name.trim_start_matches('_').starts_with(known))
        });
        named.next()
    }

    /// The thread of the program, if it has a tree.
    fn thread(&self, kind: WakerKind, waker: Option<NodeId>) -> Option<ThreadId> {
        let of_thread = Profile::waker_kind(kind, waker, &self.entries);
        let of_thread = matches!(of_thread, WakerKind::Thread | WakerKind::SoftInterrupt);
        let waker = waker.filter(|_| of_thread)?;
        let outermost = function_name(self.profile, self.outermost(waker));
        (!outermost.starts_with(WakerKind::END_OF_OTHER)).then(|| self.threads[waker.index()])
    }
}

/// The beginnings of names, without underscores, of functions of the kernel that wake whoever waits for whatever.
const EVERY_WAKING: [&str; 12] = [
    "try_to_wake_up",
    "ttwu",
    "default_wake_function",
    "autoremove_wake_function",
    "woken_wake_function",
    "wake_up",
    "wake_bit_function",
    "wake_page_function",
    "folio_wake",
    "swake_up",
    "pollwake",
    "complete",
];

#[cfg(test)]
mod tests {
    use treering_profile::{EndedWaits, Metric, Unit};

    use super::*;

    /// Waits in stacks, each with its wakers: (waits, time, kind, stack).
    type Wait = (&'static str, u64, u64, &'static [(u64, u64, WakerKind, &'static str)]);

    fn places(waits: &[Wait]) -> Vec<String> {
        let mut profile = treering_testing::stacks("main 1");
        let time = profile.add_metric(Metric::exact("off-cpu", Unit::Nanoseconds));
        let count = profile.add_metric(Metric::exact("waits", Unit::Count));
        let root = profile.threads[0].root;
        let node = |profile: &mut Profile, stack: &str| {
            stack.split(';').filter(|name| !name.is_empty()).fold(root, |node, name| {
                let name = profile.strings.intern(name);
                let function = profile.functions.intern(treering_profile::Function::named(name));
                profile.tree.child(node, function, None)
            })
        };
        for &(stack, number, time_ns, wakers) in waits {
            let waiting = node(&mut profile, stack);
            profile.tree.add_self_cost(time, waiting, time_ns);
            profile.tree.add_self_cost(count, waiting, number);
            for &(waits, time_ns, kind, stack) in wakers {
                let waker = (stack != "-").then(|| node(&mut profile, stack));
                profile.ended_waits.push(EndedWaits { waiting, kind, waker, waits, time_ns });
            }
        }
        assert_eq!(profile.validate(), Ok(()));
        let name = |function: Option<FunctionId>| {
            function.map_or("-".to_owned(), |function| function_name(&profile, function).into_owned())
        };
        let waker = |waker: &Waker| {
            let (kind, function) = (waker.kind.as_str(), name(waker.function));
            format!("{kind} {function} {} {} {}", name(waker.through), waker.waits, waker.time_ns)
        };
        waiting_places(&profile)
            .iter()
            .flat_map(|place| {
                let own = name(Some(place.function));
                let line =
                    format!("{own} {:?} {} {} {:?}", place.kind, place.waits, place.time_ns, place.unknown);
                std::iter::once(line).chain(place.wakers.iter().map(waker)).collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn wakers_and_the_unknown_rest_add_up_to_their_place() {
        use WakerKind::{Interrupt, KernelThread, SoftInterrupt, Thread};
        const TIMER: &str = "[an interrupt];hrtimer_interrupt;hrtimer_wakeup;try_to_wake_up";
        let found = places(&[
            ("main;pthread_mutex_lock", 5, 100, &[(2, 40, Thread, "work;unlock"), (1, 10, Thread, "")]),
            ("main;nanosleep", 2, 300, &[(2, 300, Interrupt, TIMER)]),
            (
                "main;recv",
                4,
                70,
                &[
                    (1, 30, SoftInterrupt, "work;send;do_syscall_64;tcp_rcv"),
                    (
                        1,
                        20,
                        SoftInterrupt,
                        "work;asm_common_interrupt;handle_softirqs;tcp_rcv;__wake_up_common",
                    ),
                    (1, 15, KernelThread, "[thread kworker of the kernel];process_one_work"),
                    (1, 5, Thread, "-"),
                ],
            ),
        ]);
        assert_eq!(
            found,
            [
                "nanosleep Idle 2 300 (0, 0)",
                "interrupt - hrtimer_wakeup 2 300",
                "pthread_mutex_lock Lock 5 100 (2, 50)",
                "thread unlock - 2 40",
                "thread - - 1 10",
                "recv InputOutput 4 70 (0, 0)",
                "thread tcp_rcv - 1 30",
                "interrupt - tcp_rcv 1 20",
                "kernel_thread [thread kworker of the kernel] - 1 15",
                "thread - - 1 5",
            ]
        );
    }
}
