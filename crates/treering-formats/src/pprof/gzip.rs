//! Decompression with a limit.

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;

use crate::pprof::ReadError;

/// The first bytes of gzip data.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes, decompressed if they are gzip data.
///
/// Protobuf messages can take 36 times their length in memory, so what a small file may
/// decompress to is limited: 16 MiB and 40 times its length.
pub(crate) fn unzip(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ReadError> {
    if !bytes.starts_with(&GZIP) {
        return Ok(Cow::Borrowed(bytes));
    }
    let limit = (16 << 20) + (bytes.len() as u64).saturating_mul(40);
    let mut unzipped = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(limit + 1).read_to_end(&mut unzipped);
    read.map_err(|error| ReadError::Gzip(error.to_string()))?;
    if unzipped.len() as u64 > limit {
        return Err(ReadError::TooLarge { limit });
    }
    Ok(Cow::Owned(unzipped))
}

/// The first bytes of what gzip data holds, as far as they can be read.
pub(crate) fn begins(bytes: &[u8]) -> Vec<u8> {
    const LENGTH: u64 = 4096;
    let mut start = Vec::new();
    // An error only means that there is less to look at.
    let _ = MultiGzDecoder::new(bytes).take(LENGTH).read_to_end(&mut start);
    start
}
