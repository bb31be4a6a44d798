//! The machine code that is expected where SWI-Prolog's kernel profiles, byte by byte.
//!
//! A pattern is a text of bytes in hexadecimal; `??` is any byte, and two letters and a number, as
//! `c0 c1 c2 c3` in capitals, are the bytes of a number that is the same wherever it stands.

use std::collections::BTreeMap;

/// `PL_prof_call`, which ends in a jump, J, to the function that is called for every call.
pub(crate) const PROF_CALL: &str = "\
    55 48 89 f5 53 48 89 fb 50 66 48 8d 3d ?? ?? ?? ?? 66 66 48 e8 ?? ?? ?? ?? 48 89 ea 48 89 de 48 8b 38 \
    59 5b 5d e9 J0 J1 J2 J3";

/// `PL_prof_exit`, which ends in a jump, J, to the function that is called when a predicate exits.
pub(crate) const PROF_EXIT: &str = "\
    53 48 8b 5f 08 66 48 8d 3d ?? ?? ?? ?? 66 66 48 e8 ?? ?? ?? ?? 48 89 de 5b 48 8b 38 e9 J0 J1 J2 J3";

/// The function for calls. In the record of a thread, the current node is at C, a mark that the profiler
/// itself runs at A, and the first root at R. A node is expected to have its mark in the first word, then
/// the node above it at 0x8, its predicate at 0x10, and the sort of that at 0x18; calls at 0x20, recursive
/// ones at 0x38; its neighbour at 0x50, and the first below it at 0x58.
pub(crate) const CALL: &str = "\
    41 54 49 89 d4 55 48 89 f5 53 48 8b 87 C0 C1 C2 C3 48 89 fb c7 87 A0 A1 A2 A3 01 00 00 00 48 85 c0 75 \
    7b 48 8b 97 R0 R1 R2 R3 48 85 d2 74 1c 48 39 6a 10 75 10 48 ff 42 20 48 89 93 C0 C1 C2 C3 e9 23 01 00 \
    00 48 8b 52 50 eb df bf 60 00 00 00 e8 ?? ?? ?? ?? b9 18 00 00 00 48 89 c2 31 c0 48 89 d7 66 48 0f 6e \
    c2 f3 ab 66 0f 6c c0 48 ff 83 ?? ?? ?? ?? 48 c7 02 24 8f e3 7a 48 ff 42 20 48 89 6a 10 4c 89 62 18 48 \
    8b 83 R0 R1 R2 R3 48 89 42 50 0f 11 83 C0 C1 C2 C3 e9 ca 00 00 00 48 8b 70 10 48 39 ee 75 0c 48 ff 40 \
    38 48 89 c2 e9 b5 00 00 00 48 8b 48 08 48 85 c9 74 2b 48 8b 79 10 48 89 ca 48 8b 49 08 48 39 ef 75 eb \
    48 85 c9 74 16 48 3b 71 10 75 e5 48 ff 42 38 48 89 93 C0 C1 C2 C3 e9 81 00 00 00 48 8b 50 58 48 85 d2 \
    74 19 48 39 6a 10 75 0d 48 89 93 C0 C1 C2 C3 48 ff 42 20 eb 65 48 8b 52 50 eb e2";

/// The function for exits, which makes the node that it is given the current one; then one that gives it
/// the node above; then the function for redos, at [`REDO_AT`].
pub(crate) const RESUME: &str = "\
    48 85 f6 74 09 48 81 3e 24 8f e3 7a 75 34 c7 87 A0 A1 A2 A3 01 00 00 00 48 8b 87 C0 C1 C2 C3 48 85 c0 \
    74 0f 48 39 f0 74 0a 48 ff 40 30 48 8b 40 08 eb ec 31 c0 48 89 b7 C0 C1 C2 C3 89 87 A0 A1 A2 A3 c3 \
    48 85 f6 74 0f 48 81 3e 24 8f e3 7a 75 06 48 8b 76 08 eb a9 c3 \
    48 85 f6 74 32 48 81 3e 24 8f e3 7a 75 30 48 83 bf C0 C1 C2 C3 00 48 89 f0 74 18 48 39 87 C0 C1 C2 C3 \
    74 13 48 ff 40 28 48 8b 40 08 48 85 c0 75 ea eb 04 48 ff 46 28 48 89 b7 C0 C1 C2 C3 c3";

/// Where in [`RESUME`] the function for redos begins.
pub(crate) const REDO_AT: u64 = 88;

/// How many bytes a pattern has.
pub(crate) fn length(pattern: &str) -> usize {
    pattern.split_whitespace().count()
}

/// The numbers of a pattern, by letter; nothing where the code differs from it.
pub(crate) fn numbers(pattern: &str, code: &[u8]) -> Option<BTreeMap<u8, i32>> {
    let mut bytes: BTreeMap<(u8, u8), u8> = BTreeMap::new();
    let mut code = code.iter();
    for word in pattern.split_whitespace() {
        let byte = *code.next()?;
        let is_expected = match *word.as_bytes() {
            [b'?', b'?'] => true,
            // Those of hexadecimal numbers are small letters.
            [letter @ b'A'..=b'Z', digit @ b'0'..=b'3'] => {
                *bytes.entry((letter, digit - b'0')).or_insert(byte) == byte
            }
            _ => u8::from_str_radix(word, 16) == Ok(byte),
        };
        if !is_expected {
            return None;
        }
    }
    let letters: Vec<u8> = bytes.keys().map(|(letter, _)| *letter).collect();
    let number = |letter: u8| {
        let byte = |at: u8| bytes.get(&(letter, at)).copied();
        Some((letter, i32::from_le_bytes([byte(0)?, byte(1)?, byte(2)?, byte(3)?])))
    };
    letters.into_iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_its_own_code_only() {
        let pattern = "e9 J0 J1 J2 J3 ?? 48 J0 J1 J2 J3";
        let code = [0xe9, 1, 2, 0, 0, 77, 0x48, 1, 2, 0, 0];
        assert_eq!(numbers(pattern, &code), Some(BTreeMap::from([(b'J', 0x201)])));
        for at in (0..code.len()).filter(|&at| at != 5) {
            let mut other = code;
            other[at] ^= 1;
            assert_eq!(numbers(pattern, &other), None, "byte {at}");
        }
        assert_eq!(numbers(pattern, &code[..10]), None);
    }

    #[test]
    fn the_function_for_redos_begins_behind_the_second_return() {
        let words: Vec<_> = RESUME.split_whitespace().collect();
        assert_eq!(words[REDO_AT as usize - 1], "c3");
        assert_eq!(words[REDO_AT as usize..][..4], ["48", "85", "f6", "74"]);
    }
}
