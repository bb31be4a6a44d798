//! Stretches of code, in which all instructions are executed equally often.

use treering_profile::{BranchKind, CodeAddress, CodeCounts, StatedAddress};
use treering_x86::disassembly::Flow;

use super::direct;
use super::instructions::{Blocks, Instructions};

/// The instructions of all translated blocks, in stretches sorted by address.
///
/// Within a stretch one instruction lies behind the other and none leads elsewhere, and nothing that was
/// counted begins or ends there: no translated block or part of one, no branch, and nowhere does a direct
/// branch lead there. So what is to be said of its instructions is said of all of them at once.
pub(super) struct Stretches {
    instructions: Instructions,
    all: Vec<Stretch>,
    /// By row of [`CodeCounts::translated`], where its block begins.
    pub(super) translated: Vec<Option<u32>>,
    /// By row of [`CodeCounts::partials`], where the part begins.
    pub(super) partials: Vec<Option<u32>>,
    /// By row of [`CodeCounts::branches`], the stretch that it leaves from, and the one that it goes to.
    pub(super) branches: Vec<(Option<u32>, Option<u32>)>,
}

struct Stretch {
    /// Its instructions.
    first: u32,
    last: u32,
    /// Where the last leads.
    flow: Flow,
    /// The stretch behind it, if it was translated.
    behind: Option<u32>,
    /// The stretch that its last instruction leads to by a direct branch, if it was translated.
    target: Option<u32>,
    /// The stretches that have this one behind them and may lead on to it.
    before: Before,
}

/// The stretches that may lead on to another one without a branch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    None,
    One(u32),
    /// Instructions that share bytes may both lead to the same next one.
    Several,
}

impl Stretches {
    /// Divides instructions; `blocks` are those of `code`.
    pub(super) fn new(code: &CodeCounts, instructions: Instructions, blocks: Blocks) -> Self {
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
        let stretch_of = cuts.stretch_of();
        let number = |at: &mut Option<u32>| *at = at.map(|at| stretch_of[at as usize]);
        let mut translated = blocks.starts;
        translated.iter_mut().chain(&mut partials).for_each(number);
        branches.iter_mut().flat_map(|(site, target)| [site, target]).for_each(number);
        let all = stretches(&instructions, &stretch_of, &targets);
        Self { instructions, all, translated, partials, branches }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The bytes of each instruction of a stretch.
    pub(super) fn lengths(&self, at: usize) -> &[u8] {
        let Stretch { first, last, .. } = self.all[at];
        &self.instructions.lengths()[first as usize..=last as usize]
    }

    /// The first instruction of a stretch.
    pub(super) fn start(&self, at: usize) -> CodeAddress {
        self.instructions.place(self.all[at].first as usize)
    }

    /// The last instruction of a stretch, and the place behind it.
    pub(super) fn last(&self, at: usize) -> (CodeAddress, CodeAddress) {
        let last = self.all[at].last as usize;
        let place = self.instructions.place(last);
        (place, place.offset(self.instructions.lengths()[last].into()))
    }

    /// Where the last instruction of a stretch leads.
    pub(super) fn flow(&self, at: usize) -> Flow {
        self.all[at].flow
    }

    fn behind(&self, at: usize) -> Option<usize> {
        self.all[at].behind.map(|behind| behind as usize)
    }

    /// The stretch behind one that may lead on to it, branches not taken included.
    pub(super) fn next(&self, at: usize) -> Option<usize> {
        self.behind(at).filter(|_| leads_on(self.all[at].flow))
    }

    /// The stretches that may lead on to this one without a branch.
    pub(super) fn before(&self, at: usize) -> Before {
        self.all[at].before
    }

    /// The stretch behind one that does not end with a branch.
    pub(super) fn falls_into(&self, at: usize) -> Option<usize> {
        self.behind(at).filter(|_| self.all[at].flow == Flow::Next)
    }

    /// The stretch that a call comes back to, if it was translated.
    pub(super) fn landing(&self, at: usize) -> Option<usize> {
        self.behind(at).filter(|_| matches!(self.all[at].flow, Flow::Call(_) | Flow::IndirectCall))
    }

    /// The stretches of so many instructions that follow each other in memory.
    pub(super) fn run(&self, start: u32, instructions: u32) -> impl Iterator<Item = usize> + '_ {
        let (mut next, mut left) = (Some(start as usize), instructions);
        std::iter::from_fn(move || {
            let at = next.filter(|_| left > 0)?;
            let Stretch { first, last, .. } = self.all[at];
            left = left.saturating_sub(last - first + 1);
            next = self.behind(at);
            Some(at)
        })
    }

