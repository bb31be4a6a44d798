//! Writes frames, one after the other, and remembers where they are.

use std::io::Write;

use crate::trg::content::VERSION;
use crate::trg::frame::{HEADER, MAX_RAW, header};
use crate::trg::scan::checksum;
use crate::trg::{Kind, WriteError};

/// How hard zstd tries. Level 3 would take half as long again for files that are 1 to 3 % shorter.
const LEVEL: i32 = 1;

/// Payloads below this are stored as they are: the compressed form would not be shorter by much.
const WORTH_PACKING: usize = 64;

/// Where frames go.
pub(crate) struct Output<W> {
    writer: W,
    offset: u64,
    frames: Vec<(u16, u64)>,
    compressor: zstd::bulk::Compressor<'static>,
    /// One frame with its header, so that it is written at once.
    frame: Vec<u8>,
    packed: Vec<u8>,
}

impl<W: Write> Output<W> {
    /// Starts a file.
    pub(crate) fn new(mut writer: W) -> Result<Self, WriteError> {
        writer.write_all(&header())?;
        let compressor = zstd::bulk::Compressor::new(LEVEL)?;
        let (frames, frame, packed) = Default::default();
        Ok(Self { writer, offset: HEADER as u64, frames, compressor, frame, packed })
    }

    /// Every frame so far: the number of its kind and where it starts.
    pub(crate) fn frames(&self) -> &[(u16, u64)] {
        &self.frames
    }

    /// How many bytes there are so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes a frame of this payload would take.
    pub(crate) fn packed_length(&mut self, payload: &[u8]) -> Result<usize, WriteError> {
        self.pack(payload)?;
        Ok(HEADER + self.packed.len().min(payload.len()))
    }

    /// Writes one frame, compressed where that makes it shorter. END is never compressed.
    pub(crate) fn frame(&mut self, kind: Kind, payload: &[u8]) -> Result<(), WriteError> {
        if payload.len() > MAX_RAW {
            return Err(WriteError::TooLarge { length: payload.len() });
        }
        let packed = payload.len() >= WORTH_PACKING && kind != Kind::End && self.pack(payload)?;
        let stored = if packed { &self.packed } else { payload };
        self.frame.clear();
        self.frame.extend_from_slice(&(kind as u16).to_le_bytes());
        self.frame.extend_from_slice(&VERSION.to_le_bytes());
        self.frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.frame.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        let checksum = checksum(&self.frame, stored);
        self.frame.extend_from_slice(&checksum.to_le_bytes());
        self.frame.extend_from_slice(stored);
        self.writer.write_all(&self.frame)?;
        self.frames.push((kind as u16, self.offset));
        self.offset += self.frame.len() as u64;
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        Ok(self.writer.flush()?)
    }

    /// Compresses into `self.packed`; whether that is shorter.
    fn pack(&mut self, payload: &[u8]) -> Result<bool, WriteError> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(payload.len()));
        self.compressor.compress_to_buffer(payload, &mut self.packed)?;
        Ok(self.packed.len() < payload.len())
    }
}
