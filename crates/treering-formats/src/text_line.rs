//! The lines of a text file, each with its place.

use crate::label::without_mark;
use crate::{Problem, ReadError};

/// A line of a text file, without the byte that ends it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextLine<'a> {
    pub(crate) bytes: &'a [u8],
    /// From 1.
    pub(crate) number: u64,
    /// The byte of the file at which it starts.
    pub(crate) offset: u64,
}

impl TextLine<'_> {
    /// A problem with this line.
    pub(crate) fn error(&self, problem: impl Into<Problem>) -> ReadError {
        ReadError::at_line(self.number, self.offset, problem)
    }
}

/// All lines of a file. A mark of UTF-8 before the first one is passed over; behind the last line end there is an empty
/// line.
pub(crate) fn text_lines(bytes: &[u8]) -> impl Iterator<Item = TextLine<'_>> {
    let text = without_mark(bytes);
    let mut offset = (bytes.len() - text.len()) as u64;
    text.split(|&byte| byte == b'\n').zip(1..).map(move |(bytes, number)| {
        let line = TextLine { bytes, number, offset };
        offset += bytes.len() as u64 + 1;
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_from_1_and_the_bytes_at_which_they_start() {
        let lines =
            |bytes| text_lines(bytes).map(|line| (line.bytes, line.number, line.offset)).collect::<Vec<_>>();
        assert_eq!(lines(b"ab\n\nc"), [(&b"ab"[..], 1, 0), (b"", 2, 3), (b"c", 3, 4)]);
        assert_eq!(lines(b"\xef\xbb\xbfa\n"), [(&b"a"[..], 1, 3), (b"", 2, 5)]);
    }
}
