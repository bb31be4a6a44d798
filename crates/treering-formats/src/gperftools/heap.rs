//! Heap profiles: a heading, a line for each stack, and what was mapped.
//!
//! ```text
//! heap profile:   2:   96 [   3:  128] @ heap_v2/524288
//!    1:   48 [   2:   64] @ 0x0000000000401010 0x0000000000401020
//! MAPPED_LIBRARIES:
//! ```
//! The numbers are objects and bytes that are in use, and in brackets those that were allocated at all.

use crate::text_line::text_lines;
use crate::{Problem, ReadError};

/// Objects and bytes.
pub(super) type Amount = (u64, u64);

/// The contents of a heap profile.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Heap<'a> {
    /// The bytes per sampled allocation, on average; nothing if all allocations were counted.
    pub(super) rate: Option<u64>,
    /// Whether the numbers are of growth of the heap rather than of allocations.
    pub(super) is_growth: bool,
    /// In use, allocated, and the addresses that calls return to, the innermost first.
    pub(super) stacks: Vec<(Amount, Amount, Vec<u64>)>,
    /// The text behind the stacks.
    pub(super) maps: &'a [u8],
}

/// The start of heap profiles.
pub(super) const HEADING: &str = "heap profile:";

/// Reads a file, which begins with the heading.
pub(super) fn parse(bytes: &[u8]) -> Result<Heap<'_>, ReadError> {
    let mut heap = Heap::default();
    for line in text_lines(bytes) {
        let text = String::from_utf8_lossy(line.bytes);
        let text = text.trim();
        if line.number == 1 {
            heap.begin(text).map_err(|problem| line.error(problem))?;
        } else if text == "MAPPED_LIBRARIES:" || text.starts_with("--- Memory map:") {
            let behind = line.offset as usize + line.bytes.len() + 1;
            heap.maps = bytes.get(behind..).unwrap_or_default();
            break;
        } else if !text.is_empty() && !text.starts_with('#') {
            heap.stacks.push(stack(text).map_err(|problem| line.error(problem))?);
        }
    }
    Ok(heap)
}

impl Heap<'_> {
    fn begin(&mut self, heading: &str) -> Result<(), Problem> {
        let (_, kind) = heading.split_once('@').ok_or(HEADING_WITH_KIND)?;
        let kind = kind.trim();
        let (name, rate) = kind.split_once('/').unwrap_or((kind, ""));
        let rate = match rate {
            "" => 1,
            digits => digits.parse::<u64>().map_err(|_| unknown(kind))?,
        };
        let rate = match name {
            "heap_v2" | "heapz_v2" => rate,
            // Go writes twice the number of bytes.
            "heap" => rate / 2,
            "heapprofile" => 1,
            "growth" | "growthz" => {
                self.is_growth = true;
                1
            }
            _ => return Err(unknown(kind)),
        };
        self.rate = (rate > 1).then_some(rate);
        Ok(())
    }

    /// How much there was, of which this was sampled.
    ///
    /// An allocation of `size` bytes is sampled with the probability 1 - exp(-size / rate).
    pub(super) fn estimate(&self, (objects, bytes): Amount) -> (f64, f64) {
        let counted = (objects as f64, bytes as f64);
        let Some(rate) = self.rate.filter(|_| objects > 0 && bytes > 0) else { return counted };
        let seen = -(-(counted.1 / counted.0) / rate as f64).exp_m1();
        (counted.0 / seen, counted.1 / seen)
    }
}

const HEADING_WITH_KIND: Problem =
    Problem::Expected("a heading such as `heap profile: 1: 24 [2: 48] @ heap_v2/524288`");

const STACK: Problem = Problem::Expected("a stack, as `1: 24 [2: 48] @ 0x401010`, or a known heading");

fn unknown(kind: &str) -> Problem {
    Problem::unsupported(format!("heap profiles of the kind `{kind}` are not known"))
}

/// `1: 48 [2: 64] @ 0x401010 0x401020`.
fn stack(text: &str) -> Result<(Amount, Amount, Vec<u64>), Problem> {
    let (numbers, addresses) = text.split_once('@').ok_or(STACK)?;
    let (in_use, allocated) = numbers.split_once('[').ok_or(STACK)?;
    let allocated = allocated.trim_end().strip_suffix(']').ok_or(STACK)?;
    let amount = |text: &str| -> Result<Amount, Problem> {
        let (objects, bytes) = text.split_once(':').ok_or(STACK)?;
        Ok((number(objects)?, number(bytes)?))
    };
    let address = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        u64::from_str_radix(digits, 16).map_err(|_| STACK)
    };
    let addresses = addresses.split_whitespace().map(address).collect::<Result<_, _>>()?;
    Ok((amount(in_use)?, amount(allocated)?, addresses))
}

/// A number; what is below 0 cannot be a cost and was a race of the profiler.
fn number(text: &str) -> Result<u64, Problem> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        true => text.parse().map_err(|_| Problem::Expected("a number below 2^64")),
        false => Err(STACK),
    }
}
