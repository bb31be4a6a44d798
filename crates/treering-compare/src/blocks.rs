//! The basic blocks of a function in both profiles.

use similar::{Algorithm, DiffOp, capture_diff_slices};
use treering_analysis::{BlockRow, BlockTable};
use treering_profile::{FunctionId, LineId, Profile, StatedAddress};

use crate::difference::Difference;
use crate::pairing::{GroupIndex, Pairing, with_alike};
use crate::sides::Sides;

/// The executed basic blocks of a function in both profiles.
///
/// Blocks are paired in the order of their addresses by the lengths of their instructions, all but the last: that one may
/// be a jump, whose length depends on how far it goes. So code that only moved pairs as a whole. Blocks that were changed
/// pair where as many stand in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockChanges {
    /// The function.
    pub group: GroupIndex,
    /// The blocks that were executed in one of both, in the order of the head; those of the base alone where they were.
    pub blocks: Vec<BlockChange>,
}

/// A basic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockChange {
    /// The block in each profile; nothing where none is its pair.
    pub of: Sides<Option<ExecutedBlock>>,
}

impl BlockChange {
    /// How often it was executed.
    pub fn executions(&self) -> Sides<u64> {
        self.of.as_ref().map(|block| block.as_ref().map_or(0, |block| block.executions))
    }

    /// Whether both profiles have it, with as many instructions.
    pub fn is_of_one_size(&self) -> bool {
        let size = |block: &Option<ExecutedBlock>| block.as_ref().map(|block| block.instructions);
        size(&self.of.base) == size(&self.of.head)
    }

    /// How many instructions its executions are.
    pub fn instructions_executed(&self) -> Sides<u64> {
        self.of.as_ref().map(|block| block.as_ref().map_or(0, |block| block.instructions_executed))
    }
}

/// A basic block of one profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedBlock {
    /// Its first byte.
    pub start: StatedAddress,
    /// How many instructions it has.
    pub instructions: usize,
    /// How often it was executed.
    pub executions: u64,
    /// How many instructions its executions are.
    pub instructions_executed: u64,
    /// The file, without folders, and the line of its first instruction, where known.
    pub line: Option<(String, u32)>,
    /// The lengths of its instructions, but for the last.
    lengths: Vec<u8>,
}

/// The blocks of a function, which is a group of the difference of these two profiles.
///
/// # Errors
/// When one of both has no basic blocks: whether each has.
pub fn blocks(
    base: &Profile,
    head: &Profile,
    difference: &Difference,
    group: GroupIndex,
) -> Result<BlockChanges, Sides<bool>> {
    check(Sides { base, head })?;
    let functions = difference.pairing.groups[group].functions.as_ref();
    let of = Sides { base: executed(base, functions.base), head: executed(head, functions.head) };
    Ok(BlockChanges { group, blocks: paired(of) })
}

/// The blocks of every function of two profiles that has any. `pairing` is that of these two.
///
/// # Errors
/// As those of [`blocks`].
pub fn all_blocks(
    base: &Profile,
    head: &Profile,
    pairing: &Pairing,
) -> Result<Vec<BlockChanges>, Sides<bool>> {
    check(Sides { base, head })?;
    let all = pairing.groups.len();
    let mut of_base = executed_by_group(base, &pairing.of.base, all);
    let mut of_head = executed_by_group(head, &pairing.of.head, all);
    let changes = |group: GroupIndex| {
        let of =
            Sides { base: std::mem::take(&mut of_base[group]), head: std::mem::take(&mut of_head[group]) };
        let blocks = paired(of);
        (!blocks.is_empty()).then_some(BlockChanges { group, blocks })
    };
    Ok((0..all).filter_map(changes).collect())
}

/// Whether each profile has basic blocks, where one has none.
fn check(profiles: Sides<&Profile>) -> Result<(), Sides<bool>> {
    let has_blocks = profiles.map(|profile| !profile.code.blocks.is_empty());
    if has_blocks.base && has_blocks.head { Ok(()) } else { Err(has_blocks) }
}

/// The blocks of the entries of one profile that are one function, by address.
fn executed(profile: &Profile, functions: &[FunctionId]) -> Vec<ExecutedBlock> {
    let mut tables: Vec<BlockTable> =
        functions.iter().filter_map(|&id| BlockTable::of(profile, id)).collect();
    // Entries of one source have one table.
    tables.sort_by_key(|table| table.function);
    tables.dedup_by_key(|table| table.function);
    by_address(profile, tables.into_iter().flat_map(|table| table.blocks).collect())
}

/// By group, the blocks of one profile by address.
fn executed_by_group(
    profile: &Profile,
    groups: &[Option<GroupIndex>],
    all: usize,
) -> Vec<Vec<ExecutedBlock>> {
    let mut rows: Vec<Vec<BlockRow>> = vec![Vec::new(); all];
    let groups = with_alike(profile, groups);
    for table in BlockTable::all(profile) {
        if let Some(group) = groups[table.function.index()] {
            rows[group].extend(table.blocks);
        }
    }
    rows.into_iter().map(|rows| by_address(profile, rows)).collect()
}

