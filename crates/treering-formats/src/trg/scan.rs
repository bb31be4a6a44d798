//! Finds the frames of a file, whole and damaged ones.

use crate::trg::frame::{HEADER, MAX_RAW, u16_at, u32_at};
use crate::trg::{Damage, Kind, Loss};

/// A frame whose checksum holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawFrame<'a> {
    /// The byte of the file at which its header starts.
    pub offset: u64,
    /// The number of its kind; see [`Kind`].
    pub kind: u16,
    /// The version of its layout.
    pub version: u16,
    /// The length of its payload, decompressed.
    pub raw_length: u32,
    /// Its payload as stored; compressed when it is shorter than `raw_length`.
    pub stored: &'a [u8],
}

impl RawFrame<'_> {
    /// A loss of the whole frame.
    pub(crate) fn loss(&self, damage: Damage) -> Loss {
        let length = (HEADER + self.stored.len()) as u64;
        Loss { offset: self.offset, length, kind: Some(self.kind), damage }
    }
}

/// The frames of a file in order, and in their places what is damaged.
///
/// After a damaged frame the scan goes on where the next whole one starts, be it where the
/// damaged one says or, if its length is damaged too, wherever one is found.
#[derive(Debug)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many more bytes may be looked at in search of a frame, so that no input takes
    /// quadratic time.
    patience: usize,
}

impl<'a> Frames<'a> {
    /// The frames of a file whose header was found to be good.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: HEADER, patience: bytes.len().saturating_mul(4) }
    }

    fn frame_at(&self, at: usize) -> Result<RawFrame<'a>, Loss> {
        let rest = &self.bytes[at..];
        let loss = |kind, damage| Loss { offset: at as u64, length: rest.len() as u64, kind, damage };
        let cut = |kind, needs: usize| {
            loss(kind, Damage::CutShort { needs: needs as u64, left: rest.len() as u64 })
        };
        let header = rest.get(..HEADER).ok_or_else(|| cut(None, HEADER))?;
        let (kind, raw_length, stored) = (u16_at(header, 0), u32_at(header, 4), u32_at(header, 8));
        let length = raw_length.max(stored);
        if length as usize > MAX_RAW {
            return Err(loss(Some(kind), Damage::TooLarge { length }));
        }
        let end = HEADER + stored as usize;
        let stored = rest.get(HEADER..end).ok_or_else(|| cut(Some(kind), end))?;
        if u32_at(header, 12) != checksum(&header[..12], stored) {
            return Err(Loss { length: end as u64, ..loss(Some(kind), Damage::Checksum) });
        }
        Ok(RawFrame { offset: at as u64, kind, version: u16_at(header, 2), raw_length, stored })
    }

    /// Where the next whole frame starts after a damaged one at `self.at`, or the end.
    fn resume(&mut self, damaged: &Loss) -> usize {
        let end = self.bytes.len();
        let after = self.at + damaged.length as usize;
        if after < end && self.frame_at(after).is_ok() {
            return after;
        }
        for at in self.at + 1..end.saturating_sub(HEADER) {
            let likely = Kind::from_number(u16_at(self.bytes, at)).is_some()
                && u32_at(self.bytes, at + 8) <= u32_at(self.bytes, at + 4);
            let cost = if likely { HEADER + u32_at(self.bytes, at + 8) as usize } else { 1 };
            let Some(patience) = self.patience.checked_sub(cost.min(end - at)) else { return end };
            self.patience = patience;
            if likely && self.frame_at(at).is_ok() {
                return at;
            }
        }
        end
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<RawFrame<'a>, Loss>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let found = self.frame_at(self.at);
        let start = self.at;
        self.at = match &found {
            Ok(frame) => start + HEADER + frame.stored.len(),
            Err(loss) => self.resume(loss),
        };
        Some(found.map_err(|loss| Loss { length: (self.at - start) as u64, ..loss }))
    }
}

/// The checksum of a frame: CRC-32C over the first twelve bytes of its header and its payload
/// as stored.
pub(crate) fn checksum(header: &[u8], stored: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), stored)
}

/// Decompresses payloads into a buffer that is used again.
pub(crate) struct Unpacker {
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
    buffer: Vec<u8>,
}

impl Unpacker {
    pub(crate) fn new() -> Self {
        Self { decompressor: zstd::bulk::Decompressor::new().ok(), buffer: Vec::new() }
    }

    /// The payload of a frame.
    pub(crate) fn unpack<'b>(&'b mut self, frame: &RawFrame<'b>) -> Result<&'b [u8], Damage> {
        let length = frame.raw_length as usize;
        if frame.stored.len() == length {
            return Ok(frame.stored);
        }
        self.buffer.clear();
        self.buffer.reserve(length);
        let decompressor = self.decompressor.as_mut().ok_or(Damage::Compression)?;
        match decompressor.decompress_to_buffer(frame.stored, &mut self.buffer) {
            Ok(written) if written == length => Ok(&self.buffer),
            _ => Err(Damage::Compression),
        }
    }
}
