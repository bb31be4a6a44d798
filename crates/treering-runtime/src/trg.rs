//! Writes frames of a `.trg` file, uncompressed. The layout is described in `docs/formats/trg.md`.

use treering_events::crc32c;

/// The kinds of frames that are written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    Meta = 1,
    Strings = 2,
    Modules = 3,
    Functions = 4,
    Lines = 5,
    Processes = 6,
    Threads = 7,
    Nodes = 8,
    Costs = 9,
    Calls = 10,
    LineCosts = 11,
    Statistics = 14,
    Ports = 15,
    Sizes = 16,
    Points = 17,
    Memory = 18,
    Timeline = 29,
    TimeCosts = 30,
    Lives = 32,
    Marks = 33,
    End = 0xffff,
}

/// A file that grows frame by frame.
#[derive(Debug)]
pub(crate) struct TrgFile {
    bytes: Vec<u8>,
    frames: Vec<(u16, u64)>,
}

impl TrgFile {
    /// How many bytes there are so far.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn new() -> Self {
        let mut bytes = b"\x89trg\r\n\x1a\n".to_vec();
        // Version 1.0, no flags.
        bytes.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
        Self { bytes, frames: Vec::new() }
    }

    pub(crate) fn frame(&mut self, kind: Kind, payload: &Payload) {
        const VERSION: u16 = 1;
        let start = self.bytes.len();
        self.frames.push((kind as u16, start as u64));
        let length = payload.0.len() as u32;
        self.bytes.extend_from_slice(&(kind as u16).to_le_bytes());
        self.bytes.extend_from_slice(&VERSION.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        let checksum = crc32c(crc32c(0, &self.bytes[start..]), &payload.0);
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        self.bytes.extend_from_slice(&payload.0);
    }

    /// Writes the END frame and returns the file. `totals` are the counts and run costs that END
    /// begins with.
    pub(crate) fn end(mut self, totals: Payload) -> Vec<u8> {
        const FRAME_HEADER: usize = 16;
        let mut payload = totals;
        payload.number(self.frames.len() as u64);
        self.frames.iter().for_each(|(kind, _)| payload.number(u64::from(*kind)));
        payload.differences(self.frames.iter().map(|(_, start)| *start));
        let length = FRAME_HEADER + payload.0.len() + 8;
        payload.0.extend_from_slice(&(length as u32).to_le_bytes());
        payload.0.extend_from_slice(b"trg.");
        self.frame(Kind::End, &payload);
        self.bytes
    }
}

/// The content of a frame.
#[derive(Debug, Default)]
pub(crate) struct Payload(pub(crate) Vec<u8>);

impl Payload {
    /// Seven bits a byte, the lowest first.
    pub(crate) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn numbers(&mut self, values: impl Iterator<Item = u64>) {
        values.for_each(|value| self.number(value));
    }

    /// Differences of neighbouring numbers, the sign in the lowest bit.
    pub(crate) fn differences(&mut self, values: impl Iterator<Item = u64>) {
        let mut last = 0_u64;
        for value in values {
            let difference = value.wrapping_sub(last) as i64;
            self.number(((difference << 1) ^ (difference >> 63)) as u64);
            last = value;
        }
    }

    pub(crate) fn floats(&mut self, values: impl Iterator<Item = f64>) {
        values.for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// Writes JSON, as much of it as META needs.
#[derive(Debug, Default)]
pub(crate) struct Json(pub(crate) String);

impl Json {
    /// A text in quotes.
    pub(crate) fn text(&mut self, text: &str) {
        self.0.push('"');
        for character in text.chars() {
            match character {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                control if control < ' ' => self.0.push_str(&format!("\\u{:04x}", control as u32)),
                other => self.0.push(other),
            }
        }
        self.0.push('"');
    }

    /// A list between brackets.
    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.0.push('[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.0.push(',');
            }
            write(self, item);
        }
        self.0.push(']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        let mut json = Json::default();
        json.text("a\"b\\c\n\u{1}ä");
        assert_eq!(json.0, "\"a\\\"b\\\\c\\u000a\\u0001ä\"");
    }
}
