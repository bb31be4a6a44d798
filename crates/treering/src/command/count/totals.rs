//! The sums of a count.

use treering_report::{grouped, plural};
use treering_translator::{ContextNode, ProgramCounts};

/// The sums over all programs.
#[derive(Default)]
pub struct Totals {
    instructions: u64,
    block_executions: u64,
    calls: u64,
    threads: usize,
    programs: usize,
    /// Nodes of calling context trees, without their roots.
    contexts: usize,
    /// How many functions the longest chain of callers has.
    depth: u32,
}

impl Totals {
    /// Adds a program.
    pub fn add(&mut self, program: &ProgramCounts) {
        self.instructions += program.instructions();
        self.block_executions += program.block_executions();
        self.calls += program.calls();
        self.threads += program.threads.len();
        self.programs += 1;
        for tree in program.threads.iter().filter_map(|thread| thread.tree.as_ref()) {
            self.contexts += tree.nodes.len() - 1;
            self.depth = self.depth.max(depth(&tree.nodes));
        }
    }

    /// Whether nothing was executed.
    pub fn is_nothing(&self) -> bool {
        self.instructions == 0
    }

    /// Tells them; `tree`: with those of calling context trees.
    pub fn print(&self, tree: bool) {
        tell!("{:>20}  instructions executed", grouped(self.instructions));
        tell!("{:>20}  blocks entered", grouped(self.block_executions));
        tell!("{:>20}  calls", grouped(self.calls));
        if tree {
            tell!("{:>20}  contexts, up to {} deep", grouped(self.contexts as u64), self.depth);
        }
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        tell!(
            "{:>20}  {threads}, in {}",
            grouped(self.threads as u64),
            plural(self.programs as u64, "program")
        );
    }
}

/// How many functions the longest chain of callers has.
fn depth(nodes: &[ContextNode]) -> u32 {
    let mut depths: Vec<u32> = vec![0; nodes.len()];
    for (at, node) in nodes.iter().enumerate().skip(1) {
        depths[at] = depths[node.parent as usize] + 1;
    }
    depths.into_iter().max().unwrap_or(0)
}
