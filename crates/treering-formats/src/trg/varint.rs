//! Numbers as variable-length integers, and columns of them.
//!
//! A varint holds seven bits a byte, the lowest first; the top bit says that another byte
//! follows (LEB128). It takes at most ten bytes.

use crate::trg::Damage;

/// Writes the payload of a frame.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    #[inline]
    pub(crate) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(crate) fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Raw bytes, without their length.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes with their length before them.
    pub(crate) fn block(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Numbers one after the other.
    pub(crate) fn column(&mut self, values: impl Iterator<Item = u64>) {
        self.bytes.reserve(values.size_hint().0 * 2);
        for value in values {
            self.number(value);
        }
    }

    /// A binary64 number, eight bytes, the lowest first.
    pub(crate) fn float(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    /// The differences of neighbouring numbers, the first one from 0, with the sign in the
    /// lowest bit. Wraps, so every number can follow every other.
    pub(crate) fn delta_column(&mut self, values: impl Iterator<Item = u64>) {
        let mut last = 0_u64;
        self.column(values.map(|value| {
            let delta = value.wrapping_sub(std::mem::replace(&mut last, value)) as i64;
            ((delta << 1) ^ (delta >> 63)) as u64
        }));
    }
}

/// Reads the payload of a frame; every length is checked against what is left.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    room: u64,
    allocated: u64,
}

/// The bytes that an allocator takes beside those of a small block.
const ALLOCATION: usize = 24;

