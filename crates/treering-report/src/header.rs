//! The lines above a view.

use treering_analysis::Basis;
use treering_profile::Profile;

use crate::facts;
use crate::style::Style;

/// What a reader must know before the numbers, a line each: command, run time, samples, losses,
/// notes.
pub(crate) fn header_lines(profile: &Profile, basis: &Basis, style: &Style) -> String {
    let lines = facts::lines(profile, basis);
    const LABEL: usize = 10;
    let line = |(label, text): &(&str, String)| {
        format!("{}  {}\n", style.dim(&format!("{label:<8}")), style.wrap(text, LABEL))
    };
    lines.iter().map(line).collect()
}
