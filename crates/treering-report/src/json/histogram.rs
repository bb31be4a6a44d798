//! The histogram of the program counter as JSON.

use serde::Serialize;
use treering_analysis::{AddressBin, AddressHistogram};
use treering_profile::Profile;

use super::{Place, non_empty, place, text};

#[derive(Serialize)]
struct BinObject<'a> {
    address: String,
    end: String,
    cost: f64,
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
        run: f64,
        bins: Vec<BinObject<'a>>,
    }
    text(&Document {
        view: "histogram",
        function: place(profile, histogram.function),
        unit,
        granularity: histogram.granularity,
        total: histogram.total,
        run: histogram.run,
        bins: histogram.bins.iter().map(|row| bin(profile, row)).collect(),
    })
}

fn bin<'a>(profile: &'a Profile, bin: &AddressBin) -> BinObject<'a> {
    let line = bin.line.map(|line| profile.lines[line]);
    BinObject {
        address: format!("{:#x}", bin.start),
        end: format!("{:#x}", bin.end),
        cost: bin.cost,
        is_shared: bin.is_shared,
        file: line.and_then(|line| non_empty(profile, line.file)),
        line: line.map(|line| line.line).filter(|&line| line > 0),
    }
}
