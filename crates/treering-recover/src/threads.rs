//! Threads that did the same, which are worked on once.

use hashbrown::HashMap;
use treering_profile::{
    BasicBlock, BlockExecutions, BranchCount, CodeCounts, OfThread as _, PartialCount, ThreadId,
    TranslatedBlock,
};

/// The counts of one thread of each kind, and all basic blocks.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) translated: Vec<TranslatedBlock>,
    pub(super) partials: Vec<PartialCount>,
    pub(super) branches: Vec<BranchCount>,
    pub(super) blocks: Vec<BasicBlock>,
    pub(super) executions: Vec<BlockExecutions>,
}

/// Threads whose translated blocks and branches are equal, and which were never stopped within a block, by the first of
/// them, whose counts are in [`Tables`].
pub(super) struct Alike(Vec<(ThreadId, Vec<ThreadId>)>);

impl Tables {
    /// Takes the counts of translated blocks, and the basic blocks, out of `code`. Executions stay.
    pub(super) fn take(code: &mut CodeCounts) -> (Self, Alike) {
        let mut stopped: Vec<ThreadId> = code.partials.iter().map(|row| row.thread).collect();
        stopped.sort_unstable();
        let all = code.translated.threads().chain(code.branches.threads()).chain(stopped.iter().copied());
        let mut all: Vec<ThreadId> = all.collect();
        all.sort_unstable();
        all.dedup();
        let (mut alike, mut known): (Vec<(ThreadId, Vec<_>)>, HashMap<_, usize>) = Default::default();
        for thread in all {
            let alone = stopped.binary_search(&thread).is_ok().then_some(thread);
            let did = (code.translated.list(thread), code.branches.list(thread), alone);
            let kind = *known.entry(did).or_insert_with(|| {
                alike.push((thread, Vec::new()));
                alike.len() - 1
            });
            alike[kind].1.push(thread);
        }
        let first = || alike.iter().map(|(thread, _)| *thread);
        let tables = Self {
            translated: first().flat_map(|thread| code.translated.of(thread)).collect(),
            partials: std::mem::take(&mut code.partials),
            branches: first().flat_map(|thread| code.branches.of(thread)).collect(),
            blocks: std::mem::take(&mut code.blocks),
            executions: Vec::new(),
        };
        code.translated.clear();
        code.branches.clear();
        (tables, Alike(alike))
    }

    /// Gives executions and branches to all threads, and the blocks back.
    pub(super) fn put(self, code: &mut CodeCounts, alike: &Alike) {
        let (mut executions, mut branches) = (by_thread(self.executions), by_thread(self.branches));
        let are_first = code.executions.is_empty();
        for (first, threads) in &alike.0 {
            let rows = executions.remove(first).unwrap_or_default();
            match are_first {
                true => code.executions.set(threads, rows),
                false => {
                    let all = threads
                        .iter()
                        .flat_map(|&thread| rows.iter().map(move |row| row.with_thread(thread)));
                    code.executions.extend(all);
                }
            }
            code.branches.set(threads, branches.remove(first).unwrap_or_default());
        }
        code.blocks = self.blocks;
    }
}

impl Alike {
    /// How many threads did the same as one whose counts are in the tables.
    pub(super) fn count(&self, first: ThreadId) -> usize {
        let known = self.0.binary_search_by_key(&first, |(thread, _)| *thread);
        known.map_or(1, |at| self.0[at].1.len())
    }
}

fn by_thread<T: treering_profile::OfThread>(rows: Vec<T>) -> HashMap<ThreadId, Vec<T>> {
    let mut threads: HashMap<ThreadId, Vec<T>> = HashMap::new();
    for rows in rows.chunk_by(|one, other| one.thread() == other.thread()) {
        threads.entry(rows[0].thread()).or_default().extend_from_slice(rows);
    }
    threads
}
