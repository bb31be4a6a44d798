//! Code that no file holds, by module. A page that has held other code before has its present code in another
//! generation.

use hashbrown::HashMap;
use treering_profile::{
    CodeAddress, CodeBytes, CodeSpace, CodeSpaceId, Interner, ModuleId, Profile, StatedAddress,
};

/// A line of a module's memory in one generation; [`UNKNOWN`] stands for an unknown byte.
type Line = [u16; LINE as usize];

const LINE: u64 = 64;
const UNKNOWN: u16 = 256;

/// The address of a block and its length.
type Extent = (ModuleId, u64, usize);

/// The code that no file holds.
#[derive(Debug, Default)]
pub(crate) struct MadeCode {
    /// The lines of modules by generation.
    lines: HashMap<(ModuleId, u64), Vec<Line>>,
    /// The number of generations of an extent that were examined: all of its bytes are known in each of them.
    complete: HashMap<Extent, u32>,
    /// The first of these generations that holds the given bytes.
    first: HashMap<(ModuleId, u64, Box<[u8]>), u32>,
}

impl MadeCode {
    /// The first generation of a module in which an address holds these bytes, or none yet.
    ///
    /// Code that is made again and again at one address has as many generations as contents. So the
    /// generations in which all bytes are known are looked up, not compared one by one.
    pub(crate) fn add(
        &mut self,
        profile: &mut Profile,
        module: ModuleId,
        address: u64,
        bytes: &[u8],
    ) -> CodeSpaceId {
        self.look_up_to_gap(module, address, bytes.len());
        let generation = match self.first.get(&(module, address, bytes.into())) {
            Some(&known) => known,
            None => self.first_that_fits(module, address, bytes),
        };
        self.set(module, address, bytes, generation as usize);
        space(&mut profile.code.spaces, module, generation)
    }

    /// Notes the contents of an extent in all generations up to the first one in which a byte is unknown.
    fn look_up_to_gap(&mut self, module: ModuleId, address: u64, length: usize) {
        let mut generation = self.complete.get(&(module, address, length)).copied().unwrap_or(0);
        while let Some(content) = self.content(module, address, length, generation as usize) {
            self.first.entry((module, address, content)).or_insert(generation);
            generation += 1;
        }
        if generation > 0 {
            self.complete.insert((module, address, length), generation);
        }
    }

    /// The first generation behind the complete ones in which an address may hold these bytes.
    fn first_that_fits(&self, module: ModuleId, address: u64, bytes: &[u8]) -> u32 {
        let first = self.complete.get(&(module, address, bytes.len())).copied().unwrap_or(0);
        let fits = |generation: &u32| {
            places(address, bytes.len()).zip(bytes).all(|(at, &byte)| {
                let known = self.byte(module, at, *generation as usize);
                known == UNKNOWN || known == byte.into()
            })
        };
        // In the generation behind the last, no byte is known.
        (first..).find(fits).unwrap_or(first)
    }

    fn byte(&self, module: ModuleId, at: u64, generation: usize) -> u16 {
        let line = self.lines.get(&(module, at / LINE)).and_then(|lines| lines.get(generation));
        line.map_or(UNKNOWN, |line| line[(at % LINE) as usize])
    }

    /// The contents of an extent in a generation, if all bytes are known.
    fn content(&self, module: ModuleId, address: u64, length: usize, generation: usize) -> Option<Box<[u8]>> {
        let bytes = places(address, length).map(|at| u8::try_from(self.byte(module, at, generation)).ok());
        bytes.collect::<Option<Box<[u8]>>>().filter(|content| !content.is_empty())
    }

    fn set(&mut self, module: ModuleId, address: u64, bytes: &[u8], generation: usize) {
        for (at, &byte) in places(address, bytes.len()).zip(bytes) {
            let lines = self.lines.entry((module, at / LINE)).or_default();
            if lines.len() <= generation {
                lines.resize(generation + 1, [UNKNOWN; LINE as usize]);
            }
            lines[generation][(at % LINE) as usize] = byte.into();
        }
    }

