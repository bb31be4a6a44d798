//! Columns of what is known beside costs: statistics of activations, ports, argument sizes.

use treering_analysis::{Detail, Details, Growth, SizeBucket};
use treering_profile::{ActivationStatistics, Ports, Unit};

use crate::number::{cost, grouped, plural};

/// The columns of what is known of a function or an arc beside its costs, all of their widths.
pub(crate) struct DetailColumns {
    unit: Unit,
    statistics: bool,
    ports: Option<usize>,
}

/// The columns of statistics, and how wide each is.
const STATISTICS: [&str; 5] = ["mean", "calm", "least", "greatest", "SD"];
const STATISTICS_WIDTH: usize = 10;

impl DetailColumns {
    /// Columns for what `details` has; statistics only if they are `wanted`.
    pub(crate) fn of(details: &Details, unit: Unit, wanted: bool, largest: u64) -> Self {
        let widest = Ports::NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
        let ports = details.has_ports.then(|| widest.max(grouped(largest).len()));
        Self { unit, statistics: wanted && details.has_statistics, ports }
    }

    /// The headings, each with two spaces after it.
    pub(crate) fn headings(&self) -> String {
        let mut text = String::new();
        if self.statistics {
            text += &row(&STATISTICS.map(str::to_owned), STATISTICS_WIDTH);
        }
        if let Some(width) = self.ports {
            text += &row(&Ports::NAMES.map(str::to_owned), width);
        }
        text
    }

    /// The cells of one function or arc; blank where nothing is known.
    pub(crate) fn cells(&self, detail: Option<&Detail>) -> String {
        let mut text = String::new();
        if self.statistics {
            let cells = detail.map_or_else(Default::default, |detail| self.statistics(&detail.statistics));
            text += &row(&cells, STATISTICS_WIDTH);
        }
        if let Some(width) = self.ports {
            let counts = detail.map(|detail| detail.ports.counts());
            text += &row(&counts.map_or_else(Default::default, |counts| counts.map(grouped)), width);
        }
        text
    }

    fn statistics(&self, of: &ActivationStatistics) -> [String; 5] {
        let some = |number: Option<f64>| number.map_or(String::new(), |number| cost(self.unit, number));
        let known = |number: f64| (of.timed > 0).then_some(number);
        let (least, greatest) = (known(of.least as f64), known(of.greatest as f64));
        [known(of.mean), of.calm_mean(), least, greatest, of.variance().map(f64::sqrt)].map(some)
    }

    /// A line for each bucket of argument sizes.
    pub(crate) fn size_lines(&self, detail: Option<&Detail>) -> Vec<String> {
        let sizes = detail.map_or(&[][..], |detail| &detail.sizes);
        let lines = sizes.iter().map(|size| self.size_line(size));
        let growth = Growth::of(sizes).map(|growth| growth_line(&growth));
        lines.chain(growth).collect()
    }

    fn size_line(&self, size: &SizeBucket) -> String {
        let (least, greatest) = size.sizes();
        let (calls, each) = (plural(size.calls, "call"), cost(self.unit, size.mean()));
        format!("argument of {} to {}: {calls}, {each} each", grouped(least), grouped(greatest))
    }

    /// The meaning of the columns; `corrected` when the call bias was taken away, `folded` when calls of functions
    /// by themselves share a node with the call from outside.
    pub(crate) fn legend(&self, corrected: bool, folded: bool) -> Vec<&'static str> {
        let mut lines = Vec::new();
        if self.statistics {
            lines.push("mean, least, greatest, SD: of the total costs of single activations");
            if folded {
                lines.push("of a function that calls itself, each line has these calls too, not those by its caller alone");
            }
            lines.push(
                "calm: mean of those that took less than twice the least so far, so were most likely not interrupted",
            );
        }
        if self.statistics && corrected {
            lines.push("mean and calm are corrected; least, greatest and SD are as measured");
        }
        lines
    }
}

/// How costs grow with the size, with the bounds of 95 % confidence.
pub(crate) fn growth_line(growth: &Growth) -> String {
    let Growth { exponent, low, high } = growth;
    format!("grows as n^{exponent:.2} ({low:.2} to {high:.2})")
}

fn row(cells: &[String], width: usize) -> String {
    cells.iter().map(|cell| format!("{cell:>width$}  ")).collect()
}