fn by_address(profile: &Profile, mut rows: Vec<BlockRow>) -> Vec<ExecutedBlock> {
    rows.sort_by_key(|row| row.block);
    rows.iter().map(|row| executed_block(profile, row)).collect()
}

fn executed_block(profile: &Profile, row: &BlockRow) -> ExecutedBlock {
    let lengths = &profile.code.blocks[row.block.index()].lengths;
    let line = |line: LineId| {
        let line = &profile.lines[line];
        let path = &profile.strings[line.file];
        (path.rsplit('/').next().unwrap_or(path).to_owned(), line.line)
    };
    ExecutedBlock {
        start: profile.code.blocks[row.block.index()].start.address,
        instructions: row.instructions.len(),
        executions: row.executions,
        instructions_executed: row.instructions_executed(),
        line: row.instructions.first().and_then(|first| first.line).map(line),
        lengths: lengths.iter().copied().take(row.instructions.len().saturating_sub(1)).collect(),
    }
}

fn paired(of: Sides<Vec<ExecutedBlock>>) -> Vec<BlockChange> {
    let lengths = |blocks: &[ExecutedBlock]| -> Vec<Vec<u8>> {
        blocks.iter().map(|block| block.lengths.clone()).collect()
    };
    let shapes = Sides { base: lengths(&of.base), head: lengths(&of.head) };
    let (mut base, mut head) = (of.base.into_iter(), of.head.into_iter());
    let mut blocks = Vec::new();
    for operation in capture_diff_slices(Algorithm::Patience, &shapes.base, &shapes.head) {
        let (in_base, in_head) = (operation.old_range().len(), operation.new_range().len());
        let is_pair = match operation {
            DiffOp::Equal { .. } => true,
            _ => in_base == in_head,
        };
        if is_pair {
            let pairs = base.by_ref().zip(head.by_ref()).take(in_base);
            blocks.extend(pairs.map(|(base, head)| Sides { base: Some(base), head: Some(head) }));
        } else {
            blocks.extend(base.by_ref().take(in_base).map(|block| Sides { base: Some(block), head: None }));
            blocks.extend(head.by_ref().take(in_head).map(|block| Sides { base: None, head: Some(block) }));
        }
    }
    blocks.into_iter().map(|of| BlockChange { of }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of these lengths, each executed as often.
    fn blocks(of: &[(&[u8], u64)]) -> Vec<ExecutedBlock> {
        let block = |(at, (lengths, executions)): (usize, &(&[u8], u64))| ExecutedBlock {
            start: StatedAddress(at as u64 * 0x10),
            instructions: lengths.len(),
            executions: *executions,
            instructions_executed: executions * lengths.len() as u64,
            line: None,
            lengths: lengths[..lengths.len() - 1].to_vec(),
        };
        of.iter().enumerate().map(block).collect()
    }

    fn executions(base: &[(&[u8], u64)], head: &[(&[u8], u64)]) -> Vec<(u64, u64)> {
        let changes = paired(Sides { base: blocks(base), head: blocks(head) });
        changes.iter().map(BlockChange::executions).map(|both| (both.base, both.head)).collect()
    }

    #[test]
    fn blocks_pair_by_the_lengths_of_their_instructions_wherever_they_moved() {
        // A block more at the head of the function makes the jump of the next longer.
        let base: [(&[u8], u64); 3] = [(&[3, 4, 2], 1), (&[7, 7, 2], 10), (&[1, 1], 1)];
        let head: [(&[u8], u64); 4] = [(&[5, 5, 5], 1), (&[3, 4, 6], 2), (&[7, 7, 2], 20), (&[1, 1], 2)];
        assert_eq!(executions(&base, &head), [(0, 1), (1, 2), (10, 20), (1, 2)]);
        assert_eq!(executions(&head, &base), [(1, 0), (2, 1), (20, 10), (2, 1)]);
    }

    #[test]
    fn a_changed_block_pairs_where_as_many_stand_in_its_place() {
        let base: [(&[u8], u64); 3] = [(&[3, 4, 2], 1), (&[7, 7, 2], 10), (&[1, 1], 1)];
        let head: [(&[u8], u64); 3] = [(&[3, 4, 2], 1), (&[7, 6, 3, 2], 10), (&[1, 1], 1)];
        let changes = paired(Sides { base: blocks(&base), head: blocks(&head) });
        let middle = changes[1].instructions_executed();
        assert_eq!((changes.len(), middle.base, middle.head), (3, 30, 40));
        let head: [(&[u8], u64); 4] = [(&[3, 4, 2], 1), (&[7, 6, 2], 10), (&[2, 2], 9), (&[1, 1], 1)];
        assert_eq!(executions(&base, &head), [(1, 1), (10, 0), (0, 10), (0, 9), (1, 1)]);
    }
}
