//! The record that JIT compilers keep of their code in `jit-PID.dump`.
//!
//! After perf's `jitdump-specification.txt`, version 1. Code bytes and unwinding information are
//! passed over; what remains is which function was where, from when on.

use std::collections::HashMap;

/// The content of a jitdump file, in the order of its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jitdump {
    /// The process that wrote it.
    pub pid: u32,
    /// The architecture of the code: an ELF `e_machine`.
    pub machine: u32,
    /// Whether times are raw values of the architecture's counter rather than nanoseconds of
    /// `CLOCK_MONOTONIC`.
    pub raw_timestamps: bool,
    /// Code that was made or moved.
    pub events: Vec<JitEvent>,
    /// Where and why reading stopped early; nothing when the file was whole.
    pub damage: Option<JitdumpError>,
}

/// Code that was made or moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JitEvent {
    /// A function was made (`JIT_CODE_LOAD`), with the lines of the `JIT_CODE_DEBUG_INFO` before it.
    Load {
        /// When, in the file's clock.
        time: u64,
        /// The function's runtime address.
        start: u64,
        /// Its length in bytes.
        size: u64,
        /// The number that the compiler gave it.
        index: u64,
        /// Its name.
        name: String,
        /// Its source lines, by runtime address.
        lines: Vec<JitLine>,
    },
    /// A function was moved (`JIT_CODE_MOVE`).
    Move {
        /// When, in the file's clock.
        time: u64,
        /// The number that the compiler gave it.
        index: u64,
        /// Its runtime address before.
        from: u64,
        /// Its runtime address from now on.
        to: u64,
        /// Its length in bytes.
        size: u64,
    },
}

/// The source line of the code from an address on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitLine {
    /// The runtime address of the first instruction.
    pub address: u64,
    /// The source file.
    pub file: String,
    /// The line, from 1; 0 when unknown.
    pub line: u32,
}

/// Why a jitdump file, or the rest of it, could not be read. Positions are in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JitdumpError {
    /// It does not start with the magic number.
    NotJitdump,
    /// It is of a version that is not understood.
    Version(u32),
    /// It ends within something.
    Cut {
        /// The start of the part that is cut short.
        at: usize,
        /// How many bytes it needs.
        needed: usize,
        /// How many bytes are left.
        left: usize,
    },
    /// A record states a length that is too short for its fields.
    Short {
        /// Where the record begins.
        at: usize,
    },
}

impl std::fmt::Display for JitdumpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotJitdump => f.write_str("not a jitdump file: it does not start with \"JiTD\""),
            Self::Version(version) => write!(f, "jitdump version {version} is not understood"),
            Self::Cut { at, needed, left } => {
                write!(
                    f,
                    "jitdump record at byte {at:#x} is cut short: it needs {needed} bytes, {left} are left"
                )
            }
            Self::Short { at } => write!(f, "jitdump record at byte {at:#x} is shorter than its contents"),
        }
    }
}

impl std::error::Error for JitdumpError {}

const MAGIC: [u8; 4] = *b"JiTD";
const HEADER_SIZE: usize = 40;
const RECORD_HEADER_SIZE: usize = 16;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const CODE_DEBUG_INFO: u32 = 2;
const CODE_CLOSE: u32 = 3;

/// Reads a jitdump file of either byte order.
///
/// Only a file without a header is an error: a record that is cut short ends the reading, and
/// what came before is kept with the reason in [`Jitdump::damage`], as the program may still be
/// writing. Records of unknown kind are passed over.
pub fn parse(bytes: &[u8]) -> Result<Jitdump, JitdumpError> {
    let (mut reader, mut dump) = read_header(bytes)?;
    let mut pending = HashMap::new();
    while !reader.is_empty() {
        match read_record(&mut reader, &mut dump, &mut pending) {
            Ok(true) => {}
            Ok(false) => break,
            Err(damage) => {
                dump.damage = Some(damage);
                break;
            }
        }
    }
    Ok(dump)
}

fn read_header(bytes: &[u8]) -> Result<(Reader<'_>, Jitdump), JitdumpError> {
    let magic = bytes.first_chunk::<4>().ok_or(JitdumpError::NotJitdump)?;
    let mut reversed = MAGIC;
    reversed.reverse();
    let big_endian = *magic == MAGIC;
    if !big_endian && *magic != reversed {
        return Err(JitdumpError::NotJitdump);
    }
    let mut reader = Reader { bytes, at: 4, start: 0, big_endian };
    let version = reader.u32()?;
    if version != 1 {
        return Err(JitdumpError::Version(version));
    }
    let size = reader.u32()? as usize;
    let machine = reader.u32()?;
    reader.u32()?;
    let pid = reader.u32()?;
    reader.u64()?;
    let raw_timestamps = reader.u64()? & 1 != 0;
    if size < HEADER_SIZE {
        return Err(JitdumpError::Short { at: 0 });
    }
    reader.at = 0;
    reader.take(size)?;
    Ok((reader, Jitdump { pid, machine, raw_timestamps, ..Jitdump::default() }))
}

