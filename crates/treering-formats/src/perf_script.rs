//! What `perf script` prints: samples as text, one after the other.
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

mod error;
mod header;
mod line;
mod read;

use crate::Foreign;
use crate::format::Description;
use crate::gzip::unzip;

pub use error::{Problem, ReadError};
pub(crate) use read::kind_of;
pub use read::{read, read_from};

/// What the table of formats says of it.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("What perf script prints"),
    sorts: &[Foreign::PerfScript],
    ..Description::read_only("perf-script", "the output of perf script", |bytes, _| Ok(read(&unzip(bytes)?)?))
};
