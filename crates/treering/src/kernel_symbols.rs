//! The kernel's list of its symbols, kept from one recording to the next.
//!
//! Reading all of `/proc/kallsyms` takes the kernel some 50 ms of processor time, which is more
//! than all else that happens after most recordings. Its own text stays the same until the next
//! boot, so that part is kept in the user's cache directory, under the identifier of the boot.
//! Loadable modules, which come and go, are always read anew.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use treering_cache::Cache;

use crate::cache;

/// The lines of the kernel's list that tell the functions at `addresses`, at least; nothing when
/// the list cannot be read.
pub fn kernel_symbols(addresses: &[u64]) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let name = boot.map(|boot| boot.trim().to_owned());
    let place = cache::folder("kernel").zip(name);
    if let Some(lines) = place.as_ref().and_then(|(cache, name)| kept_lines(cache, name, addresses)) {
        return Some(lines);
    }
    let list = fs::read_to_string("/proc/kallsyms").ok()?;
    if let (Some((cache, name)), Some(own)) = (place, own_text(&list)) {
        // A list that cannot be kept is read again next time. Lists of former boots are removed. Only this user can
        // read the list: where the kernel's code lies is a secret.
        let _ =
            cache.shrink(0).and_then(|()| cache.keep(&name, 0o600, |file| file.write_all(own.as_bytes())));
    }
    Some(list)
}

/// The lines of a list that this user kept.
fn kept_lines(cache: &Cache, name: &str, addresses: &[u64]) -> Option<String> {
    let file = cache.file(name, LARGEST).ok()?;
    let length = file.metadata().ok()?.len();
    let read = |at: u64, bytes: &mut [u8]| file.read_exact_at(bytes, at).is_ok();
    Blocks { read: &read, length, known: HashMap::new() }.lines_for(addresses)
}

/// Kernels have some ten megabytes of symbols.
const LARGEST: u64 = 256 << 20;

/// The symbols of the kernel's own text, sorted by address, from `_stext` to `_etext`; nothing
/// when the list does not tell where that is, as when addresses are hidden.
fn own_text(list: &str) -> Option<String> {
    let code = |line: &&str| matches!(line.split(' ').nth(1), Some("t" | "T" | "w" | "W"));
    let mut lines: Vec<(u64, &str)> =
        list.lines().filter(code).filter_map(|line| Some((address(line)?, line))).collect();
    lines.sort_by_key(|&(start, _)| start);
    let named = |name: &str| lines.iter().find(|(_, line)| line.ends_with(name)).map(|&(start, _)| start);
    let (first, end) = (named(" _stext")?, named(" _etext")?);
    if first == 0 || first >= end {
        return None;
    }
    let inside = lines.iter().filter(|(start, _)| (first..end).contains(start));
    let mut text: String = inside.flat_map(|(_, line)| [*line, "\n"]).collect();
    text.push_str(&format!("{end:016x} T _etext\n"));
    Some(text)
}

/// A kept list, of which only the blocks are read that the addresses lie in or that lead to them.
struct Blocks<'f> {
    read: &'f dyn Fn(u64, &mut [u8]) -> bool,
    length: u64,
    known: HashMap<u64, String>,
}

/// The lines that follow a line's end in these bytes of the list belong to one block.
const BLOCK: u64 = 4096;

/// The last line of a block may be that much longer.
const LONGEST_LINE: u64 = 1024;

impl Blocks<'_> {
    /// The lines of a kept list that the addresses belong to; nothing when one of them lies outside
    /// of the kernel's own text, or the list is not whole.
    fn lines_for(mut self, addresses: &[u64]) -> Option<String> {
        let count = self.length.div_ceil(BLOCK);
        let tail = self.length.checked_sub(LAST_LINE as u64)?;
        let last = self.text(tail, LAST_LINE as u64)?;
        let own = address(self.block(0)?)?..address(last.strip_suffix(" T _etext\n")?)?;
        let mut lines = String::new();
        for &wanted in addresses {
            if !own.contains(&wanted) {
                return None;
            }
            let block = self.last_block_before(wanted, count)?;
            // Of several symbols at one address the first counts, which may be in the block before.
            let before = if block > 0 { self.block(block - 1)?.to_owned() } else { String::new() };
            let around = before + self.block(block)?;
            let starts = || around.lines().map_while(|line| Some((address(line)?, line)));
            let (found, _) = starts().take_while(|(start, _)| *start <= wanted).last()?;
            let (_, line) = starts().find(|(start, _)| *start == found)?;
            if lines.lines().next_back() != Some(line) {
                lines.push_str(line);
                lines.push('\n');
            }
        }
        Some(lines)
    }

    /// The last of the blocks whose first line's address is not above `wanted`.
    fn last_block_before(&mut self, wanted: u64, count: u64) -> Option<u64> {
        let (mut low, mut high) = (0, count);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            // The last block may hold the end of a line only.
            let is_behind = match self.block(middle)? {
                "" => true,
                text => address(text)? > wanted,
            };
            if is_behind {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(low)
    }

    fn block(&mut self, number: u64) -> Option<&str> {
        if !self.known.contains_key(&number) {
            let at = number * BLOCK;
            let text = self.text(at, (BLOCK + LONGEST_LINE).min(self.length.checked_sub(at)?))?;
            let first = if number == 0 { 0 } else { text.find('\n')? + 1 };
            let own_end = (BLOCK as usize).min(text.len());
            // The line that begins in these bytes last ends behind them.
            let last = text[..own_end].rfind('\n')? + 1;
            let end = text[last..].find('\n').map_or(last, |end| last + end + 1);
            self.known.insert(number, text.get(first..end).unwrap_or_default().to_owned());
        }
        self.known.get(&number).map(String::as_str)
    }

    fn text(&self, at: u64, length: u64) -> Option<String> {
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        let is_read = (self.read)(at, &mut bytes) && bytes.is_ascii();
        is_read.then(|| String::from_utf8(bytes).ok())?
    }
}

