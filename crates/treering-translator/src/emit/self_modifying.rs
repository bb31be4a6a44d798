//! Self-modifying code: blocks that compare the program's bytes with those that they were translated from.
//!
//! On a page that is written all the time, page protection would cost a fault for each write, and a
//! comparison by the tracer a stop for each execution. So each block of such a page compares its own bytes
//! before its first instruction, and asks the tracer only if they have changed.

use treering_x86::{Assembler, Register};

use crate::emit::trace_writer::TraceWriter;
use crate::sys::layout::SAVED_RCX;

/// The most bytes of a block that compares itself. Its comparison is a single step
/// ([`crate::cache::block::Steps`]), as rcx is not the program's until it ends.
pub(crate) const LONGEST_COMPARED: usize = 40;

impl TraceWriter<'_, '_> {
    /// Writes the comparison, if the code may have changed when it runs.
    pub(crate) fn write_comparison(&mut self, block: u32, bytes: &[u8]) {
        let address = self.block(block).address;
        if !self.space.program.regions.is_any_restless(address, bytes.len()) {
            return;
        }
        let changed = self.space.cache.changed_stub(block, self.emitter.unit);
        self.emitter.write_step(0, |code| compare(address, bytes, changed, code));
    }

    /// Writes, in place of a block, a read of the block's address and then a request for the code.
    pub(crate) fn write_touch(&mut self, block: u32) {
        let changed = self.space.cache.changed_stub(block, self.emitter.unit);
        let address = self.block(block).address;
        self.emitter.write_step(0, |code| {
            code.store_gs(SAVED_RCX, Register::RCX);
            code.load_into_rcx(address, 1);
            code.jump(changed);
        });
    }
}

/// Writes code that jumps to `changed`, with rcx saved and overwritten, unless the bytes at the address are
/// the given ones. No flag changes.
fn compare(address: u64, bytes: &[u8], changed: u64, code: &mut Assembler) {
    code.store_gs(SAVED_RCX, Register::RCX);
    for (at, part) in parts(bytes) {
        let mut key = [0; 8];
        key[..part.len()].copy_from_slice(part);
        code.load_into_rcx(address + at as u64, part.len());
        code.subtract_key(u64::from_le_bytes(key));
        code.jump_unless_key(changed);
    }
    code.load_gs(Register::RCX, SAVED_RCX);
}

/// Splits bytes into as few loads as possible, which may overlap but stay within the bytes.
fn parts(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let size = 1 << bytes.len().min(8).ilog2();
    let last = bytes.len() - size;
    (0..bytes.len()).step_by(size).map(move |at| at.min(last)).map(move |at| (at, &bytes[at..at + size]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_comparison_is_short_enough_for_a_step() {
        for byte in 0..=u8::MAX {
            for other in [0, 0x7f, 0x80, 0xff] {
                for start in 0..64 {
                    let bytes: Vec<u8> =
                        (0..LONGEST_COMPARED).map(|at| if at % 4 == 3 { other } else { byte }).collect();
                    let mut code = Assembler::new(0x1000 + start);
                    compare(0x5000, &bytes, 0x9000, &mut code);
                    assert!(code.bytes().len() <= 255, "{byte:x} {other:x} {start}");
                }
            }
        }
    }

    #[test]
    fn parts_cover_all_bytes_and_no_others() {
        let bytes: Vec<u8> = (0..LONGEST_COMPARED as u8).collect();
        for length in 1..=bytes.len() {
            let parts: Vec<_> = parts(&bytes[..length]).collect();
            let mut covered: Vec<u8> = parts.iter().flat_map(|(_, part)| part.to_vec()).collect();
            covered.sort_unstable();
            covered.dedup();
            assert_eq!(covered, bytes[..length]);
            assert!(parts.iter().all(|(at, part)| usize::from(part[0]) == *at));
            assert!(parts.len() <= LONGEST_COMPARED / 8, "{length}");
        }
    }
}
