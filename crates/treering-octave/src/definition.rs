//! Where in a file a function is defined.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// The definitions in the file that was asked for last.
#[derive(Debug)]
pub(crate) struct Definitions {
    file: Vec<u8>,
    lines: Vec<(Vec<u8>, u32)>,
}

/// Files that are larger are not read.
const LARGEST: u64 = 1 << 24;

impl Definitions {
    /// Nothing was asked for.
    pub(crate) const fn new() -> Self {
        Self { file: Vec::new(), lines: Vec::new() }
    }

    /// The line, from 1, on which `file` defines a function, or 0. The name may be that of a
    /// subfunction (`file>name`) or a method (`@class/name`).
    pub(crate) fn line(&mut self, file: &[u8], name: &[u8]) -> u32 {
        if file.is_empty() {
            return 0;
        }
        if self.file != file {
            self.lines = read(file);
            self.file = file.to_vec();
        }
        let name = name.rsplit(|&byte| matches!(byte, b'>' | b'/' | b'@')).next().unwrap_or_default();
        self.lines.iter().find(|(known, _)| known == name).map_or(0, |(_, line)| *line)
    }
}

fn read(file: &[u8]) -> Vec<(Vec<u8>, u32)> {
    let path = OsStr::from_bytes(file);
    let is_small = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
    let text = if is_small { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    definitions(&text)
}

/// The names of all functions of a file, with the lines of their definitions.
fn definitions(text: &[u8]) -> Vec<(Vec<u8>, u32)> {
    let lines = (1_u32..).zip(text.split(|&byte| byte == b'\n'));
    lines.filter_map(|(number, line)| Some((defined(line)?.to_vec(), number))).collect()
}

/// The name of the function that a line defines.
fn defined(line: &[u8]) -> Option<&[u8]> {
    let rest = line.trim_ascii_start().strip_prefix(b"function")?;
    if !rest.first().is_some_and(|byte| byte.is_ascii_whitespace()) {
        return None;
    }
    let end = rest.iter().position(|byte| matches!(byte, b'%' | b'#')).unwrap_or(rest.len());
    let rest = &rest[..end];
    // `[a, b] = name (...)`, where defaults of arguments may hold another equals sign.
    let opens = rest.iter().position(|&byte| byte == b'(').unwrap_or(rest.len());
    let start = rest[..opens].iter().position(|&byte| byte == b'=').map_or(0, |at| at + 1);
    let name = rest[start..].trim_ascii_start();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let length = name.iter().position(|byte| !is_part(byte)).unwrap_or(name.len());
    (length > 0).then(|| &name[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_in_all_their_forms() {
        for (line, expected) in [
            ("function solve", "solve"),
            ("function solve (a, b = 1)", "solve"),
            ("  function y = solve (x)", "solve"),
            ("function [a, b] = solve(x) % y = other (x)", "solve"),
            ("function value = get.dbl (self)", "get.dbl"),
        ] {
            assert_eq!(defined(line.as_bytes()), Some(expected.as_bytes()), "{line}");
        }
        for line in ["functions", "% function f", "x = function_of (y)", "function", "endfunction"] {
            assert_eq!(defined(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn lines_are_counted_from_one() {
        let found = definitions(b"1;\nfunction a\nend\n\nfunction r = b (x)\nend\n");
        assert_eq!(found, [(b"a".to_vec(), 2), (b"b".to_vec(), 5)]);
    }

    #[test]
    fn a_file_that_is_not_there_defines_nothing() {
        assert_eq!(Definitions::new().line(b"/nowhere/at/all.m", b"all"), 0);
    }
}
