//! `--histogram`: the program counter by address, from counts of code or from a gmon.out.

use std::process::ExitCode;

use treering_analysis::{AddressBin, AddressHistogram, Basis};
use treering_formats::Format;
use treering_formats::gmon::Histogram;
use treering_profile::Profile;
use treering_report::{Style, histogram_json, histogram_text};

use super::Report;
use crate::failure::{Failure, Outcome};
use crate::{gmon, terminal};

/// What a bin has if nothing is said: as the C library samples.
const GRANULARITY: u64 = 4;

impl Report {
    /// The costs of a function by address.
    pub(super) fn histogram(&self, profile: Profile, format: Format, wanted: &str) -> Outcome {
        self.part.check_no_stacks("--histogram")?;
        let profile = self.part.of_threads(profile)?;
        let mut with_metric = profile.clone();
        let metric = self.metric(&mut with_metric)?;
        let function = self.function(&with_metric, &Basis::of(&with_metric, metric), wanted)?;
        let granularity = self.granularity.map(u64::from);
        let counts = AddressHistogram::of_counts(&profile, function, granularity.unwrap_or(GRANULARITY));
        let (histogram, unit) = match counts {
            Some(histogram) => (histogram, "instructions"),
            None if format == Format::Gmon => (self.of_gmon(&profile, function, granularity)?, "samples"),
            None => return Err(self.without_addresses(&profile)),
        };
        let style = Style { colour: terminal::colour(), width: terminal::width() };
        terminal::print(&match self.json {
            true => histogram_json(&profile, &histogram, unit),
            false => histogram_text(&profile, &histogram, unit, &style),
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// The bins of a gmon.out that have addresses of a function.
    fn of_gmon(
        &self,
        profile: &Profile,
        function: treering_profile::FunctionId,
        granularity: Option<u64>,
    ) -> Result<AddressHistogram, Failure> {
        let file = self.file.display();
        let (gmon, layout) = gmon::histograms(&self.file, self.program.as_deref())?;
        let start = profile.functions[function].address.map(|address| address.0);
        let code = layout.functions.iter().find(|code| Some(code.start) == start);
        let code = code.ok_or_else(|| Failure::new(format_args!("{file}: the function has no address")))?;
        // Bins begin at whole instructions' addresses as the C library rounds them, so they differ by a few bytes.
        let width = |of: &Histogram| (of.high - of.low).div_ceil(of.bins.len().max(1) as u64);
        let coarsest = gmon.histograms.iter().map(width).max().unwrap_or(1);
        let wanted = granularity.unwrap_or(coarsest);
        if wanted < coarsest {
            return Err(Failure::new(format_args!(
                "{file}: its bins have {coarsest} bytes, so {wanted} cannot be told apart"
            ))
            .hint("treering count counts each instruction: report --histogram FUNCTION --granularity 1"));
        }
        let mut bins: std::collections::BTreeMap<u64, AddressBin> = std::collections::BTreeMap::new();
        for histogram in &gmon.histograms {
            for (at, &samples) in histogram.bins.iter().enumerate().filter(|(_, samples)| **samples > 0) {
                let (low, high) = (histogram.bin_start(at), histogram.bin_start(at + 1));
                if low >= code.end || high <= code.start {
                    continue;
                }
                let (start, end) = match granularity {
                    Some(_) => (low - low % wanted, low - low % wanted + wanted),
                    None => (low, high),
                };
                let new = AddressBin { start, end, cost: 0.0, is_shared: false, line: None };
                let bin = bins.entry(start).or_insert(new);
                bin.cost += samples as f64;
                bin.is_shared |= low < code.start || high > code.end || high > end;
            }
        }
        let bins: Vec<AddressBin> = bins.into_values().collect();
        let total = bins.iter().map(|bin| bin.cost).sum();
        let run = gmon.histograms.iter().flat_map(|one| &one.bins).map(|&samples| samples as f64).sum();
        Ok(AddressHistogram { function, granularity: wanted, total, run, bins })
    }

    /// Addresses are wanted of a profile that has none.
    fn without_addresses(&self, profile: &Profile) -> Failure {
        let message =
            format!("{}: the profile has no addresses, only functions and lines", self.file.display());
        let failure = Failure::new(message);
        let failure = match profile.line_costs.is_empty() {
            true => failure,
            false => failure.hint("report --lines FUNCTION divides its cost by line"),
        };
        failure.hint("treering count counts every instruction by its address; a gmon.out has bins of its own")
    }
}
