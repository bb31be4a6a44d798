//! The result: counts by the addresses of processes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hashbrown::{HashMap, HashSet};
use treering_profile::{BranchKind, UncountedReason};
use treering_x86::disassembly::Flow;

use crate::cache::block::{BlockFacts, End};
use crate::cache::indirect::IndirectArc;
use crate::context::ContextTree;
use crate::counting::active_blocks::BlockSet;
use crate::counting::branch_bias::BranchBias;
use crate::counting::propagated_counts;
use crate::counting::slow_path::{JournaledCount, PartialExecution, Transfer};
use crate::model::Modelled;
use crate::program::container_file::HiddenFile;
use crate::program::file_version::Version;
use crate::program::region::{NO_REGION, Region};
use crate::surroundings::HeldFacts;

/// One program in one address space, which several processes may have shared for a while (`vfork`).
#[derive(Debug, Clone)]
pub struct ProgramCounts {
    /// The process.
    pub pid: i32,
    /// The program's file.
    pub path: PathBuf,
    /// Its code, in the order in which it was mapped.
    pub regions: Vec<CodeRegion>,
    /// Its blocks that were executed, by number.
    pub blocks: Vec<CountedBlock>,
    /// Its threads, in the order in which they ended.
    pub threads: Vec<ThreadCounts>,
    /// The number of translated blocks, not all of which were executed.
    pub translated: u32,
    /// The facts about its surroundings.
    pub held: HeldFacts,
    /// The instructions of its blocks.
    pub(crate) known: KnownBlocks,
}

/// The instructions of blocks, by the blocks' numbers; empty for counts read from a journal.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownBlocks {
    /// The length of each instruction, block after block.
    pub(crate) lengths: Vec<u8>,
    /// By block, the number of its lengths, and the flow of its last instruction.
    pub(crate) blocks: Vec<(u8, Option<Flow>)>,
}

/// A region of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRegion {
    /// Its first address.
    pub start: u64,
    /// The address behind its last byte.
    pub end: u64,
    /// The file, and the offset of `start` in it; nothing for code that was made while the program ran.
    pub file: Option<(PathBuf, u64)>,
    /// The file, if this process does not find it by its path.
    pub hidden: Option<HiddenFile>,
    /// The file's version when it was mapped, if this process finds it by its path.
    pub(crate) version: Option<Version>,
    /// Whether it is the vDSO, which the kernel maps into every process.
    pub vdso: bool,
}

/// A translated block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedBlock {
    /// The address of its first instruction.
    pub address: u64,
    /// Its length in bytes.
    pub length: u32,
    /// The number of its instructions.
    pub instructions: u32,
    /// The length of its last instruction in bytes.
    pub last_length: u32,
    /// The region that it lies in.
    pub region: u32,
    /// Its most frequent successor, if that has no other predecessor and biases were computed.
    pub bias: Option<BranchBias>,
    /// Its code, if no file holds it.
    pub bytes: Option<Box<[u8]>>,
}

/// The counts of one thread.
#[derive(Debug, Clone)]
pub struct ThreadCounts {
    /// The thread.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// The name that it gave itself.
    pub name: String,
    /// Executions by the block's number, in the order of addresses; each block at most once, none with 0.
    pub executions: Vec<(u32, u64)>,
    /// Parts of blocks that have other counts than their blocks.
    pub partials: Vec<Partial>,
    /// The transfers of control.
    pub branches: Vec<Branch>,
    /// Targets of returns that reached the tracer, which are not counted. They include targets behind no
    /// call. It depends on the program's history which others are among them.
    pub returned: Vec<u64>,
    /// Its calling context tree, if that was asked for.
    pub tree: Option<ContextTree>,
    /// The model's counts, if there is a model.
    pub modelled: Option<Modelled>,
}

/// A part of a block whose instructions have a higher or lower count than the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partial {
    /// The block's number.
    pub block: u32,
    /// Where the part begins.
    pub address: u64,
    /// Its length in bytes.
    pub length: u32,
    /// The number of its instructions.
    pub instructions: u32,
    /// The difference from the block's executions.
    pub executions: i64,
}

/// The transfers of control from one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Their kind.
    pub kind: BranchKind,
    /// The address of the instruction; nothing if the kernel or the tracer made the transfer.
    pub site: Option<u64>,
    /// The block of the site, if it is known.
    pub block: Option<u32>,
    /// The target.
    pub target: Option<u64>,
    /// The region of the target, if it is known.
    pub region: Option<u32>,
    /// Their number.
    pub count: u64,
}

/// A part of the run that was not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCounted {
    /// Why.
    pub reason: UncountedReason,
    /// The process.
    pub pid: i32,
    /// A description.
    pub detail: String,
}

