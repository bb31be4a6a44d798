//! Logs of V8's own sampling, which `node --prof` writes as `isolate-*.log`.
//!
//! Lines in the order of time: code that was made, moved and deleted, the files that were mapped, and ticks, each with
//! a stack of addresses, which are those of the code that lies there at that time.
//!
//! ```
//! use treering_formats::v8_log;
//!
//! let text = b"v8-version,11,3,244,8,0\ncode-creation,JS,10,500,0x1000,256,f /a.js:7:3,0x90,*\nprofiler,begin,1000\n\
//!     tick,0x1010,900,0,0x0,0\nprofiler,end\n";
//! let (profile, _) = v8_log::read(text)?;
//! assert_eq!(profile.run_cost(profile.find_metric("time").unwrap()), 1_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod code_map;
mod function;
mod line;
mod read;

use crate::binary::NoBinaries;
use crate::format::Description;

pub use read::{read, read_with};

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Logs of V8, as isolate-*.log of node --prof"),
    begins: |start| start.starts_with(b"v8-version,"),
    ..Description::as_it_is("v8-log", "V8's log of ticks", |bytes, budget| {
        read::read_within(bytes, &mut NoBinaries, budget)
    })
};
