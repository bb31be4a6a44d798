//! How the format of a file is recognised.

use std::borrow::Cow;

use crate::gzip::{GZIP, begins};
use crate::label::without_mark;
use crate::{Error, Foreign, Format, folded, foreign};

pub(crate) fn unrecognised(bytes: &[u8]) -> Error {
    match detect_foreign(bytes) {
        Some(Foreign::Gzip) => match detect_foreign(&begins(bytes)) {
            Some(inner) => Error::CompressedForeign(inner),
            None => Error::Foreign(Foreign::Gzip),
        },
        Some(foreign) => Error::Foreign(foreign),
        None if bytes.is_empty() => Error::Empty,
        None => Error::Unknown { start: bytes[..bytes.len().min(8)].to_vec() },
    }
}

/// How much of a file is looked at; more if its first line is longer.
pub(crate) const LOOK: usize = 4096;

/// The format of a file, judged by its first few thousand bytes.
pub fn detect(bytes: &[u8]) -> Option<Format> {
    if let Some(own) = Format::ALL.into_iter().find(|format| format.is_own() && format.begins(bytes)) {
        return Some(own);
    }
    match bytes.starts_with(&GZIP) {
        true => detect_foreign_tool(&begins(bytes)),
        false => detect_foreign_tool(bytes),
    }
}

/// The format of a file of another tool, decompressed.
fn detect_foreign_tool(bytes: &[u8]) -> Option<Format> {
    if let Some(format) = Format::ALL.into_iter().find(|format| !format.is_own() && format.begins(bytes)) {
        return Some(format);
    }
    if let Some(foreign) = sort(bytes) {
        return foreign.format();
    }
    let start = looked_at(without_mark(bytes));
    if text(start).is_none() && is_pprof(&bytes[..bytes.len().min(LOOK)]) {
        return Some(Format::Pprof);
    }
    // Names may hold control characters, but no text has zeros.
    let text = (!start.contains(&0)).then(|| String::from_utf8_lossy(start))?;
    if is_callgrind(&text) {
        return Some(Format::Callgrind);
    }
    is_folded(&text, bytes.len() > start.len()).then_some(Format::Folded)
}

/// Whether a file, of which this is the start, was written by Treering: it is of a format of its own, or
/// one of the format that is `writing` now and says so. Folded stacks cannot say it, so any are taken for
/// ours where others are written.
pub fn is_ours(start: &[u8], writing: Format) -> bool {
    let says_so = |format: Format| format == writing && format.says_ours(start);
    detect(start).is_some_and(|format| format.is_own() || says_so(format))
}

/// The sort of a file, of those that are recognised but not read.
pub fn detect_foreign(bytes: &[u8]) -> Option<Foreign> {
    sort(bytes).filter(|foreign| foreign.format().is_none())
}

/// The sort of a file of another tool, of those that tell it plainly.
fn sort(bytes: &[u8]) -> Option<Foreign> {
    if let Some(foreign) = foreign::by_magic(bytes) {
        return Some(foreign);
    }
    let unmarked = without_mark(bytes);
    match text(looked_at(unmarked)) {
        Some(text) => foreign::by_text(&text, unmarked),
        None => {
            let start = &bytes[..bytes.len().min(LOOK)];
            let otlp = is_nested(start) && foreign::is_otlp(start);
            if otlp { Some(Foreign::Otlp) } else { foreign::by_name(bytes) }
        }
    }
}

/// The start of a file, with its first line whole.
pub(crate) fn looked_at(bytes: &[u8]) -> &[u8] {
    let line = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1);
    &bytes[..bytes.len().min(LOOK.max(line))]
}

/// The bytes as text; nothing if there are control characters, of which text formats have form feeds only. Names may
/// have bytes that are not UTF-8.
fn text(start: &[u8]) -> Option<Cow<'_, str>> {
    let control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\r' | b'\t' | b'\x0c');
    (!start.is_empty() && !start.iter().any(control)).then(|| String::from_utf8_lossy(start))
}