/// The counts of a thread that has ended; blocks by their numbers in the address space.
#[derive(Debug)]
pub(crate) struct EndedThread {
    pub(crate) counts: ThreadCounts,
}

/// An address space's translated code as its counts need it: in memory, or read from a journal.
pub(crate) trait Translated {
    /// The number of blocks.
    fn block_count(&self) -> u32;
    /// A block, and the number of its newest arc plus one, or 0.
    fn block(&self, block: u32) -> (BlockFacts, u32);
    fn arc(&self, arc: u32) -> IndirectArc;
    /// All regions of code that ever were, by number.
    fn regions(&self) -> &[Region];
    /// The code of blocks that no file holds.
    fn kept(&self) -> &[(u32, Box<[u8]>)];
    /// Blocks of levels above the first, by level and then by number.
    fn upper_levels(&self) -> &[Vec<u32>];
    /// The block that gets the counts that are propagated to an address.
    fn propagated(&self, address: u64) -> Option<u32>;
    /// The target region of a block's direct call or jump, if it is known to differ from the block's own.
    fn direct_target(&self, _block: u32) -> Option<u32> {
        None
    }
    /// Appends the length of each instruction of a block, if they are known. Returns the flow of the last one.
    fn outline(&self, _block: u32, _lengths: &mut Vec<u8>) -> Option<Flow> {
        None
    }
}

/// A thread that has ended, and its counters.
pub(crate) struct Done<'a, C> {
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    pub(crate) name: String,
    /// Its counters, by number.
    pub(crate) counter: C,
    /// At least the blocks of nonzero counters.
    pub(crate) active: BlockSet,
    pub(crate) partials: &'a HashMap<PartialExecution, JournaledCount>,
    pub(crate) transfers: &'a HashMap<Transfer, JournaledCount>,
}

/// Turns a thread's counters into counts.
pub(crate) fn end_thread<C: Fn(u32) -> u64>(code: &impl Translated, done: Done<'_, C>) -> EndedThread {
    let mut left = HashMap::new();
    for (execution, tally) in done.partials.iter().filter(|(execution, _)| execution.counted) {
        *left.entry(execution.block).or_insert(0) += tally.count;
    }
    let counts = propagated_counts::executions(code, &done.counter, done.active, &left);
    let mut executed = Vec::with_capacity(counts.len());
    let mut found = Vec::new();
    for (id, count) in counts {
        let ends = count.saturating_sub(left.get(&id).copied().unwrap_or(0));
        let from = found.len();
        let address = block_branches(code, &done.counter, id, ends, &mut found);
        executed.push((address, id, count, from as u32, found.len() as u32));
    }
    // The order of addresses does not depend on the order of translation.
    executed.sort_unstable_by_key(|&(address, id, ..)| (address, id));
    let executions = executed.iter().map(|&(_, id, count, ..)| (id, count)).collect();
    let mut branches = Vec::with_capacity(found.len() + done.transfers.len());
    for (.., from, to) in executed {
        branches.extend_from_slice(&found[from as usize..to as usize]);
    }
    let is_return = |&(kind, site, _): &Transfer| kind == BranchKind::Return && site.is_none();
    let mut returned: Vec<u64> = done
        .transfers
        .keys()
        .filter(|transfer| is_return(transfer))
        .filter_map(|&(.., target)| target)
        .collect();
    returned.sort_unstable();
    let transfers = done.transfers.iter().filter(|(transfer, _)| !is_return(transfer));
    let transfers = transfers.map(|(&(kind, site, target), tally)| Branch {
        kind,
        site,
        block: None,
        target,
        region: None,
        count: tally.count,
    });
    branches.extend(transfers);
    let partials =
        done.partials.iter().map(|(execution, tally)| partial(code, execution, tally.count)).collect();
    let Done { tid, pid, name, .. } = done;
    EndedThread {
        counts: ThreadCounts {
            tid,
            pid,
            name,
            executions,
            partials,
            branches,
            returned,
            tree: None,
            modelled: None,
        },
    }
}

impl EndedThread {
    /// The name that the thread gave itself.
    pub(crate) fn name(&self) -> &str {
        &self.counts.name
    }

    /// Its tree, if it has one.
    pub(crate) fn tree(&self) -> Option<&ContextTree> {
        self.counts.tree.as_ref()
    }

    /// Adds the thread's tree, which `tree` makes from the number of instructions that the blocks count.
    /// Returns a note if the tree does not hold as many.
    pub(crate) fn take_tree(
        &mut self,
        code: &impl Translated,
        tree: impl FnOnce(u64) -> Option<ContextTree>,
    ) -> Option<String> {
        let instructions = self.instructions(code);
        self.counts.tree = tree(instructions);
        let (tid, tree) = (self.counts.tid, self.tree()?);
        let differs = tree.instructions().wrapping_sub(instructions) as i64;
        (differs != 0).then(|| {
            format!(
                "the calling context tree of thread {tid} differs by {differs} instructions from its blocks"
            )
        })
    }

