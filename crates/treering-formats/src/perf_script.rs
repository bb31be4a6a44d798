//! The output of `perf script`: samples as text, one after the other.
//!
//! There is no specification: which fields a line has depends on perf's version, on what was recorded
//! and on `-F`. Read are samples with and without call chains, with inlined functions, source lines,
//! several events, threads and processes. The text is read line by line, so that files of any size
//! need no more memory than the profile that they hold.
//!
//! ```
//! use treering_formats::perf_script;
//!
//! let text = b"ls 7/8 1.500000: 250000 cpu-clock:\n\t4005b1 parse+0x7 (/bin/ls)\n\t400100 main+0x9 (/bin/ls)\n\n";
//! let (profile, _) = perf_script::read(text)?;
//! let time = profile.find_metric("cpu-clock").unwrap();
//! assert_eq!(profile.run_cost(time), 250_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod header;
mod line;
mod read;

use crate::Foreign;
use crate::format::Description;

pub(crate) use read::kind_of;
pub use read::{read, read_from};

/// Whether a line is the first of a sample: `comm 1234 [000] 1083.917330: 250000 cpu-clock: ...`, with a number that has
/// six or nine decimals and a colon, and another word with a colon behind it.
pub(crate) fn is_sample(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let timed = words.by_ref().skip(1).any(|word| header::is_time(word.as_bytes()));
    timed && words.any(|word| word.ends_with(':')) && header::Start::parse(line.as_bytes()).is_some()
}

/// Whether there are frames on lines of their own. White space and numbers are before other words as well, so that one
/// of them must have what only perf prints: an address in its column, an offset, or a file in parentheses.
pub(crate) fn are_frames<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    const COLUMN: usize = 17;
    let (mut frames, mut certain, mut nameless) = (0, false, 0);
    for line in lines {
        let address = line.split_whitespace().next().unwrap_or_default();
        let hex = address.len() >= 4 && header::is_hex(address.as_bytes());
        let indented = line.starts_with(['\t', ' ']) || address.len() >= 8 && line.ends_with(')');
        let Some(frame) = line::Frame::parse(line.as_bytes()).filter(|_| hex && indented) else { continue };
        let in_column =
            line.starts_with('\t') && line.find(address).is_some_and(|at| at + address.len() == COLUMN);
        let has_offset = line.contains("+0x");
        let has_name = !frame.symbol.is_empty() || !frame.module.is_empty();
        frames += usize::from(has_name);
        nameless += usize::from(in_column && !has_name);
        certain |= in_column || has_offset || matches!(frame.module.first(), Some(b'/' | b'['));
    }
    frames >= 2 && certain || nameless >= 2
}

/// Whether all lines but one, which may be cut, are samples of a frame alone: an address in its column and a name.
pub(crate) fn are_lone_samples<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let (mut samples, mut others, mut letters) = (0, 0, false);
    for line in lines.filter(|line| !line.trim().is_empty()) {
        match header::Start::parse(line.as_bytes()) {
            Some(header::Start::Sample(header::Header { frame: Some(frame), .. })) => {
                samples += 1;
                // Columns of decimal numbers are those of other tables.
                letters |= format!("{:x}", frame.address).contains(|c: char| c.is_ascii_alphabetic());
            }
            _ => others += 1,
        }
    }
    samples >= 2 && others <= 1 && letters
}

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Output of perf script"),
    sorts: &[Foreign::PerfScript],
    ..Description::unzipped("perf-script", "the output of perf script", |bytes, _| read(bytes))
};
