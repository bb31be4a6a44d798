//! What can be wrong with a live file.

use std::fmt;

use treering_events::Damage;

/// Why bytes are no live file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError(pub Damage);

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Damage::NotLive => f.write_str("not the file of an instrumented program"),
            Damage::CutShort { length } => {
                write!(
                    f,
                    "the header is cut short: there are {length} bytes of {}",
                    treering_events::HEADER_BYTES
                )
            }
            Damage::OtherVersion { version } => {
                write!(
                    f,
                    "layout {version}; this version reads layouts {} and {}",
                    treering_events::VERSION_WITHOUT_CHECKS,
                    treering_events::VERSION
                )
            }
        }
    }
}

impl std::error::Error for ReadError {}
