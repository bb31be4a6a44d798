//! Folded stacks: a line for each stack, for flame graphs.
//!
//! A line holds the functions from the outermost to the innermost, with `;` between them, then a
//! space and a weight, as `stackcollapse-*.pl` of Brendan Gregg's FlameGraph write them. There is
//! one metric, and nothing but names.
//!
//! ```
//! use treering_formats::folded;
//!
//! let (profile, _) = folded::read(b"main;parse 3\nmain;parse;read_[k] 2\n")?;
//! let samples = profile.find_metric("samples").unwrap();
//! assert_eq!(profile.run_cost(samples), 5);
//! let mut file = Vec::new();
//! folded::write(&profile, samples, &mut file)?;
//! assert_eq!(file, b"main;parse 3\nmain;parse;read_[k] 2\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod line;
mod read;
mod write;

#[cfg(feature = "all")]
use crate::format::{Description, Writing};

pub use read::read;
use read::read_within;
pub use write::{size, write};

/// Its row in the table of formats.
#[cfg(feature = "all")]
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("Stacks as text"),
    export: Some("Stacks as text, for flame graphs"),
    // The format has no field for the writing program.
    says_ours: |_| true,
    writing: Writing::OneMetric { write: |profile, metric, output| write(profile, metric, output), size },
    ..Description::unzipped("folded", "folded stacks", read_within)
};

/// Whether lines are stacks: nearly all end with a weight, and in some a caller and a callee are told apart. Names
/// without a caller are believed if they are all there is, and nothing in them speaks for another file: settings
/// (`swap = 1`), rows of numbers, counters that are 0, as `/proc/vmstat` has them.
pub(crate) fn is_folded<'a>(lines: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut stacks, mut others, mut pairs, mut nested, mut foreign) = (0, 0, 0, false, false);
    for line in lines {
        match line::Line::parse(line) {
            Ok(None) => {}
            Ok(Some(line)) => {
                stacks += 1;
                nested |= line.stack.contains(&b';');
                let two = line.two();
                pairs += usize::from(two.is_some());
                foreign |= is_foreign(&line, two);
            }
            Err(_) => others += 1,
        }
    }
    let speaks_for_stacks = others == 0 && !foreign && (pairs == 0 || pairs == stacks);
    stacks > 0 && read::is_stray(others, stacks) && (nested || speaks_for_stacks)
}

/// Whether a line without a caller is rather one of another file: a setting, a remark, a row of numbers, a line of a
/// log that begins with its time, a counter that is 0. The line may have two weights.
fn is_foreign(line: &line::Line<'_>, two: Option<[line::Line<'_>; 2]>) -> bool {
    let name = two.map_or(line.stack, |[before, _]| before.stack).trim_ascii();
    let has_blanks = name.iter().any(u8::is_ascii_whitespace);
    let begins_with_number = name.first().is_some_and(u8::is_ascii_digit);
    let is_number = name.iter().all(u8::is_ascii_digit);
    let has_more_weights = two.is_some_and(|[before, _]| before.two().is_some());
    let costs_nothing = line.weight.is_zero() && two.is_none_or(|[before, _]| before.weight.is_zero());
    is_number
        || has_blanks && (begins_with_number || name.starts_with(b"#"))
        || name.ends_with(b":")
        || name.ends_with(b" =")
        || has_more_weights
        || costs_nothing
}

/// How kinds of functions are marked at the end of their names, after FlameGraph.
const SUFFIXES: [(&str, treering_profile::FunctionKind); 3] = [
    ("_[k]", treering_profile::FunctionKind::Kernel),
    ("_[j]", treering_profile::FunctionKind::Jit),
    ("_[i]", treering_profile::FunctionKind::Inlined),
];

/// The marks that are read: async-profiler has two more.
const KINDS: [(&str, treering_profile::FunctionKind); 5] = [
    SUFFIXES[0],
    SUFFIXES[1],
    SUFFIXES[2],
    ("_[0]", treering_profile::FunctionKind::Interpreted),
    ("_[1]", treering_profile::FunctionKind::Jit),
];

/// Stands for a `;` in a name, since that separates names: the Greek question mark, which looks
/// the same.
const SEMICOLON: char = '\u{37e}';

/// Stands for the blank before a number that a name ends with, which would be taken for a first
/// weight: the figure space, which looks the same.
const SPACE: char = '\u{2007}';

/// Stands for the `#` that a name starts with which would be taken for a comment: the full-width one.
const HASH: char = '\u{ff03}';
