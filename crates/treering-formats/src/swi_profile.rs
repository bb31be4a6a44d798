//! The answers of SWI-Prolog's `profile_data/1`, as `print/1`, `writeq/1` or `write_canonical/1` write it, and as JSON.
//!
//! A dict of a summary and of nodes, one for each predicate, with its callers. Times are ticks of a timer.
//! `ticks_self` leaves out what a predicate took within itself, so self costs are taken from the callers.
//!
//! ```
//! use treering_formats::swi_profile;
//!
//! let file = b"profile{nodes:[node{call:1,callees:[],callers:[node('<spontaneous>',0,4,0,1,0,1)],exit:1,\
//!     predicate:user:go/0,redo:0,ticks_self:4,ticks_siblings:0}],\
//!     summary:summary{accounting:1,nodes:1,samples:1,ticks:5,time:0.02}}";
//! let (profile, _) = swi_profile::read(file)?;
//! assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 20_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod json;
mod predicate;
mod read;
mod term;
mod value;

use crate::format::Description;
use crate::label::without_mark;
use crate::{Foreign, Problem};

pub use read::read;
use read::read_within;

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("SWI-Prolog's profile_data, written by print or as JSON"),
    states_arcs: true,
    sorts: &[Foreign::SwiProfileJson],
    begins: is_term,
    ..Description::unzipped("swi-profile", "SWI-Prolog's profile_data", read_within)
};

fn shape(text: &str) -> Problem {
    format!("it is not what profile_data/1 gives: {text}").into()
}

/// Whether it is the dict as a term, with whatever tag: it has one of the two keys first.
pub(crate) fn is_term(start: &[u8]) -> bool {
    let start = without_mark(start).trim_ascii_start();
    let tag = start.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let inner = start[tag..].strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let has = |key: &[u8], inner: &[u8]| {
        inner.strip_prefix(key).is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"))
    };
    tag > 0 && inner.is_some_and(|inner| has(b"nodes", inner) || has(b"summary", inner))
}
