//! Executed blocks as DynamoRIO's drcov.

use std::collections::BTreeMap;

use treering_profile::{CodeCounts, ModuleId, ModuleKind, Profile};

use crate::number::plural;

/// How our files begin.
pub(crate) const DRCOV_START: &str = "DRCOV VERSION: 2\nDRCOV FLAVOR: treering\n";

/// A file that may hold bytes of any value, and what is not in it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Binary {
    /// The file.
    pub bytes: Vec<u8>,
    /// How many blocks it holds.
    pub blocks: usize,
    /// Omissions, as sentences.
    pub left_out: Vec<String>,
}

/// The most bytes that a block of drcov has.
const LONGEST: u64 = u16::MAX as u64;

/// The executed blocks by module, in version 2 of drcov's files, as Lighthouse and other disassemblers'
/// tools read them. How often is not part of the format.
///
/// A module lies where its own addresses say, and reaches from its first executed byte's page to its last.
pub fn drcov(profile: &Profile) -> Binary {
    let code = &profile.code;
    let mut blocks: BTreeMap<ModuleId, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut elsewhere = 0;
    for (start, length) in executed(code) {
        match code.spaces[start.space].module {
            Some(module) if profile.modules[module].kind == ModuleKind::Elf => {
                let known = blocks.entry(module).or_default().entry(start.address.0).or_default();
                *known = (*known).max(length);
            }
            _ => elsewhere += 1,
        }
    }
    let mut left_out =
        vec!["left out: how often each block was executed, threads, calls and branches".to_owned()];
    if elsewhere > 0 {
        left_out.push(format!("left out: {} of code that no file holds", plural(elsewhere, "block")));
    }
    let (mut table, mut rows) = (String::new(), Vec::new());
    let mut count = 0;
    for (id, (module, blocks)) in blocks.iter().enumerate() {
        let (base, end) = bounds(blocks);
        let path = profile.strings[profile.modules[*module].path].replace(['\n', '\r'], "?");
        table += &format!("{id:3}, {base:#018x}, {end:#018x}, 0x0000000000000000, {path}\n");
        for (&start, &length) in blocks {
            let mut part = start;
            while part < start + length {
                let size = (start + length - part).min(LONGEST);
                let Ok(offset) = u32::try_from(part - base) else { break };
                rows.extend_from_slice(&offset.to_le_bytes());
                rows.extend_from_slice(&(size as u16).to_le_bytes());
                rows.extend_from_slice(&(id as u16).to_le_bytes());
                (part, count) = (part + size, count + 1);
            }
        }
    }
    let mut bytes = DRCOV_START.as_bytes().to_vec();
    let head =
        format!("Module Table: version 2, count {}\nColumns: id, base, end, entry, path\n", blocks.len());
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(table.as_bytes());
    bytes.extend_from_slice(format!("BB Table: {count} bbs\n").as_bytes());
    bytes.extend_from_slice(&rows);
    Binary { bytes, blocks: count, left_out }
}

/// The executed blocks, with their lengths in bytes.
fn executed(code: &CodeCounts) -> impl Iterator<Item = (treering_profile::CodeAddress, u64)> + '_ {
    let mut executed = vec![false; code.blocks.len()];
    for (row, _) in code.executions.distinct().filter(|(row, _)| row.executions > 0) {
        executed[row.block.index()] = true;
    }
    let blocks = code.blocks.iter().zip(executed).filter(|(_, executed)| *executed);
    blocks.map(|(block, _)| (block.start, block.length()))
}

/// From the beginning of the program's image to behind the last executed byte, in whole pages. Images of programs and
/// libraries that may lie anywhere begin at 0; others where their first code lies.
fn bounds(blocks: &BTreeMap<u64, u64>) -> (u64, u64) {
    const PAGE: u64 = 4096;
    /// Where code that may lie anywhere is stated: below this.
    const ANYWHERE: u64 = 0x40_0000;
    let first = blocks.keys().next().copied().unwrap_or(0);
    let base = if first < ANYWHERE { 0 } else { first - first % PAGE };
    let last = blocks.iter().map(|(start, length)| start + length).max().unwrap_or(0);
    (base, last.next_multiple_of(PAGE))
}
