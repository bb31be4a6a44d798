//! XML of benchmarks: what CBS, the C++ benchmarking suite of 2009, saves, and what Treering saves under the same names.
//!
//! CBS writes several root elements, does not escape names, and closes `componentlist` as `componentList`; all
//! of that is read. Its times are whole milliseconds, so self times are taken from the charges, in percent.
//! `docs/formats/bench.md` describes Treering's.
//!
//! ```
//! use treering_formats::cbs_xml;
//!
//! let file = br#"<timer><time name="total" cpu="200" wall="210" charge="100" /><taskList>
//!     <task id="0" name="_program" calls="1"><time name="self" cpu="200" charge="100" /></task>
//!     <task id="1" name="solve" calls="2"><time name="self" cpu="150" charge="75.1" /></task></taskList></timer>"#;
//! let (profile, _) = cbs_xml::read(file)?;
//! assert_eq!(profile.run_cost(profile.find_metric("cpu").unwrap()), 200_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod document;
mod graph;
mod read;

use crate::detect::LOOK;
use crate::format::{Description, Writing};
use crate::label::without_mark;

pub(crate) use read::read_within;
pub use read::{read, read_description};

/// Its row in the table of formats. It is written from a call graph, which is no business of this crate.
pub(crate) const DESCRIPTION: Description = Description {
    extension: Some("xml"),
    import: Some("XML of CBS and of benchmark reports"),
    export: Some("XML of CBS: tasks, who called whom, and cycles, for scripts made for it"),
    begins: is_cbs,
    says_ours: |start| start.windows(MARK.len()).any(|window| window == MARK.as_bytes()),
    writing: Writing::Custom { one_metric: true },
    ..Description::unzipped("cbs-xml", "XML of CBS", read_within)
};

/// A comment that tells files exported by Treering.
pub const MARK: &str = "<!-- exported by treering -->";

/// Whether it is a report: CBS lets its texts have zeros, so that it is not taken for text.
fn is_cbs(start: &[u8]) -> bool {
    let start = without_mark(&start[..start.len().min(LOOK)]).trim_ascii_start();
    let has = |tag: &str| start.windows(tag.len()).any(|window| window == tag.as_bytes());
    let begins = |tag: &str| start.starts_with(tag.as_bytes());
    begins("<bench>") || begins("<timer>") || begins("<?xml") && (has("<bench>") || has("<timer>"))
}