    fn instructions(&self, code: &impl Translated) -> u64 {
        let counts = &self.counts;
        let blocks = counts.executions.iter().fold(0_u64, |sum, &(id, count)| {
            sum.wrapping_add(count.wrapping_mul(code.block(id).0.instructions.into()))
        });
        let parts = counts.partials.iter().fold(0_u64, |sum, partial| {
            sum.wrapping_add((partial.executions * i64::from(partial.instructions)) as u64)
        });
        blocks.wrapping_add(parts)
    }
}

/// The part of a block that was executed more or less often than the block was counted.
fn partial(code: &impl Translated, execution: &PartialExecution, count: u64) -> Partial {
    let (block, _) = code.block(execution.block);
    if execution.counted {
        Partial {
            block: execution.block,
            address: block.address + u64::from(execution.offset),
            length: u32::from(block.length - execution.offset),
            instructions: u32::from(block.instructions - execution.done),
            executions: -(count as i64),
        }
    } else {
        Partial {
            block: execution.block,
            address: block.address,
            length: execution.offset.into(),
            instructions: execution.done.into(),
            executions: count as i64,
        }
    }
}

impl EndedThread {
    /// Adds the model's counts.
    pub(crate) fn with_model(mut self, modelled: Option<Modelled>) -> Self {
        self.counts.modelled = modelled;
        self
    }
}

/// Adds the transfers by the `ends` executions of a block's last instruction. A call or jump has one target. Of an
/// indirect one's targets, the first has the executions that the others leave. Returns the block's address.
fn block_branches(
    code: &impl Translated,
    counter: impl Fn(u32) -> u64,
    id: u32,
    ends: u64,
    branches: &mut Vec<Branch>,
) -> u64 {
    let (block, arcs) = code.block(id);
    let site = block.address + u64::from(block.length) - u64::from(block.last_length);
    let add = |branches: &mut Vec<Branch>, kind, target, region: u32, count| {
        if count != 0 {
            let region = Some(region).filter(|&region| region != NO_REGION);
            let (site, block, target) = (Some(site), Some(id), Some(target));
            branches.push(Branch { kind, site, block, target, region, count });
        }
    };
    let kind = match block.end {
        End::Call | End::Jump => {
            let kind = if block.end == End::Call { BranchKind::Call } else { BranchKind::Jump };
            let region = code.direct_target(id).unwrap_or(block.region);
            add(branches, kind, block.target, region, ends);
            return block.address;
        }
        End::IndirectCall => BranchKind::IndirectCall,
        End::IndirectJump => BranchKind::IndirectJump,
        End::Next | End::System | End::Branch | End::Return | End::Stop | End::Trap => return block.address,
    };
    let mut rest = ends;
    let (mut next, mut first) = (arcs, None);
    let from = branches.len();
    while next != 0 {
        let arc = code.arc(next - 1);
        match arc.counter {
            Some(number) => {
                let count = counter(number);
                rest = rest.saturating_sub(count);
                add(branches, kind, arc.target, arc.region, count);
            }
            None => first = Some((arc.target, arc.region)),
        }
        next = arc.next;
    }
    if let Some((target, region)) = first {
        add(branches, kind, target, region, rest);
    }
    // The order in which targets were first met is not meaningful.
    branches[from..].sort_unstable_by_key(|branch| (branch.target, branch.region));
    block.address
}

/// The result of an address space whose threads have ended; only executed blocks are kept. `biases` are those
/// of the blocks, if they were computed.
pub(crate) fn end_space(
    code: &impl Translated,
    pid: i32,
    path: PathBuf,
    ended: Vec<EndedThread>,
    biases: &[Option<BranchBias>],
) -> ProgramCounts {
    let mut numbers = vec![u32::MAX; code.block_count() as usize];
    let mut blocks = Vec::with_capacity(code.block_count() as usize);
    let mut known = KnownBlocks::default();
    known.blocks.reserve_exact(code.block_count() as usize);
    known.lengths.reserve(code.block_count() as usize * 5);
    let kept: HashMap<u32, &Box<[u8]>> = code.kept().iter().map(|(block, bytes)| (*block, bytes)).collect();
    let mut number = |id: u32| {
        let own = &mut numbers[id as usize];
        if *own == u32::MAX {
            *own = blocks.len() as u32;
            let (block, _) = code.block(id);
            blocks.push(CountedBlock {
                address: block.address,
                length: u32::from(block.length),
                instructions: u32::from(block.instructions),
                last_length: u32::from(block.last_length),
                region: block.region,
                bias: biases.get(id as usize).copied().flatten(),
                bytes: kept.get(&id).copied().cloned(),
            });
            let before = known.lengths.len();
            let last = code.outline(id, &mut known.lengths);
            known.blocks.push(((known.lengths.len() - before) as u8, last));
        }
        *own
    };
    let mut threads = Vec::new();
    for EndedThread { mut counts } in ended {
        counts.executions.iter_mut().for_each(|(id, _)| *id = number(*id));
        counts.partials.iter_mut().for_each(|partial| partial.block = number(partial.block));
        counts.branches.iter_mut().for_each(|branch| branch.block = branch.block.map(&mut number));
        let modelled = counts.modelled.iter_mut().flat_map(|modelled| &mut modelled.instructions);
        modelled.for_each(|row| row.block = number(row.block));
        threads.push(counts);
    }
    let regions = code.regions().iter().map(code_region).collect();
    ProgramCounts {
        pid,
        path,
        regions,
        blocks,
        threads,
        translated: code.block_count(),
        held: HeldFacts::default(),
        known,
    }
}

