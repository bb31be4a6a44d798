//! The options of a program of benchmarks.

use std::ffi::OsString;

use clap::Parser;

/// Measure the benchmarks of this program
#[derive(Debug, Parser)]
#[command(name = "cargo bench --", disable_version_flag = true)]
pub(crate) struct Options {
    /// Only benchmarks whose names contain one of these
    #[arg(value_name = "FILTER")]
    pub(crate) filters: Vec<String>,
    /// Only benchmarks whose names are equal to a FILTER
    #[arg(long)]
    pub(crate) exact: bool,
    /// Leave out benchmarks whose names contain this
    #[arg(long, value_name = "FILTER")]
    pub(crate) skip: Vec<String>,
    /// List the benchmarks
    #[arg(long)]
    pub(crate) list: bool,
    /// Call each benchmark once, without measuring it
    #[arg(long, conflicts_with_all = ["count", "save_baseline", "baseline"])]
    pub(crate) test: bool,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
    /// How often every benchmark takes its turn
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rounds: u32,
    /// Count the instructions of one call instead of timing it
    #[arg(long)]
    pub(crate) count: bool,
    /// Count, and keep the counts under this name
    #[arg(long, value_name = "NAME", value_parser = plain_name)]
    pub(crate) save_baseline: Option<String>,
    /// Count, and compare with the counts kept under this name
    #[arg(long, value_name = "NAME", value_parser = plain_name)]
    pub(crate) baseline: Option<String>,
    /// Exit with status 1 where a benchmark grew by more than this, such as 1%
    #[arg(long, value_name = "PERCENT", requires = "baseline")]
    pub(crate) limit: Option<String>,
    /// `pretty` for a table, `json` for one object a line, `terse` for a list without its sum
    #[arg(long, value_enum, default_value = "pretty")]
    pub(crate) format: Format,
    /// Call this benchmark to be counted
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) run_once: Option<String>,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Pretty,
    Terse,
    Json,
}

impl Options {
    pub(crate) fn of(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let name = OsString::from("cargo bench --");
        Self::try_parse_from(std::iter::once(name).chain(arguments))
    }

    /// Whether a benchmark of this name is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let fits = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skip.iter().any(fits)
    }

    /// Whether instructions are counted.
    pub(crate) fn counts(&self) -> bool {
        self.count || self.baseline.is_some() || self.save_baseline.is_some()
    }
}

/// A name that is a file's name as it stands.
fn plain_name(name: &str) -> Result<String, String> {
    match name.is_empty() || name.starts_with('.') || name.contains('/') {
        true => Err("a baseline's name is a folder's name".to_owned()),
        false => Ok(name.to_owned()),
    }
}
