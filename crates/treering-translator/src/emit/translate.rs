//! Translation: traces are written from an address on, and published.

use std::io;

use crate::address_space::AddressSpace;
use crate::cache::batch::{Batch, Jump};
use crate::context::Contexts;
use crate::emit::trace_writer::TraceWriter;
use crate::sys::remote_syscall::StoppedThread;

/// The most blocks translated for one request: those that it leads to directly.
const BLOCKS_AT_ONCE: usize = 32;
/// The same if the history says which of them are executed.
const HINTED_AT_ONCE: usize = 1 << 16;
/// After this many blocks, a part of a large translation is published, so that its buffers stay small.
const PUBLISHED_AT_ONCE: usize = 1 << 13;

/// The note for a program that jumped to a non-canonical address. The processor refuses such a transfer
/// itself; translated code makes it, and faults at its target.
const NOT_CANONICAL: &str = "it jumped to a non-canonical address; the transfer is counted although the processor would have refused it";

/// Whether an address is canonical: bits 48 to 63 equal bit 47 (Intel SDM, volume 1, section 3.3.7.1).
const fn is_canonical(address: u64) -> bool {
    (address as i64) << 16 >> 16 == address as i64
}

impl AddressSpace {
    /// The translation of an address, which is made if there is none; nothing if there is no code.
    ///
    /// # Errors
    /// There is no room left, or the thread has ended.
    pub(crate) fn enter(&mut self, address: u64, thread: &mut StoppedThread<'_>) -> io::Result<Option<u64>> {
        if !self.program.regions.contains(address) {
            if !is_canonical(address) {
                self.warnings.push(NOT_CANONICAL);
            }
            return Ok(None);
        }
        self.program.regions.look_for_mark(address, thread);
        let asks = self.program.regions.asks(address);
        if asks || self.cache.watched_returns.contains(&address) {
            self.arrived = Some(address);
        }
        // The processor reads on, where nothing may be executed: the program goes there, and gets that fault.
        if (asks || self.cache.blocks.at(address).is_none())
            && self.program.regions.end_within(address, thread).is_some()
        {
            return Ok(None);
        }
        if asks {
            return self.enter_compared(address, thread);
        }
        if self.cache.blocks.at(address).is_none() {
            let most = if self.begin_warm(address) { HINTED_AT_ONCE } else { BLOCKS_AT_ONCE };
            let translated = self.translate(address, most, thread);
            self.warm_start.is_warm = false;
            translated?;
        }
        self.cache.blocks.at(address).map(|block| self.counted_entry(block)).transpose()
    }

    /// Begins to translate from an address. Returns whether the history says which of the code that it leads
    /// to is executed.
    fn begin_warm(&mut self, address: u64) -> bool {
        for number in self.warm_start.new_regions(self.program.regions.log().len()) {
            let module = self.warm_start.module_of(&self.program.regions.log()[number]);
            // Whether a jump is a call must not depend on the order of translation.
            let is_known = |context: &mut Contexts| context.starts_of(number, &self.program).is_some();
            let is_usable = module.is_some() && (!self.areas.has_trees() || is_known(&mut self.context));
            self.warm_start.follow(module.filter(|_| is_usable));
        }
        self.warm_start.is_warm = self.warm_start.is_hinted(&self.program.regions, address);
        self.warm_start.is_warm
    }

    /// Enters code that may have changed: compares it, and translates it anew if it differs.
    fn enter_compared(&mut self, address: u64, thread: &mut StoppedThread<'_>) -> io::Result<Option<u64>> {
        if let Some(block) = self.cache.blocks.at(address) {
            let old = self.cache.compared.get(&block).cloned().unwrap_or_default();
            let mut now = vec![0; old.len()];
            let got = self.program.regions.fetch(address, &mut now, thread);
            if got != 0 && got == old.len() && *now == *old {
                return self.counted_entry(block).map(Some);
            }
            self.cache.blocks.retire_one(block);
            self.end_propagation(&[block]);
            self.cache.generations += 1;
        }
        self.program.live.clear();
        self.translate(address, 1, thread)?;
        let Some(block) = self.cache.blocks.at(address) else { return Ok(None) };
        let mut bytes = vec![0; usize::from(self.cache.blocks.get(block).length)];
        let got = self.program.regions.fetch(address, &mut bytes, thread);
        bytes.truncate(got);
        self.cache.compared.insert(block, bytes.into());
        self.counted_entry(block).map(Some)
    }

    fn translate(&mut self, address: u64, most: usize, thread: &mut StoppedThread<'_>) -> io::Result<()> {
        let mut emitter = self.cache.emitter.take().unwrap_or_default();
        emitter.work.clear();
        emitter.work.push(address);
        let end = self.cache.blocks.len() + most;
        let (mut at, mut done) = (0, Ok(()));
        loop {
            // Without history, called and jumped-to code comes in the order of the requests. With it, code
            // that belongs together is put together.
            let next =
                if self.warm_start.is_warm { emitter.work.pop() } else { emitter.work.get(at).copied() };
            let (Some(next), Ok(())) = (next, &done) else { break };
            at += 1;
            if emitter.batch.written.len() >= PUBLISHED_AT_ONCE {
                self.publish(&mut emitter.batch);
            }
            if self.cache.blocks.at(next).is_some() || self.warm_start.is_cold(&self.program.regions, next) {
                continue;
            }
            if self.cache.blocks.len() >= end {
                break;
            }
            self.program.regions.look_for_mark(next, thread);
            if next == address || !self.program.regions.asks(next) {
                let before = emitter.batch.lengths();
                let writer = TraceWriter::new(next, end, self, &mut emitter, thread);
                done = writer.and_then(|writer| writer.write(next));
                if done.is_err() {
                    emitter.batch.truncate(before);
                }
            }
        }
        self.publish(&mut emitter.batch);
        done = done.and_then(|()| self.link_presumed(&mut emitter.presumed));
        self.cache.emitter = Some(emitter);
        done
    }

    /// Publishes the batch, now that all its code is in memory: other threads may be running.
    fn publish(&mut self, batch: &mut Batch) {
        for Jump { unit, site, target, entry_kind } in batch.jumps.drain(..) {
            let place = match self.entry_for(target, entry_kind, unit) {
                Some(entry) => entry,
                None => self.cache.add_unlinked(unit, target, site, entry_kind),
            };
            self.cache.units[unit].patch(site, place);
        }
        for written in batch.written.drain(..) {
            let (address, entry) = {
                let block = self.cache.blocks.get(written.block);
                (block.address, block.entry)
            };
            if self.program.regions.asks(address) {
                continue;
            }
            match written.return_check {
                Some((return_check, jump)) => self.cache.open_return(address, return_check, jump),
                None if written.returned_to => self.cache.ensure_return(address, entry),
                None => {}
            }
            self.link_incoming(written.block);
        }
        batch.return_entries.truncate(0);
    }

    /// Links indirect transfers to their presumed targets, if those are translated.
    fn link_presumed(&mut self, presumed: &mut Vec<(u32, u64)>) -> io::Result<()> {
        presumed.drain(..).try_for_each(|(site, target)| match self.entry_of(target) {
            Some(entry) => self.add_target(site, target, Some(entry)).map(drop),
            None => Ok(()),
        })
    }
}
