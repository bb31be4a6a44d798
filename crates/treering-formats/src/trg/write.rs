//! Writes a profile: at once, or bit by bit while it grows.

mod code;
mod detail;
mod timeline;

use std::io::Write;
use std::ops::Range;

use treering_profile::{EndedWaits, LineCost, Process, Profile, Thread};

use crate::trg::content::{
    End, Entry, Meta, Totals, encode_columns, encode_nodes, encode_rows, encode_strings, encode_table,
};
use crate::trg::output::Output;
use crate::trg::varint::Encoder;
use crate::trg::{Kind, WriteError};

use code::WrittenCode;
use detail::WrittenDetails;
use timeline::WrittenTimeline;

/// How many entries or nodes a frame holds at most. Larger frames are hardly smaller in the file,
/// and more is lost with a damaged one.
const BLOCK: usize = 1 << 16;
/// After how many bytes of text a new frame is begun.
const BLOCK_BYTES: usize = 1 << 20;

/// Writes a whole profile. Needs no seeking, so the output may be a pipe.
///
/// # Errors
/// When the output fails, or a single text is over 64 MiB.
pub fn write(profile: &Profile, writer: impl Write) -> Result<(), WriteError> {
    let mut file = File { output: Output::new(writer)?, payload: Encoder::default() };
    let written = Written::default();
    file.tables(profile, &written)?;
    file.costs(profile, &written)?;
    file.rows(Kind::LineCosts, &profile.line_costs)?;
    file.rows(Kind::AddressCosts, &profile.address_costs)?;
    file.rows(Kind::Arcs, &profile.arcs)?;
    file.rows(Kind::EndedWaits, &profile.ended_waits)?;
    file.details(profile, &written.details)?;
    file.code(profile, &written.code)?;
    file.bounded_timeline(profile)?;
    file.end(Totals::of(profile, profile.line_costs.len() as u64))
}

/// Writes a profile while it grows, so that a recorder that is killed loses at most what came
/// after the last [`append`](Self::append).
///
/// ```
/// use treering_formats::trg;
/// use treering_profile::{Frame, Function, Metric, Profile, RecursionRule, Unit};
///
/// let mut profile = Profile::new(RecursionRule::Full);
/// let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
/// let thread = profile.add_single_thread("demo");
/// let name = profile.strings.intern("main");
/// let main = profile.functions.intern(Function::named(name));
///
/// let mut file = Vec::new();
/// let mut appender = trg::Appender::new(&mut file)?;
/// for _ in 0..3 {
///     profile.add_stack(thread, &[Frame::new(main)], None, &[(samples, 1)]);
///     appender.append(&profile)?;
/// }
/// appender.finish(&profile)?;
/// let (read, _) = trg::read(&file)?;
/// assert_eq!(read.run_cost(samples), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Appender<W> {
    file: File<W>,
    written: Written,
    line_costs_written: u64,
    failed: bool,
}

