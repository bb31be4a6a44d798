//! Counts as a profile of addresses, before anything is named or recovered.

mod made_code;
mod module_map;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::PathBuf;

use treering_profile::{
    BranchCount, BranchKind, Function, Metric, MetricId, ModelledCount, PartialCount, Process, ProcessId,
    Profile, RecursionRule, Run, RunId, ThreadId, TranslatedBlock, Uncounted, Unit,
};
use treering_recover::KnownInstructions;
use treering_x86::disassembly::Flow;

use crate::areas::tree_layout::FOLDED;
use crate::context::ContextTree;
use crate::counting::result::{CountedBlock, KnownBlocks, NotCounted, ProgramCounts, ThreadCounts};
use crate::journal::salvage::Salvaged;
use crate::profile::module_map::{Places, ProgramPlaces};
use crate::run::{Counts, Ended};
use crate::sys::heap::give_back_freed;

impl Counts {
    /// The counts as a profile: translated blocks and branches of every thread, by module.
    ///
    /// It has no names yet, and its blocks are not basic blocks yet; `treering-symbols` and
    /// `treering-recover` add both.
    pub fn profile(&self) -> Profile {
        self.profile_and_instructions().0
    }

    /// As [`profile`](Self::profile), with the known instructions of its blocks.
    pub fn profile_and_instructions(&self) -> (Profile, KnownInstructions) {
        let mut made = ProfileBuilder::default();
        self.programs.iter().for_each(|program| made.add(program));
        made.finish(self)
    }

    fn run(&self) -> Run {
        let end = match self.ended {
            Ended::Exited(status) => Some(format!("exit {status}")),
            Ended::Killed(signal) => Some(format!("signal {signal}")),
            Ended::Left(_) => None,
        };
        Run { command: self.command.clone(), end, ..Run::default() }
    }
}

impl Salvaged {
    /// As [`Counts::profile`]; the uncounted parts include those that may be missing.
    pub fn profile(&self) -> Profile {
        let mut made = ProfileBuilder::default();
        self.programs.iter().for_each(|program| made.add(program));
        made.finish_with(&self.not_counted, Run::default()).0
    }
}

/// Makes a profile while programs end, so that the counts of each, of which there may be thousands, need not be kept.
#[derive(Debug)]
pub struct ProfileBuilder {
    profile: Profile,
    known: KnownInstructions,
    places: Places,
    /// The latest process with a number.
    by_pid: HashMap<i32, ProcessId>,
    processes: HashMap<(i32, String), ProcessId>,
    folded: Folded,
}

/// The instructions in folded contexts, and in all contexts.
#[derive(Debug, Default)]
struct Folded {
    /// Nothing if no context was folded.
    folded: Option<u64>,
    instructions: u64,
    nodes: usize,
}

impl Default for ProfileBuilder {
    fn default() -> Self {
        let mut profile = Profile::new(RecursionRule::Full);
        profile.metadata.collector = "treering count".to_owned();
        profile.add_run(Run::default());
        Self {
            profile,
            known: KnownInstructions::default(),
            places: Places::default(),
            by_pid: HashMap::new(),
            processes: HashMap::new(),
            folded: Folded::default(),
        }
    }
}

impl ProfileBuilder {
    /// Adds the counts of a program.
    pub fn add(&mut self, program: &ProgramCounts) {
        let places = self.places.program(&mut self.profile, program);
        add_known(&mut self.known, program, &places);
        for thread in &program.threads {
            let process = self.add_process(program, thread.pid);
            let tid = thread.tid.cast_unsigned();
            let id = self.profile.add_thread(process, tid, thread.name.clone());
            if let Some(tree) = &thread.tree {
                if self.profile.metrics.is_empty() {
                    self.profile.add_metric(Metric::exact("instructions", Unit::Count));
                }
                self.folded.add(tree);
            }
            add_thread(&mut self.profile, program, thread, &places, id);
        }
    }

    /// The files of code that this process does not find by the paths of their modules, or no longer, by these
    /// paths; nothing for those that are gone.
    pub fn take_hidden_files(&mut self) -> HashMap<PathBuf, Option<File>> {
        self.places.take_hidden_files()
    }

    /// The profile of all added programs, with the known instructions of its blocks. `counts` has what else is known of
    /// the run.
    pub fn finish(self, counts: &Counts) -> (Profile, KnownInstructions) {
        let (mut profile, known) = self.finish_with(&counts.not_counted, counts.run());
        counts.notes.iter().for_each(|note| profile.metadata.note(*note));
        (profile, known)
    }

    fn finish_with(self, not_counted: &[NotCounted], run: Run) -> (Profile, KnownInstructions) {
        let Self { mut profile, known, places, by_pid, folded, .. } = self;
        profile.runs[0] = run;
        folded.note().into_iter().for_each(|note| profile.metadata.note(note));
        for note in not_counted {
            let detail = profile.strings.intern(&note.detail);
            let process = by_pid.get(&note.pid).copied();
            profile.code.uncounted.push(Uncounted {
                reason: note.reason,
                process,
                thread: None,
                at: None,
                detail,
            });
        }
        profile.code.bytes = places.made.into_bytes(&mut profile.code.spaces);
        give_back_freed();
        (profile, known)
    }

