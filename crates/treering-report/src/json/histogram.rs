//! The histogram of the program counter as JSON.

use serde::Serialize;
use treering_analysis::{AddressBin, AddressHistogram};
use treering_profile::Profile;

use super::{Place, bounds, non_empty, place, text};

#[derive(Serialize)]
struct BinObject<'a> {
    address: String,
    end: String,
    cost: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_low: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_high: Option<u64>,
    is_shared: bool,
    file: Option<&'a str>,
    line: Option<u32>,
}

/// The costs of a function by address as JSON: `unit`, `granularity` and `bins`.
pub fn histogram_json(profile: &Profile, histogram: &AddressHistogram, unit: &str) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        #[serde(flatten)]
        function: Place<'a>,
        unit: &'a str,
        granularity: u64,
        total: f64,
        of_inlined: f64,
        without_address: f64,
        run: f64,
        bins: Vec<BinObject<'a>>,
    }
    text(&Document {
        view: "histogram",
        function: place(profile, histogram.function),
        unit,
        granularity: histogram.granularity,
        total: histogram.total,
        of_inlined: histogram.of_inlined,
        without_address: histogram.without_address,
        run: histogram.run,
        bins: histogram.bins.iter().map(|row| bin(profile, histogram, row)).collect(),
    })
}

fn bin<'a>(profile: &'a Profile, histogram: &AddressHistogram, bin: &AddressBin) -> BinObject<'a> {
    let interval = bin.sampled.and_then(|sampled| sampled.interval);
    let (cost_low, cost_high) = bounds(interval, histogram.run as u64);
    let line = bin.line.map(|line| profile.lines[line]);
    BinObject {
        address: format!("{:#x}", bin.start),
        end: format!("{:#x}", bin.end),
        cost: bin.cost,
        samples: bin.sampled.map(|sampled| sampled.samples),
        cost_low,
        cost_high,
        is_shared: bin.is_shared,
        file: line.and_then(|line| non_empty(profile, line.file)),
        line: line.map(|line| line.line).filter(|&line| line > 0),
    }
}
