//! Counts of the slow path: transfers that the tracer made for a thread, and blocks that a thread executed in part.

use hashbrown::HashMap;
use treering_profile::BranchKind;

/// Where a record's content lies: in which file, and from where on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkPlace {
    pub(crate) chunk: u32,
    pub(crate) offset: u32,
}

/// Where a block was left before its end: the block, the instructions executed, and whether that execution
/// has been counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PartialExecution {
    pub(crate) block: u32,
    pub(crate) offset: u16,
    pub(crate) done: u8,
    pub(crate) counted: bool,
}

/// A way that control went by the tracer's hand: its kind, from where, to where.
pub(crate) type Transfer = (BranchKind, Option<u64>, Option<u64>);

/// How often something happened, and where that stands in the journal.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JournaledCount {
    pub(crate) count: u64,
    pub(crate) place: Option<ChunkPlace>,
}

/// Something that happened again.
#[derive(Debug, Clone, Copy)]
pub(crate) enum News {
    Transfer(Transfer),
    PartialExecution(PartialExecution),
}

/// What a thread did that no counter tells.
#[derive(Debug, Default)]
pub(crate) struct SlowPathCounts {
    pub(crate) partials: HashMap<PartialExecution, JournaledCount>,
    pub(crate) transfers: HashMap<Transfer, JournaledCount>,
    /// What happened since the journal was written.
    pub(crate) news: Vec<News>,
    /// Whether nothing is to be noted, as the thread is not counted for now.
    pub(crate) off: bool,
}

impl SlowPathCounts {
    /// Notes that a block was executed in part.
    pub(crate) fn note_partial(&mut self, execution: PartialExecution) {
        if self.off {
            return;
        }
        self.partials.entry(execution).or_default().count += 1;
        self.news.push(News::PartialExecution(execution));
    }

    /// Notes that control went somewhere.
    pub(crate) fn note_transfer(&mut self, kind: BranchKind, from: Option<u64>, to: Option<u64>) {
        if self.off {
            return;
        }
        let transfer = (kind, from, to);
        self.transfers.entry(transfer).or_default().count += 1;
        self.news.push(News::Transfer(transfer));
    }
}
