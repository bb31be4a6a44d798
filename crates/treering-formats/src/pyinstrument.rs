//! JSON of pyinstrument (`pyinstrument -r json`): a tree of the functions of a Python program with their times.
//!
//! ```
//! use treering_formats::pyinstrument;
//!
//! let text = br#"{"duration":1.5,"sample_count":3,"root_frame":{"function":"main","file_path":"a.py","line_no":4,"time":1.5,
//!     "children":[{"function":"work","file_path":"a.py","line_no":1,"time":1.0,"children":[]}]}}"#;
//! let (profile, _) = pyinstrument::read(text)?;
//! assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 1_500_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod read;

use crate::Foreign;
use crate::format::Description;

pub use read::read;
use read::read_within;

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Pyinstrument's JSON"),
    sorts: &[Foreign::Pyinstrument],
    ..Description::unzipped("pyinstrument", "JSON of pyinstrument", read_within)
};
