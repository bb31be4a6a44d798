//! `treering export`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use treering_analysis::{TotalSource, default_metric, with_apportioned_arcs};
use treering_formats::{Dropped, Format, callgrind, folded, pprof};
use treering_profile::{Metric, MetricId, Profile, Unit};

use crate::failure::{Failure, Outcome};
use crate::open::{Opened, open_profile};
use crate::output::{check_target, clean_up_at_signals, write_whole};

/// Write a profile in another tool's format
#[derive(Debug, clap::Args)]
pub struct Export {
    /// The profile; `-` for standard input
    file: PathBuf,
    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: To,
    /// The file to write; `-` for standard output, which is the default for folded stacks. For
    /// the others it is FILE with another extension
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// For folded stacks, which hold a single metric: the one to write. By default the first one
    /// that is no count of another's samples
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// Write stacks of any size: those of deep trees are repeated for every node
    #[arg(long)]
    yes: bool,
    /// Replace OUT even if it is no profile that Treering wrote
    #[arg(long)]
    force: bool,
}

/// A format that can be written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum To {
    /// Stacks as text, for flame graphs
    Folded,
    /// For go tool pprof, Speedscope and others
    Pprof,
    /// For KCachegrind and callgrind_annotate
    Callgrind,
}

impl To {
    fn format(self) -> Format {
        match self {
            Self::Folded => Format::Folded,
            Self::Pprof => Format::Pprof,
            Self::Callgrind => Format::Callgrind,
        }
    }
}

impl Export {
    /// Does it.
    pub fn run(self) -> Outcome {
        clean_up_at_signals();
        let path = self.path();
        check_target(&path, &[&self.file], self.to.format(), self.force)?;
        let opened = open_profile(&self.file)?;
        opened.print_warnings();
        let metric = self.chosen_metric(&opened.profile)?;
        self.check_size(&opened.profile, metric)?;
        let mut dropped = Dropped::default();
        write_whole(&path, |output| {
            dropped = self.write(&opened, metric, output)?;
            Ok::<_, io::Error>(())
        })?;
        self.tell(&opened.profile, &path, metric, &dropped);
        Ok(ExitCode::SUCCESS)
    }

    fn path(&self) -> PathBuf {
        match (&self.output, self.to) {
            (Some(path), _) => path.clone(),
            (None, To::Folded) => PathBuf::from("-"),
            (None, _) if self.file == Path::new("-") => PathBuf::from("-"),
            (None, to) => self.file.with_extension(to.format().extension()),
        }
    }

    /// Refuses what would fill a disk: in folded stacks and pprof, every node has its whole stack.
    fn check_size(&self, profile: &Profile, metric: Option<MetricId>) -> Result<(), Failure> {
        const LARGE: u64 = 1 << 30;
        let size = match (self.to, metric) {
            (To::Folded, Some(metric)) => folded::size(profile, metric),
            (To::Pprof, _) => pprof::size(profile),
            _ => 0,
        };
        if self.yes || size <= LARGE {
            return Ok(());
        }
        let (format, gigabytes) = (self.to.format(), size as f64 / LARGE as f64);
        let packed = if matches!(self.to, To::Pprof) { " before it is compressed" } else { "" };
        let message = format!("{format} would take about {gigabytes:.1} GiB{packed}: the stacks are deep");
        Err(Failure::new(message)
            .hint("--to callgrind holds arcs between functions and stays small")
            .hint("to write it nevertheless: --yes"))
    }

    fn write(
        &self,
        opened: &Opened,
        metric: Option<MetricId>,
        output: &mut dyn Write,
    ) -> io::Result<Dropped> {
        match (self.to, metric) {
            (To::Folded, Some(metric)) => folded::write(&opened.profile, metric, output),
            (To::Folded, None) => Ok(Dropped::default()),
            (To::Pprof, _) => pprof::write(&opened.profile, output),
            (To::Callgrind, _) if is_estimated(&opened.profile) => {
                callgrind::write_estimated(&with_apportioned_arcs(opened.profile.clone()), output)
            }
            (To::Callgrind, _) => callgrind::write(&opened.profile, output),
        }
    }

    /// The metric for folded stacks; nothing if the profile has none.
    fn chosen_metric(&self, profile: &Profile) -> Result<Option<MetricId>, Failure> {
        let Some(name) = &self.metric else { return Ok(default_metric(profile)) };
        let costs = |metric: &MetricId| profile.cost_metrics().any(|(known, _)| known == *metric);
        match profile.find_metric(name).filter(costs) {
            Some(metric) => Ok(Some(metric)),
            None => {
                let known: Vec<_> = profile.cost_metrics().map(|(_, metric)| metric.name.as_str()).collect();
                let failure = Failure::new(format_args!("{} has no metric {name}", self.file.display()));
                Err(failure.hint(format_args!("it has: {}", known.join(", "))))
            }
        }
    }

    /// Says on standard error what was written, what it adds up to, and what was dropped.
    fn tell(&self, profile: &Profile, path: &Path, metric: Option<MetricId>, dropped: &Dropped) {
        let place = if path == Path::new("-") { "standard output".into() } else { path.to_string_lossy() };
        let single = metric.filter(|_| matches!(self.to, To::Folded));
        let costs = profile.cost_metrics();
        let written = costs.filter(|(id, _)| single.is_none_or(|single| single == *id));
        let totals: Vec<_> = written.map(|(id, metric)| total(profile, id, metric)).collect();
        tell!("wrote {} to {place}: {}", self.to.format(), totals.join(", "));
        if matches!(self.to, To::Callgrind) && is_estimated(profile) {
            let how = match profile.is_arcs_only() {
                true => "estimated from calls; treering count --tree measures them",
                false => "incomplete, as contexts were folded; treering count --max-nodes keeps more",
            };
            tell!("inclusive costs are {how}; the file says that they are estimates");
        }
        for note in &dropped.notes {
            tell!("dropped: {note}");
        }
    }
}

/// Whether a profile has arcs whose costs nobody measured, or not all of them.
fn is_estimated(profile: &Profile) -> bool {
    let mut costs = profile.metrics().filter(|(_, metric)| !metric.is_level);
    costs.any(|(metric, _)| {
        matches!(TotalSource::of(profile, metric), TotalSource::Apportioned | TotalSource::Bounded)
    })
}

fn total(profile: &Profile, id: MetricId, metric: &Metric) -> String {
    let unit = match metric.unit {
        Unit::Nanoseconds => " ns",
        Unit::Bytes => " bytes",
        _ => "",
    };
    format!("{} {}{unit}", metric.name, profile.run_cost(id))
}