    /// The bytes, in runs without gaps.
    pub(crate) fn into_bytes(self, spaces: &mut Interner<CodeSpaceId, CodeSpace>) -> Vec<CodeBytes> {
        let mut lines = Vec::new();
        for ((module, line), generations) in self.lines {
            for (generation, bytes) in (0..).zip(generations) {
                if bytes.iter().any(|&byte| byte != UNKNOWN) {
                    lines.push((space(spaces, module, generation), line, bytes));
                }
            }
        }
        lines.sort_unstable_by_key(|&(space, line, _)| (space, line));
        let mut runs: Vec<(CodeAddress, Vec<u8>)> = Vec::new();
        for (space, line, bytes) in lines {
            for (at, &byte) in (line * LINE..).zip(&bytes).filter(|&(_, &byte)| byte != UNKNOWN) {
                let place = CodeAddress { space, address: StatedAddress(at) };
                match runs.last_mut() {
                    Some((first, run)) if first.offset(run.len() as u64) == place => run.push(byte as u8),
                    _ => runs.push((place, vec![byte as u8])),
                }
            }
        }
        runs.into_iter().map(|(start, bytes)| CodeBytes { start, bytes: bytes.into() }).collect()
    }
}

/// The addresses of an extent.
fn places(address: u64, length: usize) -> impl Iterator<Item = u64> {
    (0..length as u64).map(move |at| address.wrapping_add(at))
}

fn space(spaces: &mut Interner<CodeSpaceId, CodeSpace>, module: ModuleId, generation: u32) -> CodeSpaceId {
    spaces.intern(CodeSpace { module: Some(module), generation })
}

#[cfg(test)]
mod tests {
    use treering_profile::RecursionRule;

    use super::*;

    /// A generation, an address, and the bytes from there on.
    type Run = (u32, u64, Vec<u8>);

    /// The generations of blocks, given by address and bytes, and the bytes that are known in the end.
    fn generations(blocks: &[(u64, &[u8])]) -> (Vec<u32>, Vec<Run>) {
        let mut profile = Profile::new(RecursionRule::Full);
        let (mut made, module) = (MadeCode::default(), ModuleId::new(0));
        let spaces: Vec<_> =
            blocks.iter().map(|&(address, bytes)| made.add(&mut profile, module, address, bytes)).collect();
        let bytes = made.into_bytes(&mut profile.code.spaces);
        let generation = |space: CodeSpaceId| profile.code.spaces[space].generation;
        let runs =
            bytes.iter().map(|run| (generation(run.start.space), run.start.address.0, run.bytes.to_vec()));
        (spaces.into_iter().map(generation).collect(), runs.collect())
    }

    #[test]
    fn generations_at_an_address_differ_exactly_where_the_code_differs() {
        let (found, runs) = generations(&[
            (0x10, &[1, 2, 3]),
            (0x10, &[1, 9]),
            // The end of the first block, and more behind it.
            (0x11, &[2, 3, 4]),
            (0x10, &[1, 2, 3, 4, 5]),
            (0x10, &[1, 9, 7]),
            (0x10, &[1, 8, 7]),
            (0x12, &[6]),
            (0x10, &[1, 9, 7]),
        ]);
        assert_eq!(found, [0, 1, 0, 0, 1, 2, 3, 1]);
        let expected = [
            (0, 0x10, vec![1, 2, 3, 4, 5]),
            (1, 0x10, vec![1, 9, 7]),
            (2, 0x10, vec![1, 8, 7]),
            (3, 0x12, vec![6]),
        ];
        assert_eq!(runs, expected);
    }

    #[test]
    fn runs_go_on_from_line_to_line() {
        let code = [7; 200];
        let (found, runs) = generations(&[(0xff0, &code), (0x1100, &[1]), (0x1080, &[9, 9])]);
        assert_eq!(found, [0, 0, 1]);
        let expected = [(0, 0xff0, code.to_vec()), (0, 0x1100, vec![1]), (1, 0x1080, vec![9, 9])];
        assert_eq!(runs, expected);
    }

    /// Comparing every block with every generation before it would take minutes.
    #[test]
    fn an_address_may_have_held_very_many_contents() {
        const ALL: u32 = 100_000;
        let contents: Vec<[u8; 6]> = (0..ALL)
            .map(|number| {
                let [a, b, c, d] = number.to_le_bytes();
                [0xb8, a, b, c, d, 0xc3]
            })
            .collect();
        let blocks: Vec<(u64, &[u8])> = contents.iter().map(|bytes| (0x1000, &bytes[..])).collect();
        let (found, runs) = generations(&[&blocks[..], &blocks[..]].concat());
        assert!((0..ALL).chain(0..ALL).eq(found));
        assert_eq!(runs.len(), ALL as usize);
    }
}
