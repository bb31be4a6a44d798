//! What a count comes to in a few numbers.

use treering_report::grouped;
use treering_translator::{ContextNode, ProgramCounts};

/// What was counted of all programs.
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
    /// Adds programs up.
    pub fn of(programs: &[ProgramCounts]) -> Self {
        let sum = |of: fn(&ProgramCounts) -> u64| programs.iter().map(of).sum();
        let threads = || programs.iter().flat_map(|program| &program.threads);
        let trees = || threads().filter_map(|thread| thread.tree.as_ref());
        Self {
            instructions: sum(ProgramCounts::instructions),
            block_executions: sum(ProgramCounts::block_executions),
            calls: sum(ProgramCounts::calls),
            threads: threads().count(),
            programs: programs.len(),
            contexts: trees().map(|tree| tree.nodes.len() - 1).sum(),
            depth: trees().map(|tree| depth(&tree.nodes)).max().unwrap_or(0),
        }
    }

    /// Tells them; `tree`: with those of calling context trees.
    pub fn print(&self, tree: bool) {
        tell!("{:>20}  instructions executed", grouped(self.instructions));
        tell!("{:>20}  blocks entered", grouped(self.block_executions));
        tell!("{:>20}  calls", grouped(self.calls));
        if tree {
            tell!("{:>20}  contexts, up to {} deep", grouped(self.contexts as u64), self.depth);
        }
        let plural = |count, what: &str| format!("{what}{}", if count == 1 { "" } else { "s" });
        let (threads, programs) = (plural(self.threads, "thread"), plural(self.programs, "program"));
        tell!("{:>20}  {threads}, in {} {programs}", self.threads, self.programs);
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