/// Reads one record; false when it says that the file ends.
fn read_record(
    reader: &mut Reader<'_>,
    dump: &mut Jitdump,
    pending: &mut HashMap<u64, Vec<JitLine>>,
) -> Result<bool, JitdumpError> {
    reader.start = reader.at;
    let (kind, size, time) = (reader.u32()?, reader.u32()? as usize, reader.u64()?);
    let rest = size.checked_sub(RECORD_HEADER_SIZE).ok_or(JitdumpError::Short { at: reader.start })?;
    let mut body = reader.sub_reader(rest)?;
    let short = |error| match error {
        JitdumpError::Cut { at, .. } => JitdumpError::Short { at },
        other => other,
    };
    match kind {
        CODE_LOAD => dump.events.push(read_load(&mut body, time, pending).map_err(short)?),
        CODE_MOVE => dump.events.push(read_move(&mut body, time).map_err(short)?),
        CODE_DEBUG_INFO => {
            let (address, lines) = read_lines(&mut body).map_err(short)?;
            pending.insert(address, lines);
        }
        CODE_CLOSE => return Ok(false),
        _ => {}
    }
    Ok(true)
}

fn read_load(
    body: &mut Reader<'_>,
    time: u64,
    pending: &mut HashMap<u64, Vec<JitLine>>,
) -> Result<JitEvent, JitdumpError> {
    body.take(16)?; // process, thread and the address that the code was made at
    let (start, size, index) = (body.u64()?, body.u64()?, body.u64()?);
    let name = body.text()?;
    let lines = pending.remove(&start).unwrap_or_default();
    Ok(JitEvent::Load { time, start, size, index, name, lines })
}

fn read_move(body: &mut Reader<'_>, time: u64) -> Result<JitEvent, JitdumpError> {
    body.take(16)?; // process, thread and the address that the code is moved to
    let (from, to, size, index) = (body.u64()?, body.u64()?, body.u64()?, body.u64()?);
    Ok(JitEvent::Move { time, index, from, to, size })
}

/// Stands for the file of the entry before.
const SAME_FILE: &[u8] = b"\xff";

fn read_lines(body: &mut Reader<'_>) -> Result<(u64, Vec<JitLine>), JitdumpError> {
    let (function, count) = (body.u64()?, body.u64()?);
    let mut lines: Vec<JitLine> = Vec::new();
    for _ in 0..count {
        let (address, line) = (body.u64()?, body.u32()?);
        body.u32()?; // discriminator
        let file = match (body.word()?, lines.last()) {
            (SAME_FILE, Some(last)) => last.file.clone(),
            (file, _) => String::from_utf8_lossy(file).into_owned(),
        };
        lines.push(JitLine { address, file, line });
    }
    lines.sort_by_key(|line| line.address);
    Ok((function, lines))
}

/// Reads numbers and texts; knows where the record it is in began.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    start: usize,
    big_endian: bool,
}

impl<'a> Reader<'a> {
    fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8], JitdumpError> {
        let left = self.bytes.len().saturating_sub(self.at);
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..size));
        let taken = taken.ok_or(JitdumpError::Cut { at: self.start, needed: size, left })?;
        self.at += size;
        Ok(taken)
    }

    fn sub_reader(&mut self, size: usize) -> Result<Self, JitdumpError> {
        let bytes = self.take(size)?;
        Ok(Self { bytes, at: 0, start: self.start, big_endian: self.big_endian })
    }

    fn u32(&mut self) -> Result<u32, JitdumpError> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u64(&mut self) -> Result<u64, JitdumpError> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// The bytes up to a zero, which is passed over.
    fn word(&mut self) -> Result<&'a [u8], JitdumpError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let needed = rest.len() + 1;
        let cut = JitdumpError::Cut { at: self.start, needed, left: rest.len() };
        let length = rest.iter().position(|&byte| byte == 0).ok_or(cut)?;
        self.at += length + 1;
        Ok(&rest[..length])
    }

    fn text(&mut self) -> Result<String, JitdumpError> {
        self.word().map(|word| String::from_utf8_lossy(word).into_owned())
    }
}

#[cfg(test)]
#[path = "jitdump_tests.rs"]
pub(crate) mod tests;
