//! Counts of the slow path: transfers that the tracer made for a thread, and blocks that a thread executed in part.

use hashbrown::HashMap;
use treering_profile::BranchKind;

/// The content of a journal record: its file, and its offset there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkPlace {
    pub(crate) chunk: u32,
    pub(crate) offset: u32,
}

/// A block that was left early: the block, the executed instructions, and whether the execution has been counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PartialExecution {
    pub(crate) block: u32,
    pub(crate) offset: u16,
    pub(crate) done: u8,
    pub(crate) counted: bool,
}

/// A transfer that the tracer made for a thread: its kind, its origin and its target.
pub(crate) type Transfer = (BranchKind, Option<u64>, Option<u64>);

/// The number of times that something happened, and its place in the journal.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JournaledCount {
    pub(crate) count: u64,
    pub(crate) place: Option<ChunkPlace>,
}

/// An event whose count has grown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum News {
    Transfer(Transfer),
    PartialExecution(PartialExecution),
}

/// The events of a thread that no counter counts.
#[derive(Debug, Default)]
pub(crate) struct SlowPathCounts {
    pub(crate) partials: HashMap<PartialExecution, JournaledCount>,
    pub(crate) transfers: HashMap<Transfer, JournaledCount>,
    /// The events since the journal was last written.
    pub(crate) news: Vec<News>,
    /// Whether nothing is noted, as the thread is not counted at present.
    pub(crate) off: bool,
}

impl SlowPathCounts {
    /// Notes a partial execution.
    pub(crate) fn note_partial(&mut self, execution: PartialExecution) {
        if self.off {
            return;
        }
        self.partials.entry(execution).or_default().count += 1;
        self.news.push(News::PartialExecution(execution));
    }

    /// Notes a transfer of control.
    pub(crate) fn note_transfer(&mut self, kind: BranchKind, from: Option<u64>, to: Option<u64>) {
        if self.off {
            return;
        }
        let transfer = (kind, from, to);
        self.transfers.entry(transfer).or_default().count += 1;
        self.news.push(News::Transfer(transfer));
    }
}
