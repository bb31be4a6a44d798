//! Samples of processor time: words of the machine's size.
//!
//! A header of 0, the number of further words in it (3 or more), the version 0, the period in microseconds and
//! padding; then for each stack its count, its depth and its addresses, the innermost first; at the end the stack
//! of count 0, depth 1 and address 0, and what was mapped, as text.

/// The size and order of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    wide: bool,
    big_endian: bool,
}

impl Layout {
    /// The layout of a file which begins like this; nothing if it is no such file.
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        let layouts = [(true, false), (false, false), (true, true), (false, true)];
        let layouts = layouts.map(|(wide, big_endian)| Self { wide, big_endian });
        layouts.into_iter().find(|layout| {
            let word = |at: usize| layout.word(start.get(at * layout.size()..)?);
            const LONGEST_HEADER: u64 = 64;
            const LONGEST_PERIOD: u64 = 60_000_000;
            word(0) == Some(0)
                && word(1).is_some_and(|words| (3..=LONGEST_HEADER).contains(&words))
                && word(2) == Some(0)
                && word(3).is_some_and(|period| (1..=LONGEST_PERIOD).contains(&period))
        })
    }

    fn size(self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    fn word(self, bytes: &[u8]) -> Option<u64> {
        match (self.wide, self.big_endian) {
            (true, false) => Some(u64::from_le_bytes(*bytes.first_chunk()?)),
            (true, true) => Some(u64::from_be_bytes(*bytes.first_chunk()?)),
            (false, false) => Some(u32::from_le_bytes(*bytes.first_chunk()?).into()),
            (false, true) => Some(u32::from_be_bytes(*bytes.first_chunk()?).into()),
        }
    }
}

/// The contents of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Samples<'a> {
    pub(super) period_us: u64,
    /// Counts and addresses; the innermost is where the processor was, the others are where calls return to.
    pub(super) stacks: Vec<(u64, Vec<u64>)>,
    /// The text behind the stacks.
    pub(super) maps: &'a [u8],
    /// Whether the mark of their end is missing.
    pub(super) unfinished: bool,
}

/// Reads a file; nothing if it does not begin like one.
pub(super) fn parse(bytes: &[u8]) -> Option<Samples<'_>> {
    let layout = Layout::of(bytes)?;
    let size = layout.size();
    let word = |at: usize| layout.word(bytes.get(at.checked_mul(size)?..)?);
    let mut at = usize::try_from(word(1)?).ok()? + 2;
    let mut samples = Samples { period_us: word(3)?, unfinished: true, ..Samples::default() };
    while let Some((count, depth)) = word(at).zip(word(at + 1)) {
        let stack: Option<Vec<u64>> = usize::try_from(depth).ok().and_then(|depth| {
            let end = (at + 2).checked_add(depth).filter(|end| *end <= bytes.len() / size)?;
            (at + 2..end).map(word).collect()
        });
        let Some(stack) = stack else { break };
        at += 2 + stack.len();
        if count == 0 && stack == [0] {
            samples.unfinished = false;
            samples.maps = bytes.get(at * size..).unwrap_or_default();
            break;
        }
        samples.stacks.push((count, stack));
    }
    samples.clean();
    Some(samples)
}

impl Samples<'_> {
    /// Takes out what stands twice: the innermost address comes from the signal's context, and with some
    /// unwinders again from the stack.
    fn clean(&mut self) {
        for (_, stack) in &mut self.stacks {
            if stack.len() > 1 && stack[0] == stack[1] {
                stack.remove(1);
            }
        }
    }
}
