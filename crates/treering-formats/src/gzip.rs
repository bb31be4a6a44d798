//! Decompression with a limit.

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;

/// The first bytes of gzip data.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Why gzip data could not be decompressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GzipError {
    /// It is damaged or cut short.
    #[error("the gzip stream is damaged or cut short: {0}")]
    Damaged(String),
    /// It decompresses to more than is read.
    #[error("it decompresses to over {limit} bytes, far more than a profile of its size")]
    TooLarge {
        /// How many bytes a file of its size may decompress to.
        limit: u64,
    },
}

/// The bytes, decompressed if they are gzip data.
///
/// Profiles repeat themselves: 300 times the file was met. What they may decompress to is 128 MiB
/// and 100 times the file, which a file below 124 KiB cannot exceed: gzip packs at most 1,032 bytes
/// in one. What that may become in memory is limited apart.
pub(crate) fn unzip(bytes: &[u8]) -> Result<Cow<'_, [u8]>, GzipError> {
    if !bytes.starts_with(&GZIP) {
        return Ok(Cow::Borrowed(bytes));
    }
    let limit = (128 << 20) + (bytes.len() as u64).saturating_mul(100);
    let mut unzipped = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(limit + 1).read_to_end(&mut unzipped);
    read.map_err(|error| GzipError::Damaged(error.to_string()))?;
    if unzipped.len() as u64 > limit {
        return Err(GzipError::TooLarge { limit });
    }
    Ok(Cow::Owned(unzipped))
}

/// The first bytes of what gzip data holds, as far as they can be read.
pub(crate) fn begins(bytes: &[u8]) -> Vec<u8> {
    const LENGTH: u64 = 4 << 20;
    let mut start = Vec::new();
    // An error only means that there is less to look at.
    let _ = MultiGzDecoder::new(bytes).take(LENGTH).read_to_end(&mut start);
    start
}

/// The comment in the header of gzip data.
pub(crate) fn comment(bytes: &[u8]) -> Option<Vec<u8>> {
    let decoder = flate2::read::GzDecoder::new(bytes);
    decoder.header()?.comment().map(<[u8]>::to_vec)
}
