//! The output of GNU gprof: flat profile and call graph, as text.
//!
//! Times are as printed, in hundredths of a second. The call graph tells calls for each caller and callee;
//! its times of callees are estimates, which are made anew from the calls.
//!
//! ```
//! use treering_formats::gprof;
//!
//! let text = b"\t\t\tCall graph\n\nindex % time    self  children    called     name\n\
//!     \x20                                                <spontaneous>\n\
//!     [1]    100.0    0.25    0.50                 main [1]\n\
//!     \x20               0.50    0.00       3/3           solve [2]\n\
//!     -----------------------------------------------\n";
//! let (profile, _) = gprof::read(text)?;
//! assert_eq!((profile.arcs.len(), profile.arcs[0].calls), (1, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod line;
mod read;

use crate::Foreign;
use crate::format::Description;

pub use read::read;
use read::read_within;

/// Whether a text that begins like this is printed by gprof.
pub(crate) fn is_text(start: &str) -> bool {
    let begins = ["Flat profile:", "flat profile:"].iter().any(|title| start.starts_with(title));
    let call_graph = start.starts_with("Call graph")
        && start.contains("index % time    self  children    called     name");
    let bsd = start.contains("\nindex  %time    self descendents  called+self    name")
        || start.starts_with("call graph profile:");
    begins
        || call_graph
        || bsd
        || start.contains("Each sample counts as")
        || start.contains("granularity: each sample hit covers")
}

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Reports of gprof"),
    sorts: &[Foreign::GprofText],
    ..Description::unzipped("gprof", "the output of gprof", read_within)
};