/// How long the line is that ends a list.
const LAST_LINE: usize = "ffffffff82000000 T _etext\n".len();

/// The address that a line begins with.
fn address(line: &str) -> Option<u64> {
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000200 t second_by_address
ffffffff81000100 T first_by_address
ffffffff81000180 d data
ffffffff82000000 T _etext
ffffffff83000000 t behind
ffffffffc0000000 t nf_hook\t[nf_tables]
";

    fn found(addresses: &[u64]) -> Option<String> {
        lines_for(own_text(LIST).expect("the list tells its text").as_bytes(), addresses)
    }

    fn lines_for(kept: &[u8], addresses: &[u64]) -> Option<String> {
        let read = |at: u64, bytes: &mut [u8]| {
            let found = kept.get(at as usize..at as usize + bytes.len());
            found.inspect(|found| bytes.copy_from_slice(found)).is_some()
        };
        Blocks { read: &read, length: kept.len() as u64, known: HashMap::new() }.lines_for(addresses)
    }

    #[test]
    fn an_address_brings_the_line_of_its_function() {
        let lines = found(&[0xffff_ffff_8100_0050, 0xffff_ffff_8100_01ff, 0xffff_ffff_81ff_ffff]);
        let expected = "ffffffff81000000 T _stext\nffffffff81000100 T first_by_address\n\
                        ffffffff81000200 t second_by_address\n";
        assert_eq!(lines.as_deref(), Some(expected));
    }

    #[test]
    fn an_address_outside_of_the_kernels_own_text_needs_the_whole_list() {
        for outside in [0x1000, 0xffff_ffff_80ff_ffff, 0xffff_ffff_8200_0000, 0xffff_ffff_c000_0004] {
            assert_eq!(found(&[0xffff_ffff_8100_0050, outside]), None, "{outside:x}");
        }
    }

    #[test]
    fn a_few_addresses_need_a_few_blocks_of_a_long_list() {
        let line = |at: u64| format!("{:016x} t function_{at}\n", 0xffff_ffff_8100_0000 + at * 16);
        let lines: String = (0..100_000).map(line).collect();
        let list = format!("{lines}{:016x} T _etext\n", 0xffff_ffff_8100_0000_u64 + 100_000 * 16);
        let reads = std::cell::Cell::new(0);
        let read = |at: u64, bytes: &mut [u8]| {
            reads.set(reads.get() + 1);
            bytes.copy_from_slice(&list.as_bytes()[at as usize..at as usize + bytes.len()]);
            true
        };
        let blocks = Blocks { read: &read, length: list.len() as u64, known: HashMap::new() };
        let wanted = [7, 50_000, 99_999].map(|at| 0xffff_ffff_8100_0003 + at * 16);
        assert_eq!(
            blocks.lines_for(&wanted).expect("the list is whole"),
            [7, 50_000, 99_999].map(line).concat()
        );
        assert!(list.len() as u64 / BLOCK > 800 && reads.get() < 40, "{} reads", reads.get());
    }

    #[test]
    fn a_list_that_is_cut_short_is_not_used() {
        let own = own_text(LIST).expect("the list tells its text");
        for length in 0..own.len() {
            assert_eq!(lines_for(&own.as_bytes()[..length], &[0xffff_ffff_8100_0050]), None, "{length}");
        }
    }

    #[test]
    fn a_list_with_hidden_addresses_is_not_kept() {
        assert_eq!(own_text("0000000000000000 T _stext\n0000000000000000 T _etext\n"), None);
    }

    #[test]
    fn every_function_of_this_kernel_is_found_as_in_the_whole_list() {
        let Some(list) = fs::read_to_string("/proc/kallsyms").ok() else { return };
        let Some(own) = own_text(&list) else { return };
        let starts: Vec<u64> = own.lines().filter_map(address).collect();
        let inside = &starts[..starts.len() - 1];
        let whole = treering_symbols::KernelSymbols::parse(&list);
        for &start in inside.iter().step_by(997) {
            let lines = lines_for(own.as_bytes(), &[start]).expect("the address is in the text");
            let few = treering_symbols::KernelSymbols::parse(&lines);
            assert_eq!(few.lookup(start), whole.lookup(start), "{start:x}");
        }
    }
}