impl<W> std::fmt::Debug for Appender<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Appender").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl<W: Write> Appender<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// When the output fails.
    pub fn new(writer: W) -> Result<Self, WriteError> {
        let file = File { output: Output::new(writer)?, payload: Encoder::default() };
        Ok(Self { file, written: Written::default(), line_costs_written: 0, failed: false })
    }

    /// Writes what is new in `profile` since the last time, and flushes the output.
    ///
    /// The profile must be the one appended before, with more in it: tables only grow and costs
    /// never shrink. Names and ends of runs, processes and threads may change.
    ///
    /// # Errors
    /// When the output fails; what was written before stays readable, and nothing more can be
    /// appended. When the profile is not an extension of the one before; nothing is written then.
    pub fn append(&mut self, profile: &Profile) -> Result<(), WriteError> {
        if self.failed {
            let message = "an earlier part could not be written";
            return Err(WriteError::Io(std::io::Error::other(message)));
        }
        self.written.check_extension(profile)?;
        let result = self.append_checked(profile);
        self.failed = result.is_err();
        result
    }

    /// Writes what is new and the END frame. Without it, a reader says that the profile is
    /// unfinished.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn finish(mut self, profile: &Profile) -> Result<(), WriteError> {
        self.append(profile)?;
        self.file.end(Totals::of(profile, self.line_costs_written))
    }

    fn append_checked(&mut self, profile: &Profile) -> Result<(), WriteError> {
        self.file.tables(profile, &self.written)?;
        self.file.costs(profile, &self.written)?;
        let (fresh, all) = self.written.line_costs_since(profile);
        self.file.rows(Kind::LineCosts, &fresh)?;
        self.line_costs_written += fresh.len() as u64;
        self.file.rows(Kind::AddressCosts, &profile.address_costs[self.written.address_costs..])?;
        self.file.rows(Kind::Arcs, &profile.arcs[self.written.arcs..])?;
        self.file.rows(Kind::EndedWaits, &self.written.ended_waits_since(profile))?;
        self.file.details(profile, &self.written.details)?;
        self.file.code(profile, &self.written.code)?;
        self.file.timeline(profile, &self.written.timeline)?;
        self.file.output.flush()?;
        self.written.update(profile, all);
        Ok(())
    }
}

/// The parts that a file holds already.
#[derive(Default)]
struct Written {
    meta: Option<Meta>,
    strings: usize,
    modules: usize,
    functions: usize,
    lines: usize,
    processes: Vec<Process>,
    threads: Vec<Thread>,
    nodes: usize,
    costs: Vec<Vec<u64>>,
    calls: Vec<Vec<u64>>,
    /// Joined and sorted.
    line_costs: Vec<LineCost>,
    address_costs: usize,
    arcs: usize,
    /// In the order of the profile, which only adds rows and costs.
    ended_waits: Vec<EndedWaits>,
    sources: usize,
    details: WrittenDetails,
    code: WrittenCode,
    timeline: WrittenTimeline,
}

impl Written {
    fn check_extension(&self, profile: &Profile) -> Result<(), WriteError> {
        let lengths = [
            (self.strings, profile.strings.len()),
            (self.modules, profile.modules.len()),
            (self.functions, profile.functions.len()),
            (self.lines, profile.lines.len()),
            (self.processes.len(), profile.processes.len()),
            (self.threads.len(), profile.threads.len()),
            (self.nodes, profile.tree.len()),
            (self.costs.len(), profile.metrics.len()),
            (self.address_costs, profile.address_costs.len()),
            (self.arcs, profile.arcs.len()),
            (self.ended_waits.len(), profile.ended_waits.len()),
            (self.sources, profile.sources.len()),
        ];
        if lengths.iter().any(|(before, now)| before > now) {
            return Err(WriteError::NotAnExtension("a table has fewer entries"));
        }
        let columns = column_slices(profile).into_iter().zip(&self.costs);
        let calls = call_slices(profile).into_iter().zip(&self.calls);
        let shrinks = |now: &[u64], before: &[u64]| now.iter().zip(before).any(|(now, before)| now < before);
        if columns.chain(calls).any(|(now, before)| shrinks(now, before)) {
            return Err(WriteError::NotAnExtension("a cost is lower"));
        }
        let ends = profile.ended_waits.iter().zip(&self.ended_waits);
        let keeps = |(now, before): (&EndedWaits, &EndedWaits)| {
            (now.waiting, now.kind, now.waker) == (before.waiting, before.kind, before.waker)
                && now.waits >= before.waits
                && now.time_ns >= before.time_ns
        };
        if !ends.into_iter().all(keeps) {
            return Err(WriteError::NotAnExtension("the end of a wait has changed"));
        }
        self.details.check_extension(profile)?;
        self.code.check_extension(profile)?;
        self.timeline.check_extension(profile)
    }

