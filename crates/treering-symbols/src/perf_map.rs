//! The list of functions that a JIT compiler leaves in `/tmp/perf-PID.map`.
//!
//! A line holds start and size in hexadecimal and a name that may contain spaces; see
//! `tools/perf/Documentation/jit-interface.txt` of the Linux sources. As `perf` does, this reads numbers with and
//! without `0x`, in small and capital letters, divided by spaces or tabs.

/// A function that a JIT compiler made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitSymbol {
    /// The runtime address of its first byte.
    pub start: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Its name as the compiler wrote it.
    pub name: String,
}

/// Reads the text of a perf map, in the order of its lines; lines that do not fit, such as the
/// last one of a file that is still being written, are left out.
pub fn parse(text: &str) -> Vec<JitSymbol> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<JitSymbol> {
    let (start, rest) = line.trim_start().split_once([' ', '\t'])?;
    let (size, name) = rest.trim_start().split_once([' ', '\t'])?;
    let (start, size, name) = (hexadecimal(start)?, hexadecimal(size)?, name.trim());
    (size > 0 && !name.is_empty()).then(|| JitSymbol { start, size, name: name.to_owned() })
}

fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
7f0000001000 40 LazyCompile:~add /srv/app.js:3
0x7f0000001040 0x10 py::spam:/srv/spam.py
zzz 10 bad
7f0000002000 0 empty
7f0000003000 20
7f0000004000 30 truncat";

    #[test]
    fn names_keep_their_spaces_and_bad_lines_are_left_out() {
        let names: Vec<_> = parse(TEXT).into_iter().map(|s| (s.start, s.size, s.name)).collect();
        assert_eq!(
            names,
            [
                (0x7f00_0000_1000, 0x40, "LazyCompile:~add /srv/app.js:3".to_owned()),
                (0x7f00_0000_1040, 0x10, "py::spam:/srv/spam.py".to_owned()),
                (0x7f00_0000_4000, 0x30, "truncat".to_owned()),
            ]
        );
    }

    #[test]
    fn lines_are_read_as_perf_reads_them() {
        let text = "1000\t20\tspam\n0X2000 0x2F  a  b\tc \r\n  00003000\t \t1 egg\r\n4000,10,no\n";
        let names: Vec<_> = parse(text).into_iter().map(|s| (s.start, s.size, s.name)).collect();
        let expected = [(0x1000, 0x20, "spam"), (0x2000, 0x2f, "a  b\tc"), (0x3000, 1, "egg")];
        assert_eq!(names, expected.map(|(start, size, name)| (start, size, name.to_owned())));
    }

    #[test]
    fn every_prefix_is_read_without_panic_and_never_gives_more_than_the_whole() {
        for end in 0..TEXT.len() {
            assert!(parse(&TEXT[..end]).len() <= 3);
        }
    }
}
