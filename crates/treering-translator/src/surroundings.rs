//! The surroundings of a program, as far as they are held: the processor that it sees, the time, random numbers.
//!
//! A program's counts depend on these. Where they are held, two runs see the same, also on different machines.

pub(crate) mod clock;
pub(crate) mod random;
pub(crate) mod random_file;

use std::collections::{BTreeMap, BTreeSet};

use treering_x86::Decoded;
use treering_x86::processor::{Inquiry, Level};

use clock::HeldClock;
use random::HeldRandom;
use random_file::RandomFile;

/// The surroundings of one program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// The level of the processor that the program sees; nothing if it sees the real one.
    pub(crate) level: Option<Level>,
    /// Time and random numbers, if they are held.
    pub(crate) held: Option<Held>,
    /// The features that translated instructions need beyond the level, by the addresses of the block and the
    /// instruction.
    beyond: BTreeMap<(u64, u64), String>,
    /// The real surroundings that the program saw.
    not_held: BTreeSet<String>,
}

/// Held time and random numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    pub(crate) clock: HeldClock,
    pub(crate) random: HeldRandom,
    /// The file of random numbers; nothing if it cannot be made, or the program may not open it.
    pub(crate) random_file: Option<RandomFile>,
    /// Whether the program asked for random numbers of which it may have made keys.
    pub(crate) is_drawn: bool,
}

/// The facts about the surroundings of a program, for the reader of its counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldFacts {
    /// Translated instructions beyond the level of the processor that it saw.
    pub beyond: Vec<BeyondLevel>,
    /// The parts of its real surroundings that it saw, as sentences.
    pub not_held: Vec<String>,
    /// Whether it asked for random numbers of which it may have made keys: these are no secret.
    pub drew_random: bool,
}

/// An instruction beyond the level of the processor that the program sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeyondLevel {
    /// The address of its block.
    pub block: u64,
    /// Its own address.
    pub address: u64,
    /// The feature that it needs.
    pub feature: String,
}

impl Surroundings {
    pub(crate) fn new(level: Option<Level>, is_held: bool) -> Self {
        let held = is_held.then(|| Held { random_file: RandomFile::new().ok(), ..Held::default() });
        Self { level, held, ..Self::default() }
    }

    /// The surroundings of another program: of a child, or of what the process becomes. It gets other random numbers, and
    /// its time goes on.
    pub(crate) fn next_program(&mut self) -> Self {
        let held = self.held.as_mut().map(|held| Held {
            clock: held.clock,
            random: held.random.next_program(),
            random_file: held.random_file.clone(),
            is_drawn: false,
        });
        Self { level: self.level, held, ..Self::default() }
    }

    /// Whether anything is held.
    pub(crate) fn is_any_held(&self) -> bool {
        self.level.is_some() || self.held.is_some()
    }

    /// The inquiry that an instruction is, if the tracer answers it.
    pub(crate) fn answered(&self, one: &Decoded) -> Option<Inquiry> {
        if !self.is_any_held() {
            return None;
        }
        one.inquiry().filter(|inquiry| match inquiry {
            Inquiry::Cpuid | Inquiry::Xgetbv | Inquiry::Save => self.level.is_some(),
            Inquiry::Clock | Inquiry::ClockAndProcessor | Inquiry::Processor(_) => self.held.is_some(),
        })
    }

    /// Notes the instructions of a block that are beyond the level.
    pub(crate) fn note_beyond(&mut self, block: &[Decoded]) {
        let Some(level) = self.level else { return };
        for one in block {
            if self.answered(one).is_none()
                && let Some(feature) = one.feature_beyond(level)
            {
                self.beyond.insert((block[0].address(), one.address()), feature);
            }
        }
    }

    /// Notes that the program learned of its real surroundings.
    pub(crate) fn note_not_held(&mut self, how: String) {
        self.not_held.insert(how);
    }

    /// The facts for the reader of the counts.
    pub(crate) fn facts(&self) -> HeldFacts {
        let noted = self.beyond.iter();
        let beyond = noted.map(|(&(block, address), feature)| BeyondLevel {
            block,
            address,
            feature: feature.clone(),
        });
        HeldFacts {
            beyond: beyond.collect(),
            not_held: self.not_held.iter().cloned().collect(),
            drew_random: self.held.as_ref().is_some_and(|held| held.is_drawn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treering_x86::decode;

    #[test]
    fn only_held_surroundings_are_answered() {
        let answered = |level, is_held, bytes: &[u8]| {
            let mut block = Vec::new();
            decode(bytes, 0, 1, &mut block);
            Surroundings::new(level, is_held).answered(&block[0]).is_some()
        };
        let [cpuid, rdtsc, nop]: [&[u8]; 3] = [&[0x0f, 0xa2], &[0x0f, 0x31], &[0x90]];
        for (level, is_held, expected) in [
            (None, false, [false; 3]),
            (Some(Level::V2), false, [true, false, false]),
            (None, true, [false, true, false]),
            (Some(Level::V2), true, [true, true, false]),
        ] {
            assert_eq!([cpuid, rdtsc, nop].map(|bytes| answered(level, is_held, bytes)), expected);
        }
    }

    #[test]
    fn children_have_other_random_numbers_and_the_same_time() {
        let mut parent = Surroundings::new(None, true);
        let mut first = parent.next_program();
        let mut second = parent.next_program();
        let draw =
            |surroundings: &mut Surroundings| surroundings.held.as_mut().map(|held| held.random.bytes(8));
        let drawn = [draw(&mut parent), draw(&mut first), draw(&mut second)];
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2]);
        let time = |surroundings: &mut Surroundings| surroundings.held.as_mut().map(|held| held.clock.read());
        assert_eq!(time(&mut parent), time(&mut first));
    }
}
