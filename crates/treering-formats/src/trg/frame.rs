//! The file header and the frames: self-delimiting, checksummed, optionally compressed.

use std::fmt;

use crate::{Problem, ReadError};

/// The start of a file. The first byte keeps it from being taken for text, the line ends
/// betray a transfer that changed them.
pub const MAGIC: [u8; 8] = *b"\x89trg\r\n\x1a\n";
/// The major version: readers refuse a newer one.
pub const MAJOR: u16 = 1;
/// The minor version: readers of the same major version can read a newer one.
pub const MINOR: u16 = 0;
/// The length of the file header, and of the header of a frame.
pub(crate) const HEADER: usize = 16;
/// No frame holds more than this, so that a hostile length cannot ask for gigabytes.
pub(crate) const MAX_RAW: usize = 64 << 20;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal $name:literal,)*) => {
        /// The content of a frame. The stored number is the discriminant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Kind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: [Self; [$(Self::$kind),*].len()] = [$(Self::$kind),*];

            /// Its name in the documentation of the format.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// Metadata, recursion rule, metrics and runs, as JSON. The last one holds.
    Meta = 1 "META",
    /// Strings.
    Strings = 2 "STRINGS",
    /// Modules.
    Modules = 3 "MODULES",
    /// Functions.
    Functions = 4 "FUNCTIONS",
    /// Source lines.
    Lines = 5 "LINES",
    /// Processes; may state an earlier one anew.
    Processes = 6 "PROCESSES",
    /// Threads; may state an earlier one anew.
    Threads = 7 "THREADS",
    /// Nodes of the tree.
    Nodes = 8 "NODES",
    /// Self costs, to be added to those known.
    Costs = 9 "COSTS",
    /// Call counts, to be added to those known.
    Calls = 10 "CALLS",
    /// Parts of self costs by source line.
    LineCosts = 11 "LINE_COSTS",
    /// Arcs.
    Arcs = 12 "ARCS",
    /// Texts of source files.
    Sources = 13 "SOURCES",
    /// Statistics of activations; a later value for a node replaces an earlier one.
    Statistics = 14 "STATISTICS",
    /// Ports of logic programs; a later value for a node replaces an earlier one.
    Ports = 15 "PORTS",
    /// Activations by argument size, to be added to those known.
    Sizes = 16 "SIZES",
    /// Points of a series over time.
    Points = 17 "POINTS",
    /// Memory of nodes; a later value for a node replaces an earlier one.
    Memory = 18 "MEMORY",
    /// The modules that hold code, and the files behind them at a time.
    CodeSpaces = 19 "CODE_SPACES",
    /// Bytes of code that no file holds.
    CodeBytes = 20 "CODE_BYTES",
    /// Blocks as a translator executed them, to be added to those known.
    Translated = 21 "TRANSLATED",
    /// Corrections to translated blocks.
    Partials = 22 "PARTIALS",
    /// Basic blocks.
    Blocks = 23 "BLOCKS",
    /// Executions of basic blocks by thread, to be added to those known.
    Executions = 24 "EXECUTIONS",
    /// Counts of branches, to be added to those known.
    Branches = 25 "BRANCHES",
    /// Source lines of executed code.
    CodeLines = 26 "CODE_LINES",
    /// Code that ran without being counted.
    Uncounted = 27 "UNCOUNTED",
    /// Costs by address, to be added to those known.
    AddressCosts = 28 "ADDRESS_COSTS",
    /// The slots and the length of the run; the last one holds.
    Timeline = 29 "TIMELINE",
    /// Costs by slot of time, to be added to those known.
    TimeCosts = 30 "TIME_COSTS",
    /// When threads were off the processor.
    Waits = 31 "WAITS",
    /// When threads began and ended.
    Lives = 32 "LIVES",
    /// Moments and intervals with a name.
    Marks = 33 "MARKS",
    /// When samples were lost.
    LostSamples = 34 "LOST_SAMPLES",
    /// The wakers that ended waits, to be added to those known.
    EndedWaits = 35 "ENDED_WAITS",
    /// The wakers that ended single waits.
    Wakings = 36 "WAKINGS",
    /// The end: an index of all frames, and totals.
    End = 0xffff "END",
}

impl Kind {
    /// The kind stored as `number`, or nothing for one that this version does not know.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u16 == number)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads the file header; gives the minor version.
pub(crate) fn read_header(bytes: &[u8]) -> Result<u16, ReadError> {
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if magic.is_empty() || !MAGIC.starts_with(magic) {
        return Err(Problem::OtherFormat("a .trg file").into());
    }
    let Some(header) = bytes.get(..HEADER) else {
        let (needed, left) = (HEADER as u64, bytes.len() as u64);
        return Err(Problem::PartCutShort { part: "the header", needed, left }.into());
    };
    let major = u16_at(header, 8);
    if major > MAJOR {
        let text = format!("it has version {major} of the .trg format, this program reads version {MAJOR}");
        return Err(Problem::unsupported(text).into());
    }
    Ok(u16_at(header, 10))
}

/// The file header of this version.
pub(crate) fn header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&MAJOR.to_le_bytes());
    header[10..12].copy_from_slice(&MINOR.to_le_bytes());
    header
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_a_newer_major_version_is_refused_and_of_a_newer_minor_read() {
        let mut newer = header();
        newer[10] = 7;
        assert_eq!(read_header(&newer), Ok(7));
        newer[8] = 2;
        let refused = read_header(&newer).unwrap_err();
        assert!(matches!(refused.problem, Problem::Unsupported(_)), "{refused}");
    }

    #[test]
    fn every_prefix_of_the_header_is_refused() {
        assert_eq!(read_header(&[]), Err(Problem::OtherFormat("a .trg file").into()));
        for length in 1..HEADER {
            let prefix = &header()[..length];
            let problem = Problem::PartCutShort { part: "the header", needed: 16, left: length as u64 };
            assert_eq!(read_header(prefix), Err(problem.into()));
        }
    }

    #[test]
    fn kinds_keep_their_numbers() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind as u16), Some(kind));
        }
        assert_eq!(Kind::from_number(0), None);
    }
}
