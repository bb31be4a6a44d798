//! Replays the recorded words of threads in the model.

use treering_x86::memory::Segment;

use crate::areas::thread_areas::ThreadAreas;
use crate::cache::block::Position;
use crate::sys::layout::{MODEL_BUFFER, MODEL_POSITION, MODEL_WORDS, OWN_GS};

use super::cache::{Caches, Found};
use super::plan::{AccessKind, Event};
use super::tally::Tally;
use super::{Ending, Model, Plan, ThreadModel};

/// The bases of a thread's segments.
#[derive(Debug, Clone, Copy)]
struct Bases {
    fs: u64,
    gs: u64,
}

impl Model {
    /// Replays all words that the thread has recorded.
    pub(crate) fn replay(&mut self, area: usize, areas: &ThreadAreas) {
        self.replay_until(area, areas, None);
    }

    /// Replays; `done` is the number of executed instructions of the last block, if not all were.
    fn replay_until(&mut self, area: usize, areas: &ThreadAreas, done: Option<u8>) {
        let words = (areas.slot(area, MODEL_POSITION) as usize).min(MODEL_WORDS);
        self.bytes.resize(words * 8, 0);
        areas.read_slots(area, MODEL_BUFFER, &mut self.bytes);
        areas.set_slot(area, MODEL_POSITION, 0);
        let gs = areas.slot(area, OWN_GS);
        let told = self.bytes.chunks_exact(8);
        self.words.clear();
        self.words.extend(told.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())));
        self.run(area, gs, done);
    }

    /// Replays a thread that has stopped before a block's instruction `at`; of that block, only the executed
    /// instructions. `in_block` is the thread's offset in the block's translation.
    pub(crate) fn replay_up_to(
        &mut self,
        position: Position,
        in_block: u64,
        at: u64,
        area: usize,
        areas: &ThreadAreas,
    ) {
        let plan = self.blocks.get(position.block as usize).copied().unwrap_or_default();
        let is_told = in_block >= u64::from(plan.told_from);
        let is_cut = is_told && position.done < plan.instructions;
        self.replay_until(area, areas, is_cut.then_some(position.done));
        if !is_cut {
            self.close(area, at);
        }
    }

    /// The base of FS has changed.
    pub(crate) fn set_fs_base(&mut self, area: usize, base: u64, areas: &ThreadAreas) {
        self.replay(area, areas);
        self.thread(area).fs_base = base;
    }
}

impl Model {
    /// Replays [`words`](Self::words); of the last block only `done` instructions.
    fn run(&mut self, area: usize, gs: u64, done: Option<u8>) {
        let mut thread = self.threads.remove(&area).unwrap_or_default();
        let bases = Bases { fs: thread.fs_base, gs };
        let words = std::mem::take(&mut self.words);
        let mut at = 0;
        while at < words.len() {
            // The upper half is left over from an earlier word.
            let block = words[at] as u32;
            let plan = self.blocks.get(block as usize).copied().unwrap_or_default();
            let Some(told) = words.get(at + 1..at + 1 + usize::from(plan.words)) else {
                thread.tally.broken = true;
                break;
            };
            at += 1 + told.len();
            let cut = done.filter(|_| at == words.len());
            self.replay_block(block, &plan, told, cut, bases, &mut thread);
        }
        self.words = words;
        self.threads.insert(area, thread);
    }

    #[inline]
    fn replay_block(
        &mut self,
        block: u32,
        plan: &Plan,
        told: &[u64],
        cut: Option<u8>,
        bases: Bases,
        thread: &mut ThreadModel,
    ) {
        if let Some(open) = thread.open.take() {
            self.predict(open, plan.address, &mut thread.tally);
        }
        thread.tally.block(block).executions += 1;
        if let Some(caches) = &mut self.caches {
            let from = plan.first as usize;
            let mut events = &self.events[from..from + usize::from(plan.events)];
            if let Some(done) = cut {
                events = &events[..events.partition_point(|event| event.instruction < done)];
            }
            run_events(caches, events, from, told, bases, &mut thread.tally);
        }
        match cut {
            Some(done) => *thread.tally.cut.entry((block, done)).or_insert(0) += 1,
            None if plan.end != Ending::None => thread.open = Some(block),
            None => {}
        }
    }

    /// The last instruction of a block has led to an address.
    #[inline]
    fn predict(&mut self, block: u32, target: u64, tally: &mut Tally) {
        let Plan { last, next, end, .. } = self.blocks[block as usize];
        let Some(predictor) = &mut self.predictor else { return };
        let predicted = match end {
            Ending::Branch => predictor.branch(last, target != next),
            Ending::Indirect => predictor.indirect(last, target),
            Ending::None => true,
        };
        if !predicted {
            tally.block(block).mispredicted += 1;
        }
    }

    /// The thread's last block has led to an address that is not the next recorded block.
    fn close(&mut self, area: usize, target: u64) {
        let mut thread = self.threads.remove(&area).unwrap_or_default();
        if let Some(open) = thread.open.take() {
            self.predict(open, target, &mut thread.tally);
        }
        self.threads.insert(area, thread);
    }
}

fn run_events(
    caches: &mut Caches,
    events: &[Event],
    first: usize,
    told: &[u64],
    bases: Bases,
    tally: &mut Tally,
) {
    for (at, event) in events.iter().enumerate() {
        let found = match event.kind {
            AccessKind::Fetch => caches.fetch(event.value, event.size),
            AccessKind::Read | AccessKind::Write => caches.data(address(event, told, bases), event.size),
            AccessKind::ReadUpTo(after) | AccessKind::WriteUpTo(after) => {
                let from = event.word.map_or(0, |word| told[usize::from(word)]);
                let moved = told[usize::from(after)].wrapping_sub(from).cast_signed();
                repeat(caches, event, address(event, told, bases), moved, tally.cells.at(first + at));
                continue;
            }
        };
        if found != Found::First {
            miss(tally.cells.at(first + at), found);
        }
    }
}

#[inline]
fn address(event: &Event, told: &[u64], bases: Bases) -> u64 {
    let base = event.word.map_or(0, |word| told[usize::from(word)]);
    let segment = match event.segment {
        None => 0,
        Some(Segment::Fs) => bases.fs,
        Some(Segment::Gs) => bases.gs,
    };
    base.wrapping_add(event.value).wrapping_add(segment)
}

/// One access for each element between the register's two values, in its direction.
fn repeat(caches: &mut Caches, event: &Event, address: u64, moved: i64, cell: &mut [u64; 3]) {
    let size = u64::from(event.size.max(1));
    let rounds = moved.unsigned_abs() / size;
    for round in 0..rounds {
        let offset = round.wrapping_mul(size);
        let offset = if moved < 0 { offset.wrapping_neg() } else { offset };
        miss(cell, caches.data(address.wrapping_add(offset), event.size));
    }
    cell[2] += rounds;
}

#[inline]
fn miss(cell: &mut [u64; 3], found: Found) {
    cell[0] += u64::from(found != Found::First);
    cell[1] += u64::from(found == Found::Memory);
}
