//! The files of the pack for SWI-Prolog: the tree of the system's own profiler, as lines of text.
//!
//! It can be written without a compiler, and holds what that profiler knows: exact calls, and time in
//! ticks of its timer. `docs/formats/prolog.md` describes it.
//!
//! ```
//! use treering_formats::prolog;
//!
//! let file = b"treering prolog profile\t1\nclock\tcpu\nunit\tticks\ntime\t20000000\nsamples\t4\n\
//!     rule\tswi-classic\npredicate\tuser\t3\tgo/1\tgo.pl\nnode\t0\t1\t7\t6\t18\nend\t1\n";
//! let (profile, _) = prolog::read(file)?;
//! let cpu = profile.find_metric("cpu").unwrap();
//! assert_eq!(profile.run_cost(cpu), 20_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod read;

use crate::format::Description;

pub use read::read;
pub(crate) use read::{NO_SAMPLES, notes_on_ticks, read_within, shared};

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Profiles of the pack for SWI-Prolog"),
    is_own: true,
    begins: |start| start.starts_with(MAGIC),
    ..Description::unzipped("prolog", "what the pack for SWI-Prolog writes", read_within)
};

/// The start of every file.
pub(crate) const MAGIC: &[u8] = b"treering prolog profile\t";