    /// The stretch that a direct branch leads to, if it was translated.
    pub(super) fn direct_target(&self, at: usize) -> Option<usize> {
        self.all[at].target.map(|target| target as usize)
    }
}

fn leads_on(flow: Flow) -> bool {
    matches!(flow, Flow::Next | Flow::Conditional(_))
}

/// Where stretches begin.
struct Cuts<'a> {
    instructions: &'a Instructions,
    /// By instruction, and one more.
    begins: Vec<bool>,
}

impl<'a> Cuts<'a> {
    /// Stretches of instructions that lie one behind the other and of which only the last may lead
    /// elsewhere.
    fn new(instructions: &'a Instructions) -> Self {
        let begins = vec![false; instructions.len() + 1];
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
        self.begins[at as usize] = true;
    }

    fn behind(&mut self, at: u32) {
        self.begins[at as usize + 1] = true;
    }

    /// Cuts before and behind so many instructions that follow each other in memory.
    fn around(&mut self, start: u32, instructions: u32) {
        self.before(start);
        let end = (0..instructions).try_fold(start as usize, |at, _| self.instructions.behind(at));
        end.into_iter().for_each(|end| self.before(end as u32));
    }

    /// The instructions that direct branches lead to, one for each of [`Instructions::branches`].
    fn direct_targets(&mut self) -> Vec<Option<u32>> {
        let targets = self.instructions.branches().iter().map(|&(at, flow)| {
            let (_, target) = direct(flow)?;
            let place = self.instructions.place(at as usize);
            let target = self.instructions.find(CodeAddress { address: StatedAddress(target), ..place })?;
            self.begins[target] = true;
            Some(target as u32)
        });
        targets.collect()
    }

    /// By instruction, its stretch.
    fn stretch_of(&self) -> Vec<u32> {
        let mut begun = 0;
        let begins = self.begins[..self.instructions.len()].iter();
        let number = begins.map(|&begins| {
            begun += u32::from(begins);
            begun - 1
        });
        number.collect()
    }
}

/// The stretches of instructions, of which is told what stretch each is in, and what the branches lead to.
fn stretches(instructions: &Instructions, stretch_of: &[u32], targets: &[Option<u32>]) -> Vec<Stretch> {
    let number = |at: u32| stretch_of[at as usize];
    let mut branches = instructions.branches().iter().zip(targets).peekable();
    let mut all: Vec<Stretch> = Vec::with_capacity(stretch_of.last().map_or(0, |last| *last as usize + 1));
    let mut first = 0;
    for same in stretch_of.chunk_by(|one, other| one == other) {
        let last = first + same.len() as u32 - 1;
        let branch = branches.next_if(|((at, _), _)| *at == last);
        let (flow, target) = branch.map_or((Flow::Next, None), |((_, flow), target)| (*flow, *target));
        let behind = instructions.behind(last as usize).map(|behind| number(behind as u32));
        all.push(Stretch { first, last, flow, behind, target: target.map(number), before: Before::None });
        first = last + 1;
    }
    for at in 0..all.len() {
        let Some(behind) = all[at].behind.filter(|_| leads_on(all[at].flow)) else { continue };
        let before = &mut all[behind as usize].before;
        *before = if *before == Before::None { Before::One(at as u32) } else { Before::Several };
    }
    all
}
