//! The kernel's own list of its symbols.

/// The functions named in the text of `/proc/kallsyms`, by runtime address.
///
/// proc(5). Without the right to see kernel addresses every address in the text is 0
/// (`kptr_restrict`); such a list names nothing.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols<'a> {
    symbols: Vec<KernelSymbol<'a>>,
}

/// A symbol, borrowed from the text: there are over a hundred thousand, and few are asked for.
#[derive(Clone, Copy, Debug)]
struct KernelSymbol<'a> {
    start: u64,
    /// Its name and, behind white space, the loadable module if any.
    name: &'a str,
}

/// The most that a loadable module or the kernel has of a page: an address further
/// from the last symbol than this belongs to nothing that was listed.
const FARTHEST: u64 = 1 << 20;

impl<'a> KernelSymbols<'a> {
    /// Reads the text; lines that are no symbols of code are left out.
    pub fn parse(text: &'a str) -> Self {
        let mut symbols: Vec<_> = text.lines().filter_map(parse_line).collect();
        symbols.sort_by_key(|symbol| symbol.start);
        symbols.dedup_by_key(|symbol| symbol.start);
        Self { symbols }
    }

    /// Whether the list names nothing, as when addresses are hidden from this user.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The start and name of the function that holds a runtime address; functions of loadable
    /// modules are named as in `nf_hook [nf_tables]`.
    pub fn lookup(&self, address: u64) -> Option<(u64, String)> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        if address - symbol.start > FARTHEST {
            return None;
        }
        let words: Vec<&str> = symbol.name.split_ascii_whitespace().collect();
        Some((symbol.start, words.join(" ")))
    }
}

/// Reads `ffffffff81000000 T _text` or `ffffffffc0000000 t init [module]`.
fn parse_line(line: &str) -> Option<KernelSymbol<'_>> {
    let (start, rest) = line.split_once(' ')?;
    let (kind, name) = rest.split_once(' ')?;
    let code = matches!(kind, "t" | "T" | "w" | "W");
    let start = u64::from_str_radix(start, 16).ok().filter(|&start| start != 0 && code)?;
    Some(KernelSymbol { start, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext
ffffffff81000100 t do_syscall_64
ffffffff81000100 T x64_sys_call_alias
ffffffff81000200 d some_data
not a line
ffffffffc0000000 t nf_hook\t[nf_tables]
0000000000000000 T hidden
";

    #[test]
    fn addresses_belong_to_the_function_that_starts_before_them() {
        let symbols = KernelSymbols::parse(TEXT);
        let name = |address| symbols.lookup(address).map(|(_, name)| name);
        assert_eq!(name(0xffff_ffff_8100_00ff).as_deref(), Some("_stext"));
        assert_eq!(name(0xffff_ffff_8100_0250).as_deref(), Some("do_syscall_64"));
        assert_eq!(name(0xffff_ffff_c000_0004).as_deref(), Some("nf_hook [nf_tables]"));
    }

    #[test]
    fn addresses_before_and_far_behind_all_functions_have_no_name() {
        let symbols = KernelSymbols::parse(TEXT);
        assert_eq!(symbols.lookup(0x1000), None);
        assert_eq!(symbols.lookup(0xffff_ffff_9000_0000), None);
    }

    #[test]
    fn a_list_with_hidden_addresses_is_empty() {
        assert!(KernelSymbols::parse("0000000000000000 T _stext\n").is_empty());
    }
}
