//! `--histogram`: the program counter by address, from counts of code, from samples or from a gmon.out.

use treering_analysis::{AddressBin, AddressHistogram, Basis};
use treering_formats::Format;
use treering_formats::gmon::Histogram;
use treering_profile::{FunctionId, MetricId, Profile, Unit};
use treering_report::{Style, histogram_json, histogram_text};

use super::Report;
use crate::failure::Failure;
use crate::gmon;

/// The default size of a bin, as the C library samples.
const GRANULARITY: u64 = 4;

impl Report {
    /// The costs of a function by address.
    pub(super) fn histogram(
        &self,
        profile: Profile,
        format: Format,
        wanted: &str,
        style: &Style,
    ) -> Result<String, Failure> {
        self.part.check_no_stacks("--histogram")?;
        self.time.check_whole_run()?;
        let mut with_metric = profile.clone();
        let metric = self.metric(&mut with_metric)?;
        let basis = Basis::of(&with_metric, metric);
        let profile = self.part.of_threads(profile)?;
        let function = self.function(&with_metric, &basis, wanted)?;
        let granularity = self.granularity.map(u64::from);
        let bytes = granularity.unwrap_or(GRANULARITY);
        let (histogram, unit) = if self.wants_samples(&profile, metric) {
            let histogram = AddressHistogram::of_samples(&profile, &basis, function, bytes);
            (histogram.ok_or_else(|| self.without_addresses(&profile))?, unit_of(&profile, metric))
        } else if let Some(histogram) = AddressHistogram::of_counts(&profile, function, bytes) {
            (histogram, "instructions".to_owned())
        } else if format == Format::Gmon {
            (self.of_gmon(&profile, function, granularity)?, "samples".to_owned())
        } else {
            return Err(self.without_addresses(&profile));
        };
        Ok(match self.json {
            true => histogram_json(&profile, &histogram, &unit),
            false => histogram_text(&profile, &histogram, &unit, style),
        })
    }

    /// Whether what samples say of addresses is wanted: where nothing else has any, or their metric is asked for.
    fn wants_samples(&self, profile: &Profile, metric: MetricId) -> bool {
        let has_any = profile.address_costs.iter().any(|row| row.metric == metric);
        has_any && (profile.code.blocks.is_empty() || self.metric.is_some())
    }

    /// The bins of a gmon.out that have addresses of a function.
    fn of_gmon(
        &self,
        profile: &Profile,
        function: FunctionId,
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
                let new = AddressBin { start, end, cost: 0.0, sampled: None, is_shared: false, line: None };
                let bin = bins.entry(start).or_insert(new);
                bin.cost += samples as f64;
                bin.is_shared |= low < code.start || high > code.end || high > end;
            }
        }
        let bins: Vec<AddressBin> = bins.into_values().collect();
        let total = bins.iter().map(|bin| bin.cost).sum();
        let run = gmon.histograms.iter().flat_map(|one| &one.bins).map(|&samples| samples as f64).sum();
        Ok(AddressHistogram {
            function,
            granularity: wanted,
            total,
            of_inlined: 0.0,
            without_address: 0.0,
            sampled: None,
            run,
            bins,
        })
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
        failure.hint(
            "treering record and gprof keep the addresses of samples, treering count counts every instruction, and a \
             gmon.out has bins of its own",
        )
    }
}

/// The unit of a metric's costs.
fn unit_of(profile: &Profile, metric: MetricId) -> String {
    let metric = &profile.metrics[metric.index()];
    match metric.unit {
        Unit::Nanoseconds => "ns".to_owned(),
        Unit::Bytes => "bytes".to_owned(),
        _ => metric.name.clone(),
    }
}
