//! The histogram of the program counter as text.

use treering_analysis::{AddressBin, AddressHistogram};
use treering_profile::Profile;

use crate::function::Labels;
use crate::number::{grouped, percent};
use crate::printable::printable_profile;
use crate::style::Style;

/// The costs of a function by address: of each bin its addresses, what was counted there (`unit`), the share of the run,
/// a bar, and the source line. `~` marks bins of which a part may belong elsewhere.
pub fn histogram_text(profile: &Profile, histogram: &AddressHistogram, unit: &str, style: &Style) -> String {
    const BAR: f64 = 40.0;
    let profile = &*printable_profile(profile);
    let name = Labels::of(profile).with_place(histogram.function);
    let share = percent(histogram.share(histogram.total));
    let bytes = if histogram.granularity == 1 { "byte" } else { "bytes" };
    let mut text = format!(
        "{}: {} {unit}, {share} % of the run, in bins of {} {bytes}\n\n",
        style.bold(&name),
        number(histogram.total),
        histogram.granularity
    );
    let most = histogram.bins.iter().map(|bin| bin.cost).fold(0.0, f64::max);
    text += &style.bold(&format!("{:>14}  {:>14}  {:>6}", "address", unit, "%"));
    text.push('\n');
    for bin in &histogram.bins {
        let share = histogram.share(bin.cost);
        let mark = if bin.is_shared { "~" } else { "" };
        let cells = format!(
            "{:>14}  {:>14}  {:>6}  ",
            format!("{:#x}", bin.start),
            mark.to_owned() + &number(bin.cost),
            percent(share)
        );
        let length = if most > 0.0 { (bin.cost / most * BAR).round() as usize } else { 0 };
        let bar = "█".repeat(length) + &" ".repeat(BAR as usize - length);
        let line = format!("{}{bar}  {}", style.heat(share, &cells), place(profile, bin));
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Whole, or with a decimal where bins were divided.
fn number(cost: f64) -> String {
    if cost.fract() == 0.0 { grouped(cost as u64) } else { format!("{cost:.1}") }
}

fn place(profile: &Profile, bin: &AddressBin) -> String {
    bin.line.map_or_else(String::new, |line| {
        let line = profile.lines[line];
        let path = &profile.strings[line.file];
        format!("{}:{}", path.rsplit('/').next().unwrap_or(path), line.line)
    })
}
