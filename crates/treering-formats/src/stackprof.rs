//! JSON of Ruby's stackprof (`stackprof --json`).
//!
//! ```
//! use treering_formats::stackprof;
//!
//! let text = br#"{"version":1.2,"mode":"wall","interval":1000,"samples":3,"gc_samples":0,"missed_samples":0,
//!     "frames":{"1":{"name":"main","file":"a.rb","samples":1,"total_samples":3},
//!     "2":{"name":"Object#work","file":"a.rb","line":2,"samples":2,"total_samples":2}},"raw":[2,1,2,2,1,1,1]}"#;
//! let (profile, _) = stackprof::read(text)?;
//! assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 3_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod read;

use crate::Foreign;
use crate::format::Description;

pub use read::read;
use read::read_within;

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("JSON of Ruby's stackprof"),
    sorts: &[Foreign::Stackprof],
    ..Description::unzipped("stackprof", "JSON of Ruby's stackprof", read_within)
};
