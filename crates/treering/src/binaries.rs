//! The binaries of this machine, for files of other tools that hold addresses.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use treering_formats::{Binaries, Kernel};
use treering_profile::SegmentMap;
use treering_symbols::segment_map_of;

/// Binaries as they are on this machine now.
#[derive(Debug, Default)]
pub struct Here {
    segments: HashMap<(String, Vec<u8>), Option<SegmentMap>>,
}

impl Binaries for Here {
    fn segments(&mut self, path: &str, build_id: &[u8]) -> Option<SegmentMap> {
        let key = (path.to_owned(), build_id.to_vec());
        let read = || segment_map_of(Path::new(path), build_id).ok();
        self.segments.entry(key).or_insert_with(read).clone()
    }

    fn is_running_kernel(&mut self, kernel: &Kernel) -> bool {
        // Since a kernel lies elsewhere after each start, the place of a symbol tells one from another.
        let has_id = |notes: Vec<u8>| notes.windows(kernel.build_id.len()).any(|id| id == kernel.build_id);
        let same = kernel.build_id.is_empty() || fs::read("/sys/kernel/notes").is_ok_and(has_id);
        let symbols = || fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        same && kernel.address != 0 && lies_at(&symbols(), &kernel.symbol) == Some(kernel.address)
    }
}

/// The address of a symbol in the kernel's list.
fn lies_at(symbols: &str, name: &str) -> Option<u64> {
    symbols.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let address = words.next()?;
        let is_it = words.nth(1) == Some(name) && words.next().is_none();
        is_it.then(|| u64::from_str_radix(address, 16).ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_of_a_module_is_not_taken_for_one_of_the_kernel() {
        let symbols = "ffffffff81000010 T _text [other]\nffffffff81000000 T _text\n0000 T zero\n";
        assert_eq!(lies_at(symbols, "_text"), Some(0xffff_ffff_8100_0000));
        assert_eq!(lies_at(symbols, "_end"), None);
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_is_not_recognised() {
        let hidden = Kernel { address: 0, symbol: "_text".to_owned(), build_id: Vec::new() };
        assert!(!Here::default().is_running_kernel(&hidden));
    }
}
