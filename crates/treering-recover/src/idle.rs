//! Code that was not executed.

use std::ops::Range;

use treering_profile::IdleBlock;
use treering_x86::disassembly;
use treering_x86::{Decoded, Flow, decode};

/// Divides code that was not executed into blocks, which end behind branches, jumps and returns. `bytes` are at
/// `address`. Padding between code is no block.
///
/// Blocks begin where others end, but not at the targets of jumps, so there may be fewer than a compiler has. Bytes
/// that are no instruction end the last block.
pub fn idle_blocks(bytes: &[u8], address: u64) -> Vec<IdleBlock> {
    let mut blocks = Vec::new();
    let mut at = 0;
    let mut instructions = Vec::new();
    while at < bytes.len() {
        instructions.clear();
        decode(&bytes[at..], address + at as u64, usize::MAX, &mut instructions);
        let Some(last) = instructions.last() else { break };
        let end = last.next();
        let first = instructions.iter().find(|one| !is_filling(one, bytes, address));
        if let Some(first) = first {
            let branch = is_conditional_flow(last.flow()).then(|| last.address());
            blocks.push(IdleBlock { code: first.address()..end, branch });
        }
        at = (end - address) as usize;
    }
    blocks
}

/// Whether the instruction with these bytes is a conditional branch.
pub fn is_conditional(bytes: &[u8], address: u64) -> bool {
    let mut instructions = Vec::new();
    decode(bytes, address, 1, &mut instructions);
    instructions.first().is_some_and(|one| is_conditional_flow(one.flow()))
}

fn is_conditional_flow(flow: Flow) -> bool {
    matches!(flow, Flow::Branch { .. } | Flow::CountedBranch(_))
}

/// Whether an instruction does nothing, or stops in a debugger, as compilers and linkers fill up space.
fn is_filling(one: &Decoded, bytes: &[u8], address: u64) -> bool {
    let start = (one.address() - address) as usize;
    let own: Range<usize> = start..start + one.len();
    let text = disassembly::text(&bytes[own], one.address());
    text.is_some_and(|text| {
        text.split(' ').any(|word| word == "nop") || text == "int3" || text == "xchg ax, ax"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_behind_branches_and_space_is_no_block() {
        // test edi, edi; je +2; xor eax, eax; ret; nop word [rax+rax]; int3
        let bytes = [0x85, 0xff, 0x74, 0x02, 0x31, 0xc0, 0xc3, 0x66, 0x0f, 0x1f, 0x44, 0, 0, 0xcc];
        let blocks = idle_blocks(&bytes, 0x100);
        let expected = [
            IdleBlock { code: 0x100..0x104, branch: Some(0x102) },
            IdleBlock { code: 0x104..0x107, branch: None },
        ];
        assert_eq!(blocks, expected);
        assert!(is_conditional(&bytes[2..4], 0x102) && !is_conditional(&bytes[6..7], 0x106));
        assert_eq!(idle_blocks(&[0x06], 0), []);
    }
}
