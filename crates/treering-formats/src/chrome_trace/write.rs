//! Writes traces.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use treering_profile::{FunctionId, MarkKind, Metadata, MetricId, NodeId, Profile};

use crate::Dropped;
use crate::chrome_trace::EXEC;
use crate::dropped::Part;
use crate::json::{MOST_EXACT, write_text};
use crate::label::label;
use crate::our_run::OurRun;
use crate::speedscope::EXPORTER;
use crate::timed_costs::TimedCosts;

/// Writes a track for each thread, with a call for each function for as long as stacks that follow each other have it
/// in the same place.
///
/// Where it is known when costs arose, a cost begins in its slot of time, or when the thread's last one ends; else the
/// costs of a thread follow each other in the order of the tree. Either way a function lasts as long as it cost.
///
/// # Errors
/// When the output fails.
///
/// # Panics
/// When the profile has no such metric.
pub fn write(profile: &Profile, metric: MetricId, mut output: impl Write) -> io::Result<Dropped> {
    let mut writer = Writer::new(profile, metric, &mut output);
    writer.file()?;
    let (late_ns, end_ns) = (writer.late_ns, writer.end_ns);
    output.flush()?;
    let mut dropped = dropped(profile, metric);
    match TimedCosts::of(profile, metric) {
        Some(timed) => timed.note(profile, metric, &mut dropped),
        None => dropped.note(
            "the order of time, which the profile does not know: costs follow each other in the order of the tree",
        ),
    }
    dropped.note_if(
        end_ns > MOST_EXACT / 4,
        "digits of times: most viewers do not have nanoseconds after so long a time",
    );
    if late_ns > 0 {
        dropped.note(format!(
            "exact times: costs of samples are up to {:.3} ms later than their slots, as they cost more than those last",
            late_ns as f64 / 1e6
        ));
    }
    Ok(dropped)
}

/// How many bytes [`write()`] writes.
///
/// # Panics
/// When the profile has no such metric.
pub fn size(profile: &Profile, metric: MetricId) -> u64 {
    let mut counter = Counter(0);
    // A counter takes everything.
    Writer::new(profile, metric, &mut counter).file().map_or(0, |()| counter.0)
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn dropped(profile: &Profile, metric: MetricId) -> Dropped {
    use Part::{
        Arcs, Calls, FunctionKinds, InlinedFunctions, InnermostLines, Lines, Modules, RandomIntervals, Runs,
        Sampling,
    };
    let mut dropped = Dropped::default();
    dropped.note_other_metrics(profile, metric, None);
    let parts = [Arcs, Calls, FunctionKinds, InlinedFunctions, InnermostLines, Lines, Modules];
    dropped.note_parts(profile, &parts);
    dropped.note_parts(profile, &[Sampling, RandomIntervals, Runs]);
    dropped.note_details(profile);
    let mut names = HashSet::new();
    let used: HashSet<FunctionId> = profile.tree.function_column().iter().copied().collect();
    let shared = used.iter().filter(|&&function| !names.insert(label(profile, function))).count();
    dropped.note_shared(shared, "name");
    let waits = profile.timeline.as_ref().and_then(|timeline| timeline.waits.as_ref());
    dropped.note_if(waits.is_some(), "when threads waited");
    dropped
}

/// A cost of a node, and when it arose at the earliest, if that is known.
#[derive(Clone, Copy)]
struct Piece {
    start_ns: Option<u64>,
    node: NodeId,
    cost: u64,
}

struct Writer<'a, W> {
    profile: &'a Profile,
    metric: MetricId,
    output: &'a mut W,
    timed: Option<TimedCosts>,
    /// The place of each node where callers come before what they call, and the callees of a node together.
    ranks: Vec<u32>,
    /// The functions that are open, from the outermost on.
    open: Vec<FunctionId>,
    is_first: bool,
    late_ns: u64,
    end_ns: u64,
}