    /// The process of a program. A process that became several programs appears once for each.
    fn add_process(&mut self, program: &ProgramCounts, pid: i32) -> ProcessId {
        let name = program.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let profile = &mut self.profile;
        let process = *self.processes.entry((pid, name.clone())).or_insert_with(|| {
            profile.add_process(Process { run: RunId::new(0), pid: pid.cast_unsigned(), name })
        });
        self.by_pid.insert(pid, process);
        process
    }
}

impl Folded {
    fn add(&mut self, tree: &ContextTree) {
        if let Some(folded) = tree.folded() {
            *self.folded.get_or_insert(0) += folded;
        }
        self.instructions = self.instructions.saturating_add(tree.instructions());
        self.nodes += tree.nodes.len();
    }

    /// The note on how much was executed in folded contexts, if there were any.
    fn note(&self) -> Option<String> {
        let share = self.folded? as f64 / self.instructions.max(1) as f64 * 100.0;
        Some(format!(
            "the tree of calls grew too large: after {} nodes other contexts were folded, with {share:.1} % of the \
             instructions; self costs and calls are exact, who called there is not known, and total costs are given as \
             bounds; treering count --max-nodes N keeps more",
            self.nodes
        ))
    }
}

/// Adds the known instructions of a program's blocks, by stated address.
fn add_known(known: &mut KnownInstructions, program: &ProgramCounts, places: &ProgramPlaces) {
    let KnownBlocks { lengths, blocks } = &program.known;
    let mut rest = &lengths[..];
    for (number, &(instructions, last)) in (0..).zip(blocks) {
        let (own, others) = rest.split_at(instructions.into());
        rest = others;
        let Some(last) = last else { continue };
        let CountedBlock { address, length, .. } = program.blocks[number as usize];
        let start = places.in_block(&program.blocks, number, address);
        let stated = |target: u64| target.wrapping_sub(address).wrapping_add(start.address.0);
        let last = match last {
            Flow::Conditional(target) => Flow::Conditional(stated(target)),
            Flow::Jump(target) => Flow::Jump(stated(target)),
            Flow::Call(target) => Flow::Call(stated(target)),
            other => other,
        };
        known.add_block(start, length, own, last);
    }
}

/// The blocks that are stated for a thread, by number, with their executions.
fn rows_of(thread: &ThreadCounts) -> impl Iterator<Item = (u32, u64)> + '_ {
    // A block that was always left before its counter has only partial executions; its instructions are needed too.
    let mut parts: BTreeSet<u32> = thread.partials.iter().map(|partial| partial.block).collect();
    if !parts.is_empty() {
        thread.executions.iter().for_each(|(number, _)| _ = parts.remove(number));
    }
    let never = parts.into_iter().map(|number| (number, 0));
    thread.executions.iter().copied().chain(never)
}

fn add_thread(
    profile: &mut Profile,
    program: &ProgramCounts,
    thread: &ThreadCounts,
    places: &ProgramPlaces,
    id: ThreadId,
) {
    let blocks = &program.blocks;
    for (number, executions) in rows_of(thread) {
        let block = &blocks[number as usize];
        profile.code.translated.push(TranslatedBlock {
            thread: id,
            start: places.in_block(blocks, number, block.address),
            length: block.length,
            instructions: block.instructions,
            executions,
        });
    }
    for partial in &thread.partials {
        profile.code.partials.push(PartialCount {
            thread: id,
            start: places.in_block(blocks, partial.block, partial.address),
            length: partial.length,
            instructions: partial.instructions,
            executions: partial.executions,
        });
    }
    for branch in &thread.branches {
        let site = branch.site.map(|site| match branch.block {
            Some(block) => places.in_block(blocks, block, site),
            None => places.find(profile, blocks, site, None),
        });
        let target = branch.target.map(|target| places.find(profile, blocks, target, branch.region));
        let (kind, count) = (branch.kind, branch.count);
        profile.code.branches.push(BranchCount { thread: id, kind, site, target, count });
    }
    for &target in &thread.returned {
        let target = Some(places.find(profile, blocks, target, None));
        let kind = BranchKind::Return;
        profile.code.branches.push(BranchCount { thread: id, kind, site: None, target, count: 1 });
    }
    for row in thread.modelled.iter().flat_map(|modelled| &modelled.instructions) {
        let at = places.in_block(blocks, row.block, row.address);
        profile.code.modelled.push(ModelledCount { thread: id, at, event: row.event, count: row.count });
    }
    if let Some(tree) = &thread.tree {
        add_tree(profile, &program.blocks, tree, places, id);
    }
}

/// Adds a thread's tree, whose functions are their entry addresses.
fn add_tree(
    profile: &mut Profile,
    blocks: &[CountedBlock],
    tree: &ContextTree,
    places: &ProgramPlaces,
    id: ThreadId,
) {
    let metric = MetricId::new(0);
    let mut nodes = vec![profile.threads[id.index()].root];
    for node in tree.nodes.iter().skip(1) {
        let function = match node.address {
            FOLDED => profile.folded_function(),
            address => {
                let place = places.find(profile, blocks, address, node.region);
                let module = profile.code.spaces[place.space].module;
                profile.functions.intern(Function::at_address(module, place.address))
            }
        };
        let parent = nodes[node.parent as usize];
        let child = profile.tree.child(parent, function, None);
        profile.tree.add_self_cost(metric, child, node.instructions);
        if node.calls > 0 {
            profile.tree.add_calls(child, node.calls, 0);
        }
        nodes.push(child);
    }
}