pub(crate) const CUT_SHORT: Damage = Damage::Content("its content ends too early");

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::within(bytes, u64::MAX)
    }

    /// A reader that takes at most so many bytes of memory for what it makes of the payload.
    pub(crate) fn within(bytes: &'a [u8], room: u64) -> Self {
        Self { bytes, at: 0, room, allocated: 0 }
    }

    /// How many bytes of memory the entries take that were announced by [`rows`](Self::rows) and
    /// [`boxed`](Self::boxed).
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated
    }

    fn take_room(&mut self, bytes: usize) -> Result<u64, Damage> {
        self.room = self.room.checked_sub(bytes as u64).ok_or(Damage::TooMuch)?;
        Ok(bytes as u64)
    }

    /// Before `count` entries of a table are made.
    pub(crate) fn rows<T>(&mut self, count: usize) -> Result<(), Damage> {
        self.allocated += self.take_room(count.saturating_mul(size_of::<T>()))?;
        Ok(())
    }

    /// Before `count` entries are made that are gone when the payload is decoded.
    pub(crate) fn scratch<T>(&mut self, count: usize) -> Result<(), Damage> {
        self.take_room(count.saturating_mul(size_of::<T>())).map(drop)
    }

    /// Before an entry gets so many bytes of its own on the heap.
    pub(crate) fn boxed(&mut self, bytes: usize) -> Result<(), Damage> {
        if bytes > 0 {
            self.allocated += self.take_room(bytes.saturating_add(ALLOCATION))?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, Damage> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_number(),
        }
    }

    #[inline]
    fn long_number(&mut self) -> Result<u64, Damage> {
        let Some(eight) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) else {
            return self.any_number();
        };
        let eight = u64::from_le_bytes(*eight);
        let last = (!eight & TOP_BITS).trailing_zeros();
        if last >= 64 {
            return self.any_number();
        }
        self.at += last as usize / 8 + 1;
        Ok(join_sevens(eight & (u64::MAX >> (63 - last))))
    }

    /// Byte by byte, for numbers over 56 bits and those near the end.
    #[cold]
    fn any_number(&mut self) -> Result<u64, Damage> {
        let mut value = 0_u64;
        let rest = &self.bytes[self.at..];
        for (place, &byte) in rest.iter().take(10).enumerate() {
            if place == 9 && byte > 1 {
                return Err(Damage::Content("a number is over 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                self.at += place + 1;
                return Ok(value);
            }
        }
        Err(CUT_SHORT)
    }

    /// A number that must fit 32 bits.
    #[inline]
    pub(crate) fn number32(&mut self) -> Result<u32, Damage> {
        narrow(self.number()?)
    }

    /// How many entries follow, each of which takes at least one byte of what is left.
    pub(crate) fn count(&mut self) -> Result<usize, Damage> {
        let count = self.number()?;
        let left = self.bytes.len() - self.at;
        usize::try_from(count).ok().filter(|&count| count <= left).ok_or(CUT_SHORT)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Damage> {
        let byte = *self.bytes.get(self.at).ok_or(CUT_SHORT)?;
        self.at += 1;
        Ok(byte)
    }

    /// The next `length` bytes.
    pub(crate) fn raw(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let end = self.at.checked_add(length).ok_or(CUT_SHORT)?;
        let bytes = self.bytes.get(self.at..end).ok_or(CUT_SHORT)?;
        self.at = end;
        Ok(bytes)
    }

    /// Bytes with their length before them, which become an entry's own.
    pub(crate) fn block(&mut self) -> Result<&'a [u8], Damage> {
        let length = self.count()?;
        self.boxed(length)?;
        self.raw(length)
    }

    /// `count` numbers, each turned into an entry by `entry`.
    #[inline]
    pub(crate) fn column<T>(
        &mut self,
        count: usize,
        mut entry: impl FnMut(u64) -> Result<T, Damage>,
    ) -> Result<Vec<T>, Damage> {
        if count > self.bytes.len() - self.at {
            return Err(CUT_SHORT);
        }
        self.take_room(count * size_of::<T>())?;
        let mut column = Vec::with_capacity(count);
        for _ in 0..count {
            column.push(entry(self.number()?)?);
        }
        Ok(column)
    }

    /// `count` numbers stored as differences, each turned into an entry by `entry`.
    #[inline]
    pub(crate) fn delta_column<T>(
        &mut self,
        count: usize,
        mut entry: impl FnMut(u64) -> Result<T, Damage>,
    ) -> Result<Vec<T>, Damage> {
        let mut last = 0_u64;
        self.column(count, |stored| {
            let delta = (stored >> 1) ^ (stored & 1).wrapping_neg();
            last = last.wrapping_add(delta);
            entry(last)
        })
    }

    /// `count` numbers of eight bytes each.
    pub(crate) fn floats(&mut self, count: usize) -> Result<Vec<f64>, Damage> {
        let bytes = self.raw(count.checked_mul(8).ok_or(CUT_SHORT)?)?;
        self.take_room(bytes.len())?;
        let (numbers, _) = bytes.as_chunks();
        Ok(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }

    /// Says that all was read; bytes left over mean that writer and reader disagree.
    pub(crate) fn end(self) -> Result<(), Damage> {
        let done = self.at == self.bytes.len();
        done.then_some(()).ok_or(Damage::Content("its content is followed by stray bytes"))
    }
}

const TOP_BITS: u64 = 0x8080_8080_8080_8080;

/// Moves the low seven bits of each byte together, in pairs, then pairs of pairs.
#[inline]
fn join_sevens(bytes: u64) -> u64 {
    let sevens = bytes & !TOP_BITS;
    let pairs = (sevens & 0x007f_007f_007f_007f) | ((sevens & 0x7f00_7f00_7f00_7f00) >> 1);
    let fours = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
    (fours & 0x0fff_ffff) | ((fours & 0x0fff_ffff_0000_0000) >> 4)
}

/// The number in 32 bits.
#[inline]
pub(crate) fn narrow(value: u64) -> Result<u32, Damage> {
    u32::try_from(value).map_err(|_| Damage::Content("an index is over 32 bits"))
}

pub(crate) fn text(bytes: &[u8]) -> Result<&str, Damage> {
    std::str::from_utf8(bytes).map_err(|_| Damage::Content("a text is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_read_back() {
        let powers = (0..64).map(|bit| 1_u64 << bit);
        let edges: Vec<_> = powers.flat_map(|power| [power - 1, power, power + power / 3]).collect();
        let edges: Vec<_> = edges.into_iter().chain([u64::MAX - 1, u64::MAX]).collect();
        let mut encoder = Encoder::default();
        encoder.column(edges.iter().copied());
        encoder.delta_column(edges.iter().copied());
        let mut decoder = Decoder::new(encoder.bytes());
        assert_eq!(decoder.column(edges.len(), Ok), Ok(edges.clone()));
        assert_eq!(decoder.delta_column(edges.len(), Ok), Ok(edges));
        assert_eq!(decoder.end(), Ok(()));
    }

    #[test]
    fn a_number_over_64_bits_is_refused() {
        let mut bytes = [0xff; 10];
        bytes[9] = 2;
        assert!(Decoder::new(&bytes).number().is_err());
        bytes[9] = 1;
        assert_eq!(Decoder::new(&bytes).number(), Ok(u64::MAX));
    }

    #[test]
    fn values_made_of_a_payload_stay_within_their_room() {
        let column = |room| Decoder::within(&[0; 10], room).column(10, Ok);
        assert_eq!(column(80), Ok(vec![0; 10]));
        assert_eq!(column(79), Err(Damage::TooMuch));
        let mut decoder = Decoder::within(&[], 100);
        assert_eq!((decoder.rows::<u64>(5), decoder.boxed(0), decoder.allocated()), (Ok(()), Ok(()), 40));
        assert_eq!((decoder.boxed(36), decoder.allocated()), (Ok(()), 100));
        assert_eq!(decoder.boxed(1), Err(Damage::TooMuch));
    }

    #[test]
    fn a_count_larger_than_the_rest_is_refused() {
        assert_eq!(Decoder::new(&[3, 0, 0]).count(), Err(CUT_SHORT));
        assert_eq!(Decoder::new(&[2, 0, 0]).count(), Ok(2));
    }
}