impl<'a, W: Write> Writer<'a, W> {
    fn new(profile: &'a Profile, metric: MetricId, output: &'a mut W) -> Self {
        let timed = TimedCosts::of(profile, metric);
        let (ranks, open) = (ranks(profile), Vec::new());
        Self { profile, metric, output, timed, ranks, open, is_first: true, late_ns: 0, end_ns: 0 }
    }

    fn file(&mut self) -> io::Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        write!(self.output, "{{\"otherData\":{{\"exporter\":\"{EXPORTER}{version}\",\"treering\":")?;
        write_text(self.output, &self.profile.metrics[self.metric.index()].name)?;
        write!(self.output, ",\"treeringRun\":{}", OurRun::of(self.profile).json())?;
        if let Some(measuring) = self.profile.metadata.parameters.get(Metadata::MEASURING) {
            self.output.write_all(b",\"costOfMeasuring\":")?;
            write_text(self.output, measuring)?;
        }
        self.output.write_all(b"},\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let ids = self.ids();
        self.names(&ids)?;
        for (thread, id) in ids.iter().enumerate() {
            self.track(thread, *id)?;
        }
        self.marks(&ids)?;
        self.output.write_all(b"\n]}\n")
    }

    /// The process and the thread that each track is of: their numbers, or others where those are another's already.
    fn ids(&self) -> Vec<(u32, u32)> {
        let mut used = HashSet::new();
        let pids: Vec<u32> =
            self.profile.processes.iter().map(|process| unused(process.pid, |id| used.insert(id))).collect();
        let mut used = HashSet::new();
        let threads = self.profile.threads.iter();
        threads
            .map(|thread| {
                let pid = pids[thread.process.index()];
                (pid, unused(thread.tid, |tid| used.insert((pid, tid))))
            })
            .collect()
    }

    fn names(&mut self, ids: &[(u32, u32)]) -> io::Result<()> {
        let mut named = HashSet::new();
        for (thread, &(pid, tid)) in self.profile.threads.iter().zip(ids) {
            let process = &self.profile.processes[thread.process.index()];
            if named.insert(pid) && !process.name.is_empty() {
                self.name("process_name", (pid, tid), &process.name)?;
            }
            if !thread.name.is_empty() {
                self.name("thread_name", (pid, tid), &thread.name)?;
            }
        }
        Ok(())
    }

    fn name(&mut self, kind: &str, (pid, tid): (u32, u32), name: &str) -> io::Result<()> {
        self.separate()?;
        write!(
            self.output,
            "{{\"ph\":\"M\",\"name\":\"{kind}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":"
        )?;
        write_text(self.output, name)?;
        self.output.write_all(b"}}")
    }

    fn separate(&mut self) -> io::Result<()> {
        let separator: &[u8] = if self.is_first { b"\n" } else { b",\n" };
        self.is_first = false;
        self.output.write_all(separator)
    }

    fn track(&mut self, thread: usize, id: (u32, u32)) -> io::Result<()> {
        let is_sampled = self.profile.metrics[self.metric.index()].sampling.is_some();
        let slot_ns = self.timed.as_ref().map_or(0, |timed| timed.slot_ns);
        let (mut now, mut last_cost) = (0_u64, 0);
        for piece in self.pieces(thread) {
            let start = piece.start_ns.unwrap_or(now);
            // A sample stands for about as much time as its neighbour: where the time between them is shorter than that,
            // the thread ran through.
            let near = if is_sampled { last_cost.min(slot_ns) } else { 0 };
            let runs_through = last_cost > 0 && start <= now.saturating_add(near);
            if !runs_through {
                self.end_to(0, now, id)?;
                now = now.max(start);
            }
            self.late_ns = self.late_ns.max(now.saturating_sub(start.saturating_add(slot_ns)));
            self.enter(piece.node, now, id)?;
            now = now.saturating_add(piece.cost);
            last_cost = piece.cost;
        }
        self.end_ns = self.end_ns.max(now);
        self.end_to(0, now, id)
    }