    /// The line costs that were added, and all of them joined.
    fn line_costs_since(&self, profile: &Profile) -> (Vec<LineCost>, Vec<LineCost>) {
        if profile.line_costs.is_empty() {
            return Default::default();
        }
        let all = joined(&profile.line_costs);
        let mut before = self.line_costs.iter().peekable();
        let mut fresh = Vec::new();
        for cost in &all {
            let known = before.next_if(|known| place(known) == place(cost)).map_or(0, |known| known.cost);
            if cost.cost > known {
                fresh.push(LineCost { cost: cost.cost - known, ..*cost });
            }
        }
        (fresh, all)
    }

    /// The ends of waits that were added.
    fn ended_waits_since(&self, profile: &Profile) -> Vec<EndedWaits> {
        let mut before = self.ended_waits.iter();
        let added = profile.ended_waits.iter().map(|row| match before.next() {
            Some(known) => EndedWaits {
                waits: row.waits.saturating_sub(known.waits),
                time_ns: row.time_ns.saturating_sub(known.time_ns),
                ..*row
            },
            None => *row,
        });
        added.filter(|row| row.waits > 0 || row.time_ns > 0).collect()
    }

    fn update(&mut self, profile: &Profile, line_costs: Vec<LineCost>) {
        self.meta = Some(Meta::of(profile));
        self.strings = profile.strings.len();
        self.modules = profile.modules.len();
        self.functions = profile.functions.len();
        self.lines = profile.lines.len();
        self.processes.clone_from(&profile.processes);
        self.threads.clone_from(&profile.threads);
        self.nodes = profile.tree.len();
        copy_columns(&mut self.costs, &column_slices(profile));
        copy_columns(&mut self.calls, &call_slices(profile));
        self.line_costs = line_costs;
        self.address_costs = profile.address_costs.len();
        self.arcs = profile.arcs.len();
        self.ended_waits.clone_from(&profile.ended_waits);
        self.sources = profile.sources.len();
        self.details.update(profile);
        self.code.update(profile);
        self.timeline.update(profile);
    }
}

fn place(cost: &LineCost) -> impl Ord + use<> {
    (cost.node, cost.metric, cost.line)
}

fn joined(costs: &[LineCost]) -> Vec<LineCost> {
    let mut costs = costs.to_vec();
    costs.sort_unstable_by_key(place);
    costs.dedup_by(|next, kept| {
        let same = place(next) == place(kept);
        if same {
            kept.cost = kept.cost.saturating_add(next.cost);
        }
        same
    });
    costs
}

fn column_slices(profile: &Profile) -> Vec<&[u64]> {
    profile.metrics().map(|(metric, _)| profile.tree.self_costs(metric)).collect()
}

fn call_slices(profile: &Profile) -> Vec<&[u64]> {
    let (calls, recursive) = (profile.tree.calls_column(), profile.tree.recursive_calls_column());
    if profile.tree.has_calls() { vec![calls, recursive] } else { Vec::new() }
}

fn copy_columns(to: &mut Vec<Vec<u64>>, from: &[&[u64]]) {
    to.resize_with(from.len(), Vec::new);
    for (to, from) in to.iter_mut().zip(from) {
        to.clear();
        to.extend_from_slice(from);
    }
}

/// A file being written, and room for the payload of a frame.
struct File<W> {
    output: Output<W>,
    payload: Encoder,
}

impl<W: Write> File<W> {
    fn frame(&mut self, kind: Kind, encode: impl FnOnce(&mut Encoder)) -> Result<(), WriteError> {
        self.payload.clear();
        encode(&mut self.payload);
        self.output.frame(kind, self.payload.bytes())
    }