fn code_region(region: &Region) -> CodeRegion {
    CodeRegion {
        start: region.start,
        end: region.end,
        file: region.file.clone(),
        hidden: region.hidden.clone(),
        version: region.version,
        vdso: region.vdso,
    }
}

impl ProgramCounts {
    /// The number of executed instructions.
    pub fn instructions(&self) -> u64 {
        let whole = |thread: &ThreadCounts| -> i128 {
            let blocks = thread.executions.iter().map(|&(block, count)| {
                i128::from(count) * i128::from(self.blocks[block as usize].instructions)
            });
            let parts = thread
                .partials
                .iter()
                .map(|partial| i128::from(partial.executions) * i128::from(partial.instructions));
            blocks.sum::<i128>() + parts.sum::<i128>()
        };
        self.threads.iter().map(whole).sum::<i128>().clamp(0, u64::MAX.into()) as u64
    }

    /// The executed instructions beyond the level of the processor that the program saw, by the feature that they need.
    pub fn executed_beyond(&self) -> BTreeMap<&str, u64> {
        let noted: HashSet<u64> = self.held.beyond.iter().map(|one| one.block).collect();
        let blocks = (0_u32..).zip(&self.blocks).filter(|(_, block)| noted.contains(&block.address));
        let blocks: HashMap<u32, u64> = blocks.map(|(number, block)| (number, block.address)).collect();
        let (mut whole, mut parts) = (HashMap::new(), Vec::new());
        for thread in &self.threads {
            for (number, count) in &thread.executions {
                if let Some(&address) = blocks.get(number) {
                    *whole.entry(address).or_insert(0) += i128::from(*count);
                }
            }
            let partials = thread.partials.iter();
            parts.extend(partials.filter_map(|part| Some((*blocks.get(&part.block)?, part))));
        }
        let mut executed = BTreeMap::new();
        for one in &self.held.beyond {
            let covers =
                |part: &Partial| (part.address..part.address + u64::from(part.length)).contains(&one.address);
            let parts = parts.iter().filter(|(block, part)| *block == one.block && covers(part));
            let parts: i128 = parts.map(|(_, part)| i128::from(part.executions)).sum();
            let count = whole.get(&one.block).copied().unwrap_or(0) + parts;
            if count > 0 {
                *executed.entry(one.feature.as_str()).or_insert(0) += count as u64;
            }
        }
        executed
    }

    /// The number of entries into translated blocks.
    pub fn block_executions(&self) -> u64 {
        self.threads.iter().flat_map(|thread| &thread.executions).map(|&(_, count)| count).sum()
    }

    /// A note on its trees, if any of them had unmatched returns.
    pub(crate) fn unmatched_returns(&self) -> Option<NotCounted> {
        let unmatched_returns =
            |thread: &ThreadCounts| thread.tree.as_ref().map_or(0, |tree| tree.unmatched_returns);
        let went: Vec<_> = self.threads.iter().filter(|thread| unmatched_returns(thread) != 0).collect();
        let times = match went.iter().map(|thread| unmatched_returns(thread)).sum() {
            0 => return None,
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        let who = match &went[..] {
            [thread] => format!("thread {}", thread.tid),
            threads => format!("{} threads", threads.len()),
        };
        let detail = format!(
            "{who} went {times} to where no call had come from, as on another stack or by a return that is a jump: \
             what ran there stands below the function that went there"
        );
        Some(NotCounted { reason: UncountedReason::Other, pid: self.pid, detail })
    }

    /// The number of calls.
    pub fn calls(&self) -> u64 {
        let branches = self.threads.iter().flat_map(|thread| &thread.branches);
        branches.filter(|branch| branch.kind.is_call()).map(|branch| branch.count).sum()
    }
}