    fn pieces(&self, thread: usize) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = match &self.timed {
            Some(timed) => {
                let costs = timed.of_thread(thread).iter();
                costs
                    .map(|cost| Piece {
                        start_ns: Some(timed.start_ns(cost.slot)),
                        node: cost.node,
                        cost: cost.cost,
                    })
                    .collect()
            }
            None => {
                let threads = self.profile.node_threads();
                let nodes = self.profile.tree.nodes().filter(|node| threads[node.index()].index() == thread);
                let cost = |node| self.profile.tree.self_cost(self.metric, node);
                let pieces = nodes.map(|node| Piece { start_ns: None, node, cost: cost(node) });
                pieces.filter(|piece| piece.cost > 0).collect()
            }
        };
        pieces.sort_by_key(|piece| (piece.start_ns, self.ranks[piece.node.index()]));
        pieces
    }

    /// Ends the calls that the stack of a node does not have, and begins those that only it has.
    fn enter(&mut self, node: NodeId, now: u64, id: (u32, u32)) -> io::Result<()> {
        let tree = &self.profile.tree;
        let mut path: Vec<_> = tree.path(node).map(|node| tree.function(node)).collect();
        if path.len() > 1 {
            path.pop();
        }
        path.reverse();
        let same = path.iter().zip(&self.open).take_while(|(new, open)| new == open).count();
        self.end_to(same, now, id)?;
        for &function in &path[same..] {
            self.separate()?;
            self.output.write_all(b"{\"ph\":\"B\",\"name\":")?;
            write_text(self.output, &label(self.profile, function))?;
            self.at(now, id)?;
            self.open.push(function);
        }
        Ok(())
    }

    /// Ends calls until so many are open.
    fn end_to(&mut self, depth: usize, now: u64, id: (u32, u32)) -> io::Result<()> {
        for function in self.open.split_off(depth.min(self.open.len())).into_iter().rev() {
            self.separate()?;
            // Some readers, such as speedscope, take an end for that of the call of this name only.
            self.output.write_all(b"{\"ph\":\"E\",\"name\":")?;
            write_text(self.output, &label(self.profile, function))?;
            self.at(now, id)?;
        }
        Ok(())
    }

    /// The rest of an event: its time in microseconds, and its thread.
    fn at(&mut self, now: u64, (pid, tid): (u32, u32)) -> io::Result<()> {
        let (us, ns) = (now / 1000, now % 1000);
        write!(self.output, ",\"ts\":{us}.{ns:03},\"pid\":{pid},\"tid\":{tid}}}")
    }

    fn marks(&mut self, ids: &[(u32, u32)]) -> io::Result<()> {
        let timeline = self.profile.timeline.as_ref().filter(|_| self.timed.is_some());
        for mark in timeline.iter().flat_map(|timeline| &timeline.marks) {
            self.separate()?;
            self.output.write_all(b"{\"ph\":\"i\",\"s\":\"t\",\"name\":")?;
            write_text(self.output, &self.profile.strings[mark.name])?;
            if mark.kind == MarkKind::Exec {
                write!(self.output, ",\"cat\":\"{EXEC}\"")?;
            }
            self.at(mark.time_ns, ids[mark.thread.index()])?;
        }
        Ok(())
    }
}

/// The number itself if it is new, else the next one that is.
fn unused(number: u32, mut is_new: impl FnMut(u32) -> bool) -> u32 {
    let mut id = number;
    while !is_new(id) {
        id = id.wrapping_add(1);
    }
    id
}

/// The place of each node where callers come before what they call, and the callees of a node together.
fn ranks(profile: &Profile) -> Vec<u32> {
    let tree = &profile.tree;
    let mut callees: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    let mut roots = Vec::new();
    // Later nodes come first, as the last of a list is taken first.
    for node in tree.nodes().rev() {
        match tree.parent(node) {
            Some(parent) => callees.entry(parent).or_default().push(node),
            None => roots.push(node),
        }
    }
    let mut ranks = vec![0; tree.len()];
    let mut next = 0;
    while let Some(node) = roots.pop() {
        ranks[node.index()] = next;
        next += 1;
        roots.extend(callees.remove(&node).unwrap_or_default());
    }
    ranks
}
