//! Files that Austin writes of Python programs: MOJO, its binary format, and text with a header.
//!
//! ```
//! use treering_formats::austin;
//!
//! let text = b"# austin: 3.6.0\n# mode: wall\n\nP1;T1;app.py:main:3;app.py:work:7 500\n# duration: 500\n";
//! let (profile, _) = austin::read(text)?;
//! assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 500_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod mojo;
mod read;
mod text;

use crate::format::Description;

pub use read::read;
use read::read_within;

/// The first bytes of MOJO.
const MAGIC: &[u8] = b"MOJ";

/// The first bytes of the text.
const HEADER: &[u8] = b"# austin: ";

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Profiles of Austin, as MOJO and as text"),
    begins: |start| {
        start.starts_with(HEADER) || start.starts_with(MAGIC) && matches!(start.get(3), Some(1..=9))
    },
    ..Description::unzipped("austin", "files of Austin", read_within)
};
