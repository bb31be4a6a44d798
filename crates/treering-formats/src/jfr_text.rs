//! Text of `jfr print`, from a recording of Java's Flight Recorder: events with stack traces.
//!
//! ```
//! use treering_formats::jfr_text;
//!
//! let text = b"jdk.ExecutionSample {\n  startTime = 10:00:00.000\n  sampledThread = \"main\" (javaThreadId = 1)\n\
//!     \x20 stackTrace = [\n    Main.work(int) line: 12\n    Main.main(String[]) line: 5\n  ]\n}\n\n";
//! let (profile, _) = jfr_text::read(text)?;
//! assert_eq!(profile.run_cost(profile.find_metric("samples").unwrap()), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod read;

use crate::format::Description;

pub use read::read;
use read::read_within;

/// Whether a text that begins like this is what `jfr print` prints.
fn begins(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&start[..start.len().min(4096)]);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let name = first.strip_suffix(" {").unwrap_or_default();
    let is_name = name.contains('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
    is_name && text.contains("\n  startTime = ")
}

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Text that jfr print makes of a recording of Java"),
    begins,
    ..Description::unzipped("jfr-text", "the output of jfr print", read_within)
};
