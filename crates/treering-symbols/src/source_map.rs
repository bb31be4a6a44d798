//! Functions and lines of instructions, by stretches of code.

use std::cell::Cell;

use treering_profile::{CodeAddress, FunctionId, LineId};

/// Where an instruction is in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// The function whose code it is, into which others may be inlined there.
    pub(crate) function: Option<FunctionId>,
    /// The line of the innermost of them.
    pub(crate) line: Option<LineId>,
}

/// The frames of every instruction of the basic blocks.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Sorted by place; a row holds up to the next. `None` where there are no instructions.
    rows: Vec<(CodeAddress, Option<Source>)>,
    /// The row that was asked for last: the next question is usually for one near it.
    latest: Cell<usize>,
}

impl Sources {
    /// Takes instructions, or whole blocks of them, and their lengths in the order of their places, one
    /// space after the other; spaces may come in any order.
    pub(crate) fn new(instructions: impl IntoIterator<Item = (CodeAddress, u64, Source)>) -> Self {
        let mut rows: Vec<(CodeAddress, Option<Source>)> = Vec::new();
        let mut end: Option<CodeAddress> = None;
        for (at, length, source) in instructions {
            let gap = end.filter(|end| end.space != at.space || *end < at);
            rows.extend(gap.map(|end| (end, None)));
            if rows.last().is_none_or(|(_, known)| *known != Some(source)) {
                rows.push((at, Some(source)));
            }
            let behind = at.offset(length);
            end = Some(end.filter(|end| end.space == at.space).map_or(behind, |end| end.max(behind)));
        }
        rows.extend(end.map(|end| (end, None)));
        rows.sort_by_key(|(at, _)| *at);
        Self { rows, latest: Cell::new(0) }
    }

    /// The frames of an instruction; nothing for those in no basic block.
    pub(crate) fn at(&self, at: CodeAddress) -> Source {
        self.row(at).and_then(|row| self.rows[row].1).unwrap_or_default()
    }

    /// The frames of all instructions from one address up to another, if it is the same.
    pub(crate) fn throughout(&self, start: CodeAddress, end: CodeAddress) -> Option<Source> {
        let row = self.row(start)?;
        self.rows[row].1.filter(|_| self.rows.get(row + 1).is_none_or(|(next, _)| *next >= end))
    }

    /// The first instructions of stretches of code with the same line, and their lines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (CodeAddress, Option<LineId>)> + '_ {
        self.rows.iter().filter_map(|(at, source)| Some((*at, source.as_ref()?.line)))
    }

    /// Whether any line is known.
    pub(crate) fn has_lines(&self) -> bool {
        self.rows.iter().any(|(_, source)| source.is_some_and(|source| source.line.is_some()))
    }

    /// The row that says something of an address of its space.
    fn row(&self, at: CodeAddress) -> Option<usize> {
        let row = self.begun(at).checked_sub(1)?;
        self.latest.set(row);
        (self.rows[row].0.space == at.space).then_some(row)
    }

    /// How many rows begin at an address or before it, looked for further and further from the latest.
    fn begun(&self, at: CodeAddress) -> usize {
        let begun = |(start, _): &(CodeAddress, Option<Source>)| *start <= at;
        let (before, behind) = self.rows.split_at(self.latest.get());
        let mut step = 1;
        if behind.first().is_some_and(begun) {
            while behind.get(step).is_some_and(begun) {
                step *= 2;
            }
            let near = &behind[step / 2..step.min(behind.len())];
            return before.len() + step / 2 + near.partition_point(begun);
        }
        while step <= before.len() && !begun(&before[before.len() - step]) {
            step *= 2;
        }
        let first = before.len().saturating_sub(step);
        first + before[first..before.len() - step / 2].partition_point(begun)
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{CodeSpaceId, StatedAddress};

    use super::*;

    fn at(space: u32, address: u64) -> CodeAddress {
        CodeAddress { space: CodeSpaceId::new(space), address: StatedAddress(address) }
    }

    fn source(function: u32) -> Source {
        Source { function: Some(FunctionId::new(function)), line: None }
    }

    #[test]
    fn every_instruction_has_its_own_entry_and_others_none() {
        // Two instructions share bytes, then there is a gap, and a second space lies before the first.
        let given = [
            (at(1, 0x10), 5, source(1)),
            (at(1, 0x11), 4, source(1)),
            (at(1, 0x15), 1, source(2)),
            (at(1, 0x18), 2, source(2)),
            (at(0, 0x40), 3, source(3)),
        ];
        let sources = Sources::new(given);
        for (at, _, source) in given.into_iter().chain(given.into_iter().rev()) {
            assert_eq!(sources.at(at), source);
        }
        for nowhere in [at(0, 0), at(0, 0x43), at(1, 0), at(1, 0x16), at(1, 0x1a), at(2, 0)] {
            assert_eq!(sources.at(nowhere), Source::default());
        }
        assert_eq!(sources.throughout(at(1, 0x10), at(1, 0x15)), Some(source(1)));
        assert_eq!(sources.throughout(at(1, 0x10), at(1, 0x16)), None);
    }

    #[test]
    fn answers_do_not_depend_on_earlier_questions() {
        let sources = Sources::new((0..40).map(|n| (at(0, u64::from(n) * 8), 8, source(n))));
        for before in 0..41 {
            for n in 0..40 {
                let _ = sources.at(at(0, before * 8));
                assert_eq!(sources.at(at(0, u64::from(n) * 8 + 7)), source(n), "after {before}");
            }
        }
    }
}
