//! The processor that a counted program sees.

use treering_translator::Level;

/// The values of `--cpu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Processor {
    /// The processor of this machine
    Native,
    /// With SSE4.2 and popcnt
    #[value(name = "x86-64-v2")]
    V2,
    /// With AVX2 as well
    #[value(name = "x86-64-v3")]
    V3,
    /// With AVX-512 as well
    #[value(name = "x86-64-v4")]
    V4,
}

impl Processor {
    /// The level that the program is to see; nothing for the real processor.
    pub(super) fn level(self) -> Option<Level> {
        Some(match self {
            Self::Native => return None,
            Self::V2 => Level::V2,
            Self::V3 => Level::V3,
            Self::V4 => Level::V4,
        })
    }
}