/// Whether a field's bytes are two numbers, as far as they go.
fn is_sample_type(field: &[u8]) -> bool {
    let Some((length, rest)) = varint(field) else { return true };
    let mut inner = &rest[..rest.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    while let Some((tag, after)) = varint(inner) {
        if !matches!(tag, 0x08 | 0x10) {
            return false;
        }
        let Some((_, after)) = varint(after) else { break };
        inner = after;
    }
    true
}

fn is_callgrind(text: &str) -> bool {
    let has = |keys: &[&str]| text.lines().any(|line| keys.iter().any(|key| line.starts_with(key)));
    // The events may come after a command that is longer than what is looked at.
    let begins = text.trim_start().starts_with("version:") && has(&["creator:", "cmd:", "pid:"]);
    begins || text.starts_with("# callgrind format") || has(&["events:"])
}

/// Whether the lines that are whole are stacks.
fn is_folded(text: &str, cut: bool) -> bool {
    let mut lines: Vec<_> = text.lines().map(str::as_bytes).collect();
    if cut && lines.len() > 1 {
        lines.pop();
    }
    folded::is_folded(lines.into_iter())
}

/// Whether the bytes are fields of a pprof profile, as far as they go: numbers and wire types
/// must be those of the message, and the first field must be whole or the last.
fn is_pprof(mut bytes: &[u8]) -> bool {
    if is_nested(bytes) {
        return false;
    }
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

/// Whether the first field is a message whose first field is a message too: in pprof it holds two
/// numbers.
fn is_nested(bytes: &[u8]) -> bool {
    let field = |bytes: &[u8]| matches!(bytes.first(), Some(0x0a | 0x12));
    let first = bytes.strip_prefix(&[0x0a]).and_then(varint);
    first.is_some_and(|(length, inner)| length > 0 && field(inner))
}

/// The bytes behind a field; inner nothing if the bytes end within it, outer if it is not one of a
/// pprof profile.
fn skip_field(tag: u64, bytes: &[u8]) -> Option<Option<&[u8]>> {
    const NUMBER: u64 = 0;
    const LENGTH: u64 = 2;
    match (tag >> 3, tag & 7) {
        (1, LENGTH) if !is_sample_type(bytes) => None,
        (7..=10 | 12..=15, NUMBER) => Some(varint(bytes).map(|(_, rest)| rest)),
        (1..=6 | 11 | 13, LENGTH) => match varint(bytes) {
            Some((length, rest)) => Some(usize::try_from(length).ok().and_then(|at| rest.get(at..))),
            None => Some(None),
        },
        _ => None,
    }
}

pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(10).position(|byte| *byte < 0x80)? + 1;
    let (digits, rest) = bytes.split_at(length);
    let value = digits.iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_any;

    #[test]
    fn formats_are_recognised_by_content() {
        for (bytes, expected) in [
            (&b"\x89trg\r\n\x1a\n"[..], Some(Format::Trg)),
            (b"\x89trl\r\n\x1a\n", Some(Format::Live)),
            (b"a;b;c d 1\n", Some(Format::Folded)),
            (b"<T as U>::f;g 1\n", Some(Format::Folded)),
            (b"[kernel];a 1\n", Some(Format::Folded)),
            (b"treering prolog profile\t1\n", Some(Format::Prolog)),
            (b"version: 1\ncreator: x\nevents: Ir\n", Some(Format::Callgrind)),
            (b"\x0a\x04\x08\x01\x10\x02\x32\x00", Some(Format::Pprof)),
            (b"a;\x1b[31mred;\x07 1\n", Some(Format::Folded)),
            (b"events: Ir\nfn=f\x1b[2J\n1 5\n", Some(Format::Callgrind)),
            (b"version: 0.9.6\ncmd: /a/very/long/command\n", Some(Format::Callgrind)),
            (
                b"{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\"}",
                Some(Format::Speedscope),
            ),
            (b"{\"traceEvents\":[{\"args\":{\"nodes\":[{\"callFrame\":{}}]}}]}", Some(Format::ChromeTrace)),
            (b"{\"nodes\":[{\"id\":1,\"callFrame\":{", Some(Format::CpuProfile)),
            (
                b"java 7 cycles:\nffffffff8103d0ca f ([k])\nffffffff8103d0cb g ([k])\n",
                Some(Format::PerfScript),
            ),
            (b"ls 1 2.0: cpu\n\tffff0000 a+0x1 (x)\n\tffff0001 b (y)\n", Some(Format::PerfScript)),
            (
                b"ls 1  1.917330:  25 cpu-clock:  7fdb67be93e0 f+0x270 (/lib/ld.so)\n",
                Some(Format::PerfScript),
            ),
            (b"gmon\x01\0\0\0", Some(Format::Gmon)),
            (b"Flat profile:\n\n\x0c\t\t\tCall graph\n", Some(Format::Gprof)),
            (b"PERFILE2", Some(Format::PerfData)),
            (b"2ELIFREP", Some(Format::PerfData)),
            (b"gmon;a 1\n", Some(Format::Folded)),
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
            (&b"PERFILE2\0\0"[..], "byte 0xa: the file ends within its header"),
            (b"gmon\x01\0\0\0", "byte 0x0: the header is cut short: it needs 20 bytes, 8 are left"),
            (b"\x7fELF\x02", "not a profile that can be read: it is a program or library"),
            (b"<!DOCTYPE html>", "not a profile that can be read: it is HTML or XML"),
            (
                b"FLR\0\0\x02",
                "not a profile that can be read: it is a recording of Java's Flight Recorder (JFR)",
            ),
            (
                b"{\"nodes\":[{\"callFrame\":{},\"selfSize\":1}]}",
                "not a profile that can be read: it is JSON of V8 about memory (.heapprofile or .heapsnapshot)",
            ),
            (b"\xff\xfea\x00 \x001\x00", "not a profile that can be read: it is text in UTF-16"),
            (b"what\x01", "not a profile that can be read: it starts with \"what\\x01\""),
            (b"", "the file is empty"),
        ] {
            assert_eq!(read_any(bytes).unwrap_err().to_string(), expected);
        }
    }
}
