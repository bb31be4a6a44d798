//! The formats, and how a file's is recognised.

use std::fmt;

use treering_profile::Profile;

use crate::pprof::GZIP;
use crate::{Error, Foreign, ReadReport, callgrind, folded, live, pprof, trg};

/// A file format that is read and, but for live files, written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Treering's own.
    Trg,
    /// What an instrumented program writes while it runs.
    Live,
    /// Stacks as lines of text, for flame graphs.
    Folded,
    /// Gzip-compressed protobuf.
    Pprof,
    /// Valgrind's Callgrind.
    Callgrind,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Trg, Self::Live, Self::Folded, Self::Pprof, Self::Callgrind];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trg => "trg",
            Self::Live => "live",
            Self::Folded => "folded",
            Self::Pprof => "pprof",
            Self::Callgrind => "callgrind",
        }
    }

    /// What names of its files usually end with, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Pprof => "pb.gz",
            other => other.as_str(),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a file of any format, recognised by its content.
///
/// # Errors
/// When the format is not recognised, is not one that is read, or the file is damaged.
pub fn read_any(bytes: &[u8]) -> Result<(Format, Profile, ReadReport), Error> {
    let Some(format) = detect(bytes) else { return Err(unrecognised(bytes)) };
    let (profile, report) = read_as(format, bytes)?;
    Ok((format, profile, report))
}

/// Reads a file of a known format.
///
/// # Errors
/// When the file is damaged or of another format.
pub fn read_as(format: Format, bytes: &[u8]) -> Result<(Profile, ReadReport), Error> {
    match format {
        Format::Trg => trg::read(bytes).map_err(Error::Trg),
        Format::Live => live::read(bytes).map_err(Error::Live),
        Format::Folded => folded::read(bytes).map_err(Error::Folded),
        Format::Pprof => pprof::read(bytes).map_err(Error::Pprof),
        Format::Callgrind => callgrind::read(bytes).map_err(Error::Callgrind),
    }
}

fn unrecognised(bytes: &[u8]) -> Error {
    match detect_foreign(bytes) {
        Some(foreign) => Error::Foreign(foreign),
        None if bytes.is_empty() => Error::Empty,
        None => Error::Unknown { start: bytes[..bytes.len().min(8)].to_vec() },
    }
}

/// How much of a file is looked at.
const LOOK: usize = 4096;

/// The format of a file, judged by its first few thousand bytes.
pub fn detect(bytes: &[u8]) -> Option<Format> {
    let magic = &trg::MAGIC[..4];
    if bytes.starts_with(magic) {
        return Some(Format::Trg);
    }
    if bytes.starts_with(&live::MAGIC[..4]) {
        return Some(Format::Live);
    }
    if bytes.starts_with(&GZIP) {
        return is_pprof(&pprof::begins(bytes)).then_some(Format::Pprof);
    }
    let start = &bytes[..bytes.len().min(LOOK)];
    match text(start) {
        Some(_) if detect_foreign(bytes).is_some() => None,
        Some(text) if is_callgrind(text) => Some(Format::Callgrind),
        Some(text) if is_folded(text, bytes.len() > LOOK) => Some(Format::Folded),
        Some(_) => None,
        None => is_pprof(start).then_some(Format::Pprof),
    }
}

/// What sort of file it is, of those that are recognised but not read.
pub fn detect_foreign(bytes: &[u8]) -> Option<Foreign> {
    const MAGICS: [(&[u8], Foreign); 7] = [
        (b"PERFILE2", Foreign::PerfData),
        (b"2ELIFREP", Foreign::PerfData),
        (b"PERFFILE", Foreign::PerfData),
        (b"gmon", Foreign::Gmon),
        (b"\x7fELF", Foreign::Elf),
        (b"\x28\xb5\x2f\xfd", Foreign::Zstd),
        (&GZIP, Foreign::Gzip),
    ];
    if let Some((_, foreign)) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(*foreign);
    }
    let text = text(&bytes[..bytes.len().min(LOOK)])?.trim_start();
    match text.as_bytes().first()? {
        b'{' | b'[' if is_json(text) => Some(Foreign::Json),
        b'<' if is_markup(text) => Some(Foreign::Markup),
        _ => is_perf_script(text).then_some(Foreign::PerfScript),
    }
}

/// The bytes as text, without a character that is cut in half at the end; nothing if there are
/// control characters, which no text format has.
fn text(start: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&start[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let control = |c: char| c.is_ascii_control() && !matches!(c, '\n' | '\r' | '\t');
    (!text.is_empty() && !text.contains(control)).then_some(text)
}

fn is_callgrind(text: &str) -> bool {
    text.starts_with("# callgrind format") || text.lines().any(|line| line.starts_with("events:"))
}

/// Whether every line that is whole ends with a space and a number.
fn is_folded(text: &str, cut: bool) -> bool {
    let mut lines: Vec<_> = text.lines().collect();
    if cut && lines.len() > 1 {
        lines.pop();
    }
    let mut stacks =
        lines.into_iter().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).peekable();
    let ends_with_number = |line: &str| {
        let weight = line.trim_end().rsplit_once([' ', '\t']).map(|(_, weight)| weight);
        weight.is_some_and(|weight| weight.parse::<u64>().is_ok())
    };
    stacks.peek().is_some() && stacks.all(ends_with_number)
}

