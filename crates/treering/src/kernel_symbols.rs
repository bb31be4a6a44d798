//! The kernel's list of its symbols, kept from one recording to the next.
//!
//! Reading all of `/proc/kallsyms` takes the kernel some 50 ms of processor time, which is more
//! than all else that happens after most recordings. Its own text stays the same until the next
//! boot, so that part is kept in the user's cache directory, under the identifier of the boot.
//! Loadable modules, which come and go, are always read anew.

use std::fs;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use treering_temporary::private;

use crate::cache;

/// The lines of the kernel's list that tell the functions at `addresses`, at least; nothing when
/// the list cannot be read.
pub fn kernel_symbols(addresses: &[u64]) -> Option<String> {
    let kept = kept_path();
    if let Some(lines) = kept.as_deref().and_then(|path| lines_for(&read_kept(path)?, addresses)) {
        return Some(lines);
    }
    let list = fs::read_to_string("/proc/kallsyms").ok()?;
    if let (Some(path), Some(own)) = (kept, own_text(&list)) {
        // A list that cannot be kept is read again next time.
        let _ = keep(&path, &own);
    }
    Some(list)
}

/// The start of the names of kept lists; the identifier of the boot follows.
const NAME: &str = "kernel-symbols-";

/// Where the list of this boot is or would be kept.
fn kept_path() -> Option<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(cache::directory()?.join(format!("{NAME}{}", boot.trim())))
}

/// A list that this user kept; the cache may be where others can write.
fn read_kept(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    private::open(path, LARGEST)?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Kernels have some ten megabytes of symbols.
const LARGEST: u64 = 256 << 20;

/// Writes a list that only this user can read: where the kernel's code lies is a secret. Lists of
/// former boots are removed.
fn keep(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    private::create_folder(directory)?;
    for entry in fs::read_dir(directory)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(NAME) {
            let _ = fs::remove_file(entry.path());
        }
    }
    private::write(path, text.as_bytes(), 0o600)
}

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

/// The lines of a kept list that the addresses belong to; nothing when one of them lies outside
/// of the kernel's own text, or the list is not whole.
fn lines_for(kept: &[u8], addresses: &[u64]) -> Option<String> {
    let kept = std::str::from_utf8(kept).ok()?;
    let last = kept.strip_suffix(" T _etext\n").and_then(|rest| rest.rsplit('\n').next())?;
    let own = address(kept)?..u64::from_str_radix(last, 16).ok()?;
    let mut lines = String::new();
    for &wanted in addresses {
        let line = own.contains(&wanted).then(|| line_of(kept, wanted))??;
        if !lines.ends_with(&kept[line.clone()]) {
            lines.push_str(&kept[line]);
        }
    }
    Some(lines)
}

/// The first of the lines with the last address that is not above `wanted`, its end included.
fn line_of(sorted: &str, wanted: u64) -> Option<Range<usize>> {
    let start_of = |at: usize| sorted[..at].rfind('\n').map_or(0, |end| end + 1);
    let first_that = |is_past: &dyn Fn(u64) -> bool| {
        let (mut low, mut high) = (0, sorted.len());
        while low < high {
            let line = start_of(low + (high - low) / 2);
            if is_past(address(&sorted[line..])?) {
                high = line;
            } else {
                low = line + sorted[line..].find('\n')? + 1;
            }
        }
        Some(low)
    };
    let behind = first_that(&|start| start > wanted)?;
    let found = address(&sorted[start_of(behind.checked_sub(1)?)..])?;
    let first = first_that(&|start| start >= found)?;
    Some(first..first + sorted[first..].find('\n')? + 1)
}

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
