//! Executions by address.

use std::collections::BTreeMap;

use super::{Observer, Step, SteppedProcess};

/// How often each instruction was executed, by image and runtime address, all threads together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Executions by [`SteppedProcess::image`] and address of the instruction.
    pub executions: BTreeMap<(u32, u64), u64>,
    /// How many signals ran a handler or ended a thread.
    pub signals: u64,
    /// The numbers of all threads, in the order in which they started.
    pub threads: Vec<u32>,
}

impl Histogram {
    /// How many instructions were executed in all.
    pub fn instructions(&self) -> u64 {
        self.executions.values().sum()
    }

    /// How often the instruction at an address was executed, by all processes together.
    pub fn at(&self, address: u64) -> u64 {
        let there = self.executions.iter().filter(|((_, at), _)| *at == address);
        there.map(|(_, count)| count).sum()
    }
}

impl Observer for Histogram {
    fn step(&mut self, process: &mut SteppedProcess, tid: u32, step: Step) {
        match step {
            Step::Start { .. } => self.threads.push(tid),
            Step::Executed { at, .. } => *self.executions.entry((process.image(), at)).or_default() += 1,
            Step::Signal { .. } => self.signals += 1,
        }
    }
}