/// Whether a brace or bracket is followed by what may follow it in JSON. `[kernel];a 1` is none.
fn is_json(text: &str) -> bool {
    let next = text[1..].trim_start().bytes().next();
    let object = text.starts_with('{') && matches!(next, Some(b'"' | b'}'));
    object || text.starts_with('[') && matches!(next, Some(b'{' | b'[' | b'"' | b']' | b'0'..=b'9'))
}

/// Whether `<` begins a tag, rather than a name such as `<T as Trait>::f`.
fn is_markup(text: &str) -> bool {
    const TAGS: [&str; 6] = ["<!doctype", "<html", "<?xml", "<svg", "<head", "<!--"];
    let start: String = text.chars().take(9).collect::<String>().to_ascii_lowercase();
    TAGS.iter().any(|tag| start.starts_with(tag))
}

/// Whether frames follow on lines of their own that start with white space and an address.
fn is_perf_script(text: &str) -> bool {
    let is_frame = |line: &str| {
        let address = line.split_whitespace().next().unwrap_or_default();
        let hex = address.len() >= 4 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
        line.starts_with(['\t', ' ']) && hex && line.trim_end().ends_with(')')
    };
    text.lines().filter(|line| is_frame(line)).count() >= 2
}

/// Whether the bytes are fields of a pprof profile, as far as they go: numbers and wire types
/// must be those of the message, and the first field must be whole or the last.
fn is_pprof(mut bytes: &[u8]) -> bool {
    let mut fields = 0;
    while !bytes.is_empty() {
        let Some((tag, rest)) = varint(bytes) else { break };
        let Some(rest) = skip_field(tag, rest) else { return false };
        fields += 1;
        match rest {
            Some(rest) => bytes = rest,
            None => break,
        }
    }
    fields > 0
}

/// What follows a field; inner nothing if the bytes end within it, outer if it is not one of a
/// pprof profile.
fn skip_field(tag: u64, bytes: &[u8]) -> Option<Option<&[u8]>> {
    const NUMBER: u64 = 0;
    const LENGTH: u64 = 2;
    match (tag >> 3, tag & 7) {
        (7..=10 | 12..=15, NUMBER) => Some(varint(bytes).map(|(_, rest)| rest)),
        (1..=6 | 11 | 13, LENGTH) => match varint(bytes) {
            Some((length, rest)) => Some(usize::try_from(length).ok().and_then(|at| rest.get(at..))),
            None => Some(None),
        },
        _ => None,
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(10).position(|byte| *byte < 0x80)? + 1;
    let (digits, rest) = bytes.split_at(length);
    let value = digits.iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_content() {
        for (bytes, expected) in [
            (&b"\x89trg\r\n\x1a\n"[..], Some(Format::Trg)),
            (b"\x89trl\r\n\x1a\n", Some(Format::Live)),
            (b"a;b;c d 1\n", Some(Format::Folded)),
            (b"<T as U>::f;g 1\n", Some(Format::Folded)),
            (b"[kernel];a 1\n", Some(Format::Folded)),
            (b"version: 1\ncreator: x\nevents: Ir\n", Some(Format::Callgrind)),
            (b"\x0a\x04\x08\x01\x10\x02\x32\x00", Some(Format::Pprof)),
            (b"hello world\n", None),
            (b"", None),
            (b"\x00\x01\x02", None),
        ] {
            assert_eq!(detect(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn files_that_are_not_read_are_named() {
        for (bytes, expected) in [
            (&b"PERFILE2\0\0"[..], "not a profile that can be read: it is a perf.data file"),
            (b"gmon\x01\0\0\0", "not a profile that can be read: it is a gmon.out file"),
            (b"\x7fELF\x02", "not a profile that can be read: it is a program or library"),
            (b"{\"traceEvents\": 1}", "not a profile that can be read: it is JSON"),
            (b"<!DOCTYPE html>", "not a profile that can be read: it is HTML or XML"),
            (
                b"ls 1 2.0: cpu\n\tffff0000 a+0x1 (x)\n\tffff0001 b (y)\n",
                "not a profile that can be read: it is the output of perf script",
            ),
            (b"what\x01", "not a profile that can be read: it starts with \"what\\x01\""),
            (b"", "the file is empty"),
        ] {
            assert_eq!(read_any(bytes).unwrap_err().to_string(), expected);
        }
    }
}
