//! Stretches of code, in which all instructions are executed equally often.

use treering_profile::{BranchKind, CodeAddress, CodeSpaceId, StatedAddress};
use treering_x86::disassembly::Flow;

use super::bits::Bits;
use super::direct;
use super::instructions::{Blocks, Instructions};
use super::threads::Tables;

/// The instructions of all translated blocks, in stretches sorted by address.
///
/// The instructions of a stretch follow each other, and none leads elsewhere. Within it, no translated block or part
/// of one begins or ends, no branch ends, and no direct branch has its target. So all of its instructions have the
/// same counts.
pub(super) struct Stretches {
    all: Vec<Stretch>,
    /// The first of each space, in order.
    spaces: Vec<(u32, CodeSpaceId)>,
    /// The bytes of each instruction.
    lengths: Vec<u8>,
    /// Instructions that may lead elsewhere than to the instruction behind, and where to.
    branches: Vec<(u32, Flow)>,
    /// By row of [`Tables::translated`], the number of its block.
    pub(super) translated: Vec<u32>,
    /// By number, where a translated block begins.
    pub(super) starts: Vec<Option<u32>>,
    /// By row of [`Tables::partials`], where the part begins.
    pub(super) partials: Vec<Option<u32>>,
    /// By row of [`Tables::branches`], the stretch that it leaves from, and the one that it goes to.
    pub(super) stated: Vec<(Option<u32>, Option<u32>)>,
}

/// [`NONE`] stands for a missing number.
struct Stretch {
    /// Where it begins.
    start: StatedAddress,
    /// Its first instruction; the last is that before the next stretch.
    first: u32,
    /// The number among the branches of its last instruction, if that may lead elsewhere.
    branch: u32,
    /// The stretch behind it, if it was translated.
    behind: u32,
    /// The stretch that its last instruction leads to by a direct branch, if it was translated.
    target: u32,
    /// The stretch that has this one behind it and may lead on to it; [`SEVERAL`] if there are more.
    before: u32,
}

const NONE: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

fn number(at: Option<u32>) -> u32 {
    at.unwrap_or(NONE)
}

fn some(number: u32) -> Option<usize> {
    (number != NONE).then_some(number as usize)
}

/// The stretches that may lead on to another one without a branch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    None,
    One(usize),
    /// Instructions that share bytes may both lead to the same next one.
    Several,
}

impl Stretches {
    /// Divides instructions; `blocks` are those of `code`.
    pub(super) fn new(code: &Tables, instructions: Instructions, blocks: Blocks) -> Self {
        let mut cuts = Cuts::new(&instructions);
        let targets = cuts.direct_targets();
        blocks.runs.iter().for_each(|&(start, instructions)| cuts.around(start, instructions));
        let find = |place: Option<CodeAddress>| Some(instructions.find(place?)? as u32);
        let mut partials: Vec<_> = code.partials.iter().map(|row| find(Some(row.start))).collect();
        for (row, start) in code.partials.iter().zip(&partials) {
            start.iter().for_each(|start| cuts.around(*start, row.instructions));
        }
        let ends = code.branches.iter().map(|row| (find(row.site), find(row.target)));
        let mut branches: Vec<_> = ends.collect();
        for (row, (site, target)) in code.branches.iter().zip(&branches) {
            match row.kind {
                // The instruction was about to be executed.
                BranchKind::Signal => site.iter().for_each(|site| cuts.before(*site)),
                _ => site.iter().for_each(|site| cuts.behind(*site)),
            }
            target.iter().for_each(|target| cuts.before(*target));
        }
        let numbered = cuts.numbered();
        let number = |at: &mut Option<u32>| *at = at.map(|at| numbered.of(at));
        let mut starts = blocks.starts;
        starts.iter_mut().chain(&mut partials).for_each(number);
        branches.iter_mut().flat_map(|(site, target)| [site, target]).for_each(number);
        let all = stretches(&instructions, &numbered, &targets);
        let spaces =
            instructions.spaces().iter().map(|&(first, space)| (numbered.of(first), space)).collect();
        let (lengths, flows) = instructions.into_lengths_and_branches();
        let translated = blocks.numbers;
        Self { all, spaces, lengths, branches: flows, translated, starts, partials, stated: branches }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The instructions of a stretch.
    fn instructions(&self, at: usize) -> std::ops::Range<usize> {
        let end = self.all.get(at + 1).map_or(self.lengths.len(), |next| next.first as usize);
        self.all[at].first as usize..end
    }

    /// The bytes of each instruction of a stretch.
    pub(super) fn lengths(&self, at: usize) -> &[u8] {
        &self.lengths[self.instructions(at)]
    }

    /// The first instruction of a stretch.
    pub(super) fn start(&self, at: usize) -> CodeAddress {
        let after = self.spaces.partition_point(|(first, _)| *first as usize <= at);
        CodeAddress { space: self.spaces[after - 1].1, address: self.all[at].start }
    }

    /// The last instruction of a stretch, and the place behind it.
    pub(super) fn last(&self, at: usize) -> (CodeAddress, CodeAddress) {
        let bytes = |lengths: &[u8]| lengths.iter().map(|&length| u64::from(length)).sum();
        let (lengths, start) = (self.lengths(at), self.start(at));
        (start.offset(bytes(&lengths[..lengths.len() - 1])), start.offset(bytes(lengths)))
    }

    /// Where the last instruction of a stretch leads.
    pub(super) fn flow(&self, at: usize) -> Flow {
        some(self.all[at].branch).map_or(Flow::Next, |branch| self.branches[branch].1)
    }

    fn behind(&self, at: usize) -> Option<usize> {
        some(self.all[at].behind)
    }

    /// The stretch behind one that may lead on to it, branches not taken included.
    pub(super) fn next(&self, at: usize) -> Option<usize> {
        self.behind(at).filter(|_| leads_on(self.flow(at)))
    }

    /// The stretches that may lead on to this one without a branch.
    pub(super) fn before(&self, at: usize) -> Before {
        match self.all[at].before {
            NONE => Before::None,
            SEVERAL => Before::Several,
            before => Before::One(before as usize),
        }
    }

    /// The stretch behind one that does not end with a branch.
    pub(super) fn falls_into(&self, at: usize) -> Option<usize> {
        self.behind(at).filter(|_| self.all[at].branch == NONE)
    }

    /// The stretch that a call comes back to, if it was translated.
    pub(super) fn landing(&self, at: usize) -> Option<usize> {
        self.behind(at).filter(|_| matches!(self.flow(at), Flow::Call(_) | Flow::IndirectCall))
    }

    /// The stretches of `instructions` instructions that follow each other in memory.
    pub(super) fn run(&self, start: u32, instructions: u32) -> impl Iterator<Item = usize> + '_ {
        let (mut next, mut left) = (Some(start as usize), instructions as usize);
        std::iter::from_fn(move || {
            let at = next.filter(|_| left > 0)?;
            left = left.saturating_sub(self.instructions(at).len());
            next = self.behind(at);
            Some(at)
        })
    }

