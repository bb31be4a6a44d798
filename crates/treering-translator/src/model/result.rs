//! The model's counts by instruction.

use std::collections::BTreeMap;

use treering_profile::ModelledEvent;

use crate::areas::thread_areas::ThreadAreas;
use crate::cache::block::Blocks;

use super::plan::AccessKind;
use super::{Ending, Model, Plan};

/// The model's count of an executed instruction of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelledInstruction {
    /// The number of its block.
    pub block: u32,
    /// Its address.
    pub address: u64,
    /// The counted event.
    pub event: ModelledEvent,
    /// The number of these events.
    pub count: u64,
}

/// All of the model's counts of a thread.
#[derive(Debug, Clone, Default)]
pub struct Modelled {
    /// Nonzero counts, by block.
    pub instructions: Vec<ModelledInstruction>,
    /// The number of instructions that the model has seen. If it differs from the number of counted
    /// instructions, some were lost.
    pub executed: u64,
    /// Executions of instructions whose addresses are not known exactly: gathers, scatters and bit strings.
    pub inexact: u64,
}

impl Model {
    /// Takes the counts of a thread that has ended.
    pub(crate) fn end_thread(&mut self, area: usize, areas: &ThreadAreas, blocks: &Blocks) -> Modelled {
        self.replay(area, areas);
        self.end(area, |block| blocks.offsets(block))
    }

    /// `offsets` gives the beginning of each instruction of a block.
    fn end(&mut self, area: usize, offsets: impl Fn(u32) -> Vec<u64>) -> Modelled {
        let thread = self.threads.remove(&area).unwrap_or_default();
        let mut cuts: BTreeMap<u32, Vec<(u8, u64)>> = BTreeMap::new();
        for (&(block, done), &count) in &thread.tally.cut {
            cuts.entry(block).or_default().push((done, count));
        }
        let mut modelled = Modelled::default();
        for (at, tally) in thread.tally.blocks.iter().enumerate().filter(|(_, tally)| tally.executions > 0) {
            let block = at as u32;
            let plan = self.blocks[at];
            let cuts = cuts.get(&block).map_or(&[][..], Vec::as_slice);
            let executions = |instruction: u8| {
                let cut = cuts.iter().filter(|(done, _)| *done <= instruction).map(|(_, count)| count);
                tally.executions.saturating_sub(cut.sum())
            };
            modelled.executed += (0..plan.instructions).map(executions).sum::<u64>();
            modelled.inexact += if plan.inexact { tally.executions } else { 0 };
            let mut counts: BTreeMap<(u8, ModelledEvent), u64> = BTreeMap::new();
            let mut add = |instruction, event, count| {
                *counts.entry((instruction, event)).or_insert(0) += count;
            };
            self.add_accesses(&plan, &thread.tally.cells, &executions, &mut add);
            if self.options.branches {
                add_branches(&plan, executions(plan.instructions - 1), tally.mispredicted, &mut add);
            }
            let offsets = offsets(block);
            let rows =
                counts.into_iter().filter(|&(_, count)| count > 0).map(|((instruction, event), count)| {
                    let offset = offsets.get(usize::from(instruction)).copied().unwrap_or(0);
                    ModelledInstruction { block, address: plan.address + offset, event, count }
                });
            modelled.instructions.extend(rows);
        }
        modelled
    }

    fn add_accesses(
        &self,
        plan: &Plan,
        cells: &super::tally::Cells,
        executions: &impl Fn(u8) -> u64,
        add: &mut impl FnMut(u8, ModelledEvent, u64),
    ) {
        use ModelledEvent as E;
        let first = plan.first as usize;
        for (at, event) in self.events[first..first + usize::from(plan.events)].iter().enumerate() {
            let [first_misses, last_misses, rounds] = cells.get(first + at);
            let instruction = event.instruction;
            let (accesses, misses, last) = match event.kind {
                AccessKind::Fetch => (None, E::I1mr, E::ILmr),
                AccessKind::Read | AccessKind::ReadUpTo(_) => (Some(E::Dr), E::D1mr, E::DLmr),
                AccessKind::Write | AccessKind::WriteUpTo(_) => (Some(E::Dw), E::D1mw, E::DLmw),
            };
            let repeats = matches!(event.kind, AccessKind::ReadUpTo(_) | AccessKind::WriteUpTo(_));
            if let Some(accesses) = accesses {
                add(instruction, accesses, if repeats { rounds } else { executions(instruction) });
            }
            add(instruction, misses, first_misses);
            add(instruction, last, last_misses);
        }
    }
}

fn add_branches(
    plan: &Plan,
    executions: u64,
    mispredicted: u64,
    add: &mut impl FnMut(u8, ModelledEvent, u64),
) {
    use ModelledEvent as E;
    let last = plan.instructions - 1;
    let (branches, misses) = match plan.end {
        Ending::None => return,
        Ending::Branch => (E::Bc, E::Bcm),
        Ending::Indirect => (E::Bi, E::Bim),
    };
    add(last, branches, executions);
    add(last, misses, mispredicted);
}
