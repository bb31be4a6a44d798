//! The histogram of the program counter as text.

use treering_analysis::{AddressBin, AddressHistogram, Sampled};
use treering_profile::Profile;

use crate::flat::bounds;
use crate::function::Labels;
use crate::number::{grouped, percent};
use crate::printable::printable_profile;
use crate::style::Style;

/// The costs of a function by address: of each bin its addresses, what was counted there (`unit`) or how many samples
/// were taken, the share of the run with its interval, a bar, and the source line. `~` marks bins of which a part may
/// belong elsewhere.
pub fn histogram_text(profile: &Profile, histogram: &AddressHistogram, unit: &str, style: &Style) -> String {
    const BAR: f64 = 40.0;
    let profile = &*printable_profile(profile);
    let name = Labels::of(profile).with_place(histogram.function);
    let share = percent(histogram.share(histogram.total));
    let bytes = if histogram.granularity == 1 { "byte" } else { "bytes" };
    let unit = if histogram.sampled.is_some() { "samples" } else { unit };
    let mut text = format!(
        "{}: {} {unit}, {share} % of the run{}, in bins of {} {bytes}\n",
        style.bold(&name),
        amount(histogram.total, histogram.sampled),
        interval(histogram.sampled),
        histogram.granularity
    );
    let mut say = |cost: f64, what: &str| {
        if cost > 0.0 {
            text += &format!("{} % of the run is {what}\n", percent(histogram.share(cost)));
        }
    };
    say(histogram.of_inlined, "in functions that are inlined here, and part of this");
    say(histogram.without_address, "in this function too, at addresses that are not known");
    text.push('\n');
    let most = histogram.bins.iter().map(|bin| bin.cost).fold(0.0, f64::max);
    let width = if histogram.sampled.is_some() { 14 } else { 0 };
    let heading = if width > 0 { "[95 % interval]" } else { "" };
    let heading = format!("{:>18}  {:>14}  {:>6}  {heading:>width$}", "address", unit, "%");
    text += &style.bold(heading.trim_end());
    text.push('\n');
    for bin in &histogram.bins {
        let share = histogram.share(bin.cost);
        let mark = if bin.is_shared { "~" } else { "" };
        let cells = format!(
            "{:>18}  {:>14}  {:>6}  {:>width$}  ",
            format!("{:#x}", bin.start),
            mark.to_owned() + &amount(bin.cost, bin.sampled),
            percent(share),
            interval(bin.sampled).trim_start()
        );
        let length = if most > 0.0 { (bin.cost / most * BAR).round() as usize } else { 0 };
        let bar = "█".repeat(length) + &" ".repeat(BAR as usize - length);
        let line = format!("{}{bar}  {}", style.heat(share, &cells), place(profile, bin));
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The number of samples, or else the cost.
fn amount(cost: f64, sampled: Option<Sampled>) -> String {
    sampled.map_or_else(|| number(cost), |sampled| grouped(sampled.samples))
}

fn interval(sampled: Option<Sampled>) -> String {
    let interval = sampled.and_then(|sampled| sampled.interval);
    interval.map_or_else(String::new, |interval| format!(" {}", bounds(interval)))
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