    /// The stretch that a direct branch leads to, if it was translated.
    pub(super) fn direct_target(&self, at: usize) -> Option<usize> {
        some(self.all[at].target)
    }
}

fn leads_on(flow: Flow) -> bool {
    matches!(flow, Flow::Next | Flow::Conditional(_))
}

/// Where stretches begin.
struct Cuts<'a> {
    instructions: &'a Instructions,
    /// The instructions that stretches begin with, or the number behind the last one.
    begins: Bits,
}

impl<'a> Cuts<'a> {
    /// Stretches of instructions that lie one behind the other and of which only the last may lead
    /// elsewhere.
    fn new(instructions: &'a Instructions) -> Self {
        let begins = Bits::new(instructions.len() + 1);
        let mut cuts = Self { instructions, begins };
        cuts.before(0);
        for at in instructions.unfollowed() {
            cuts.behind(at as u32);
            instructions.behind(at).into_iter().for_each(|behind| cuts.before(behind as u32));
        }
        instructions.branches().iter().for_each(|(at, _)| cuts.behind(*at));
        cuts
    }

    fn before(&mut self, at: u32) {
        self.begins.insert(at as usize);
    }

    fn behind(&mut self, at: u32) {
        self.begins.insert(at as usize + 1);
    }

    /// Cuts before and behind `instructions` instructions that follow each other in memory.
    fn around(&mut self, start: u32, instructions: u32) {
        self.before(start);
        let end = (0..instructions).try_fold(start as usize, |at, _| self.instructions.behind(at));
        end.into_iter().for_each(|end| self.before(end as u32));
    }

    /// The instructions that direct branches lead to, one for each of [`Instructions::branches`].
    fn direct_targets(&mut self) -> Vec<u32> {
        let targets = self.instructions.branches().iter().map(|&(at, flow)| {
            let (_, target) = direct(flow)?;
            let place = self.instructions.place(at as usize);
            let target = self.instructions.find(CodeAddress { address: StatedAddress(target), ..place })?;
            self.begins.insert(target);
            Some(target as u32)
        });
        targets.map(number).collect()
    }

    /// The stretches, now that all begin.
    fn numbered(self) -> Numbered {
        let mut begins = self.begins;
        let all = begins.count();
        Numbered { all: all - usize::from(begins.contains(self.instructions.len())), begins }
    }
}

/// Stretches by their numbers.
struct Numbered {
    begins: Bits,
    /// How many there are.
    all: usize,
}

impl Numbered {
    /// The stretch of an instruction.
    fn of(&self, at: u32) -> u32 {
        self.begins.up_to(at as usize) - 1
    }
}

/// The stretches of instructions, and where their branches lead.
fn stretches(instructions: &Instructions, numbered: &Numbered, targets: &[u32]) -> Vec<Stretch> {
    let mut branches = (0..).zip(instructions.branches()).zip(targets).peekable();
    let mut all: Vec<Stretch> = Vec::with_capacity(numbered.all);
    let mut begins = numbered.begins.iter().take(numbered.all).peekable();
    while let Some(first) = begins.next() {
        let last = begins.peek().copied().unwrap_or(instructions.len()) - 1;
        let branch = branches.next_if(|((_, (at, _)), _)| *at as usize == last);
        let (branch, target) = branch.map_or((NONE, NONE), |((branch, _), target)| (branch, *target));
        let stretch_of = |at: Option<usize>| number(at.map(|at| numbered.of(at as u32)));
        let (behind, target) = (stretch_of(instructions.behind(last)), stretch_of(some(target)));
        all.push(Stretch {
            start: instructions.address(first),
            first: first as u32,
            branch,
            behind,
            target,
            before: NONE,
        });
    }
    for at in 0..all.len() {
        let Stretch { branch, behind, .. } = all[at];
        let flow = some(branch).map_or(Flow::Next, |branch| instructions.branches()[branch].1);
        let Some(behind) = some(behind).filter(|_| leads_on(flow)) else { continue };
        let before = &mut all[behind].before;
        *before = if *before == NONE { at as u32 } else { SEVERAL };
    }
    all
}