    /// Writes what is new in the tables that nodes refer to, those referred to first.
    fn tables(&mut self, profile: &Profile, written: &Written) -> Result<(), WriteError> {
        let meta = Meta::of(profile);
        if written.meta.as_ref() != Some(&meta) {
            self.output.frame(Kind::Meta, &meta.encode()?)?;
        }
        let strings: Vec<_> = profile.strings.iter().map(|(_, text)| text).collect();
        for piece in pieces(&strings, written.strings, |text| text.len()) {
            self.frame(Kind::Strings, |to| encode_strings(to, piece.start, &strings[piece]))?;
        }
        self.table(Kind::Modules, profile.modules.entries(), written.modules, |module| {
            module.build_id.len()
        })?;
        self.table(Kind::Functions, profile.functions.entries(), written.functions, |_| 0)?;
        self.table(Kind::Lines, profile.lines.entries(), written.lines, |_| 0)?;
        for piece in pieces(&profile.sources, written.sources, |source| source.text.len()) {
            self.frame(Kind::Sources, |to| encode_rows(to, &profile.sources[piece]))?;
        }
        // Those that changed are stated anew.
        let (processes, threads) = (&profile.processes, &profile.threads);
        let first = agreeing(processes, &written.processes);
        self.table(Kind::Processes, processes, first, |process| process.name.len())?;
        let first = agreeing(threads, &written.threads);
        self.table(Kind::Threads, threads, first, |thread| thread.name.len())
    }

    /// Writes the entries of a table from `first` on. `bytes` are those that an entry takes beside its numbers.
    fn table<T: Entry>(
        &mut self,
        kind: Kind,
        entries: &[T],
        first: usize,
        bytes: impl Fn(&T) -> usize,
    ) -> Result<(), WriteError> {
        for piece in pieces(entries, first, bytes) {
            self.frame(kind, |to| encode_table(to, piece.start, &entries[piece]))?;
        }
        Ok(())
    }

    /// Writes rows in frames.
    fn rows<T: Entry>(&mut self, kind: Kind, rows: &[T]) -> Result<(), WriteError> {
        rows.chunks(BLOCK).try_for_each(|piece| self.frame(kind, |to| encode_rows(to, piece)))
    }

    /// Writes new nodes and added costs, block by block, so that a file that ends early holds
    /// the costs of the nodes that it holds.
    fn costs(&mut self, profile: &Profile, written: &Written) -> Result<(), WriteError> {
        let (costs, calls) = (column_slices(profile), call_slices(profile));
        for block in blocks(profile.tree.len()) {
            let fresh = block.start.max(written.nodes)..block.end;
            if !fresh.is_empty() {
                self.frame(Kind::Nodes, |to| encode_nodes(to, fresh, &profile.tree))?;
            }
            self.columns(Kind::Costs, block.clone(), &costs, &written.costs, false)?;
            let first_calls = profile.tree.has_calls() && written.calls.is_empty() && block.start == 0;
            self.columns(Kind::Calls, block, &calls, &written.calls, first_calls)?;
        }
        Ok(())
    }

    fn columns(
        &mut self,
        kind: Kind,
        block: Range<usize>,
        columns: &[&[u64]],
        before: &[Vec<u64>],
        even_if_zero: bool,
    ) -> Result<(), WriteError> {
        self.payload.clear();
        if encode_columns(&mut self.payload, block, columns, before) || even_if_zero {
            self.output.frame(kind, self.payload.bytes())?;
        }
        Ok(())
    }

    fn end(mut self, totals: Totals) -> Result<(), WriteError> {
        let end = End { frames: self.output.frames().to_vec(), totals };
        self.frame(Kind::End, |to| end.encode(to))?;
        self.output.flush()
    }
}

/// How many entries at the start of both are equal.
fn agreeing<T: PartialEq>(now: &[T], before: &[T]) -> usize {
    now.iter().zip(before).take_while(|(now, before)| now == before).count()
}

/// The ranges of nodes that go into one frame each.
fn blocks(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(BLOCK).map(move |start| start..length.min(start + BLOCK))
}

/// The ranges of entries from `first` on that go into one frame each.
fn pieces<T>(entries: &[T], first: usize, bytes: impl Fn(&T) -> usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let (mut start, mut size) = (first, 0);
    for (at, entry) in entries.iter().enumerate().skip(first) {
        let full = at - start == BLOCK || size + bytes(entry) > BLOCK_BYTES;
        if full && at > start {
            pieces.push(start..at);
            (start, size) = (at, 0);
        }
        size += bytes(entry);
    }
    if start < entries.len() {
        pieces.push(start..entries.len());
    }
    pieces
}
