//! `treering export`.

mod coverage;
mod picture;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use treering_analysis::{
    Corrected, Selection, TotalSource, add_calls_metric, correct, default_metric, with_apportioned_arcs,
};
use treering_formats::{Dropped, Format, Writing, callgrind, cbs_xml as cbs_xml_format, gmon};
use treering_profile::{Metadata, Metric, MetricId, Profile, RecursionRule, Unit};
use treering_report::{Picture, cbs_xml};
use treering_symbols::{Options, code_layout};

use crate::command::report::{Moment, Part, TimePart};
use crate::failure::{Context as _, Failure, Outcome};
use crate::metric;
use crate::open::{Opened, open_profile_of};
use crate::output::{
    check_coverage_target, check_picture_target, check_target, clean_up_at_signals, write_whole,
};
use crate::word::word;

use picture::{PictureOptions, table};

/// Write a profile in another tool's format
#[derive(Debug, clap::Args)]
pub struct Export {
    /// The profile; `-` for standard input
    #[arg(default_value = "treering.trg")]
    file: PathBuf,
    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: To,
    /// The file to write; `-` for standard output, which is the default for folded stacks. For
    /// the others it is FILE with another extension. In its name, `%p` stands for
    /// the process, `%h` for the machine, `%r` for the rank, and `%%` for %
    #[arg(short, long, value_name = "OUT", value_parser = crate::output_name::parser())]
    output: Option<PathBuf>,
    /// The metric to write, for formats that hold a single one [default: the first that does not count
    /// another's samples]
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// For a gmon.out as FILE: the program that wrote it [default: a.out, or the one beside it that fits]
    #[arg(long, value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Write stacks of any size: those of deep trees are repeated for every node
    #[arg(long)]
    yes: bool,
    /// Replace OUT even if Treering did not write it
    #[arg(long)]
    force: bool,
    /// Write costs as they were measured, without subtracting the cost of measuring
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    picture: PictureOptions,
    #[command(flatten)]
    part: Part,
    /// Write only what happened from this time of the run on: 2.1s, 300ms, 30%
    #[arg(long, value_name = "TIME", help_heading = "Parts of the run")]
    from: Option<Moment>,
    /// Write only what happened before this time
    #[arg(long, value_name = "TIME", help_heading = "Parts of the run")]
    until: Option<Moment>,
    /// Write only what happened from marks of this name on, up to the next mark
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "until"], help_heading = "Parts of the run")]
    phase: Option<String>,
}

/// The program that belongs to a written gmon.out.
struct Gmon {
    /// The path of the program.
    path: String,
    dropped: Dropped,
}

/// The formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// A file that can be read again.
    File(Format),
    /// A flame graph.
    Svg,
    /// A call graph.
    Dot,
    /// A flat profile for spreadsheets.
    Csv,
    /// Coverage for LCOV.
    Lcov,
    /// Coverage as gcov's JSON.
    GcovJson,
    /// Coverage as DynamoRIO's drcov.
    Drcov,
}

impl ValueEnum for To {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<To>> = LazyLock::new(|| {
            let exported = |format: &Format| format.export_help().is_some();
            let files = Format::ALL.into_iter().filter(exported).map(To::File);
            files.chain([To::Svg, To::Dot, To::Csv, To::Lcov, To::GcovJson, To::Drcov]).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            // Perfetto and the format's own document call it so.
            Self::File(format @ Format::ChromeTrace) => {
                PossibleValue::new(format.as_str()).alias("trace-event").help(format.export_help()?)
            }
            Self::File(format) => PossibleValue::new(format.as_str()).help(format.export_help()?),
            Self::Svg => PossibleValue::new("svg").help("A flame graph as a picture, without a script"),
            Self::Dot => PossibleValue::new("dot").help("The call graph for Graphviz"),
            Self::Csv => PossibleValue::new("csv").help("The flat profile of one metric for spreadsheets"),
            Self::Lcov => PossibleValue::new("lcov")
                .help("Executions of lines and branches of a counted program, for LCOV's genhtml"),
            Self::GcovJson => PossibleValue::new("gcov-json").help("The same as gcov's JSON"),
            Self::Drcov => PossibleValue::new("drcov")
                .help("Executed blocks of a counted program, for tools that read DynamoRIO's drcov"),
        })
    }
}

impl To {
    /// The format that is written; `None` for a picture.
    fn format(self) -> Option<Format> {
        match self {
            Self::File(format) => Some(format),
            Self::Svg | Self::Dot | Self::Csv | Self::Lcov | Self::GcovJson | Self::Drcov => None,
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::File(format) => format.extension(),
            Self::Svg => "svg",
            Self::Dot => "dot",
            Self::Csv => "csv",
            Self::Lcov => "info",
            Self::GcovJson => "gcov.json",
            Self::Drcov => "drcov",
        }
    }

    /// Whether it says which code ran.
    fn is_coverage(self) -> bool {
        matches!(self, Self::Lcov | Self::GcovJson | Self::Drcov)
    }
}

impl Export {
    /// Does it.
    pub fn run(self) -> Outcome {
        clean_up_at_signals();
        self.picture.check(self.to)?;
        let path = self.path();
        match self.to.format() {
            Some(format) => check_target(&path, &[&self.file], format, self.force)?,
            None if self.to.is_coverage() => check_coverage_target(&path, &[&self.file], self.force)?,
            None => check_picture_target(&path, &[&self.file], self.force)?,
        }
        let opened = open_profile_of(&self.file, self.program.as_deref())?;
        opened.print_warnings();
        self.export(opened, &path)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes a profile to a place that may be written to.
    pub(super) fn export(&self, mut opened: Opened, path: &Path) -> Result<(), Failure> {
        if self.to.is_coverage() {
            if !self.time().is_everything() {
                return Err(Failure::new("coverage is known of the whole run only, not of a part of it"));
            }
            return self.write_coverage(opened.profile, path);
        }
        let selection = self.selection(&mut opened.profile)?;
        match self.to.format() {
            Some(format) => self.write_format(format, opened, &selection, path),
            None => self.write_picture(&mut opened.profile, &selection, path),
        }
    }

    /// The part of the run to write.
    fn time(&self) -> TimePart {
        TimePart { from: self.from, to: self.until, phase: self.phase.clone() }
    }

    /// The part to keep. Its notes are printed, as not all formats have room for them.
    fn selection(&self, profile: &mut Profile) -> Result<Selection, Failure> {
        let known = profile.metadata.notes.len();
        let cut = self.time().cut(profile, self.raw);
        let checked = cut.and_then(|()| self.time().check_metric(profile, self.metric.as_deref()));
        checked.map_err(|failure| failure.of(self.file.display()))?;
        let selection = self.part.selection(profile)?;
        profile.metadata.notes[known..].iter().for_each(|note| tell!("note: {}", note.0));
        Ok(selection)
    }

    fn write_format(
        &self,
        format: Format,
        mut opened: Opened,
        selection: &Selection,
        path: &Path,
    ) -> Result<(), Failure> {
        let profile = std::mem::replace(&mut opened.profile, Profile::new(RecursionRule::Full));
        opened.profile = self.as_reported(profile);
        if !selection.is_everything() {
            let part = selection.apply(&opened.profile).context(self.file.display())?.into_owned();
            opened.profile = part;
        }
        let metric = self.chosen_metric(&opened.profile)?;
        if format == Format::ChromeTrace {
            let is_time = |metric: MetricId| opened.profile.metrics[metric.index()].unit == Unit::Nanoseconds;
            metric
                .filter(|&metric| is_time(metric))
                .ok_or_else(|| self.no_time(&opened.profile, "trace events hold"))?;
        }
        self.check_size(format, &opened.profile, metric)?;
        let mut dropped = Dropped::default();
        if format == Format::Gmon {
            let (file, program) = self.gmon(&opened.profile, metric)?;
            write_whole(path, |output| file.write(output))?;
            dropped = program.dropped;
            tell!("read it with: gprof {} {}", word(Path::new(&program.path)), word(path));
        } else if format == Format::CbsXml {
            let file = self.cbs_xml(&opened.profile, metric)?;
            write_whole(path, |output| output.write_all(file.text.as_bytes()))?;
            dropped.notes = file.left_out;
        } else {
            write_whole(path, |output| {
                dropped = self.write(format, &opened, metric, output)?;
                Ok::<_, io::Error>(())
            })?;
        }
        self.tell(format, &opened.profile, path, metric, &dropped);
        Ok(())
    }

    /// Gives the profile the costs that reports show, and a note of it for formats that have a place for one.
    fn as_reported(&self, profile: Profile) -> Profile {
        let corrected = correct(&profile);
        let (metric, removed) = (corrected.metric, corrected.removed);
        let subtracted = metric.filter(|_| !self.raw).map(|_| corrected.profile.into_owned());
        let Some(metric) = metric else { return profile };
        let name = &profile.metrics[metric.index()].name;
        let text = match self.raw {
            true => format!("not subtracted: {name} is as it was measured"),
            false => format!("subtracted: {removed} ns of {name}, as reports do"),
        };
        let mut written = subtracted.unwrap_or(profile);
        tell!(
            "{} is {text}{}",
            Metadata::MEASURING,
            if self.raw { "" } else { "; --raw writes what was measured" }
        );
        written.metadata.call_bias = None;
        written.metadata.note(format!("{} is {text}", Metadata::MEASURING));
        written.metadata.parameters.insert(Metadata::MEASURING.to_owned(), text);
        written
    }

    fn write_picture(
        &self,
        profile: &mut Profile,
        selection: &Selection,
        path: &Path,
    ) -> Result<(), Failure> {
        let metric = self.metric_to_draw(profile)?;
        let whole = if self.raw { Corrected::raw(profile) } else { correct(profile) };
        let basis = whole.basis(metric).of_part(profile, selection);
        let part = whole.part(selection).context(self.file.display())?;
        if part.profile.run_cost(metric) == 0 {
            let name = &part.profile.metrics[metric.index()].name;
            let file = self.file.display();
            return Err(Failure::new(format_args!(
                "{file}: no {name} was measured, so there is nothing to draw"
            ))
            .hint(format_args!("to see what was: treering report {} --metrics", word(&self.file))));
        }
        let picture = match self.to {
            To::Dot => self.picture.graph(&part, &basis),
            To::Csv => table(&part, &basis),
            _ => self.picture.flame_graph(&self.file, &part.profile, &basis)?,
        };
        write_whole(path, |output| output.write_all(picture.text.as_bytes()))?;
        let what = match self.to {
            To::Dot => "call graph",
            To::Csv => "flat profile",
            _ => "flame graph",
        };
        let total = total(&part.profile, metric, &part.profile.metrics[metric.index()]);
        tell!("wrote the {what} to {}: {total}", place(path));
        if matches!(self.to, To::Dot) && is_estimated(&part.profile) {
            tell!("total costs are {}; ~ and ≥ mark them", how_estimated(&part.profile));
        }
        picture.left_out.iter().for_each(|what| tell!("{what}"));
        Ok(())
    }

    /// The metric asked for, or the first one; the number of calls where nothing else was measured.
    fn metric_to_draw(&self, profile: &mut Profile) -> Result<MetricId, Failure> {
        let costs_something = |metric: &MetricId| profile.run_cost(*metric) > 0 || !profile.tree.has_calls();
        let chosen = self.chosen_metric(profile)?;
        let chosen = chosen.filter(|metric| self.metric.is_some() || costs_something(metric));
        let chosen = chosen.or_else(|| profile.tree.has_calls().then(|| add_calls_metric(profile)));
        chosen.ok_or_else(|| Failure::new(format_args!("{}: nothing was measured", self.file.display())))
    }

    fn path(&self) -> PathBuf {
        match (&self.output, self.to) {
            (Some(path), _) => path.clone(),
            (None, To::File(Format::Folded)) => PathBuf::from("-"),
            (None, _) if self.file == Path::new("-") => PathBuf::from("-"),
            (None, to) => self.file.with_extension(to.extension()),
        }
    }

    /// Refuses a format that would fill a disk: in stacks, every node has its callers again.
    fn check_size(&self, format: Format, profile: &Profile, metric: Option<MetricId>) -> Result<(), Failure> {
        const LARGE: u64 = 1 << 30;
        let size = match (format.writing(), metric) {
            (Writing::Whole { size, .. }, _) => size(profile),
            (Writing::OneMetric { size, .. }, Some(metric)) => size(profile, metric),
            _ => 0,
        };
        if self.yes || size <= LARGE {
            return Ok(());
        }
        let gigabytes = size as f64 / LARGE as f64;
        let packed = if format == Format::Pprof { " before it is compressed" } else { "" };
        let message = format!("{format} would take about {gigabytes:.1} GiB{packed}: the stacks are deep");
        Err(Failure::new(message)
            .hint("--to callgrind holds arcs between functions and stays small")
            .hint("to write it anyway: --yes"))
    }

    fn write(
        &self,
        format: Format,
        opened: &Opened,
        metric: Option<MetricId>,
        output: &mut dyn Write,
    ) -> io::Result<Dropped> {
        match (format.writing(), metric) {
            (Writing::Whole { .. }, _) if format == Format::Callgrind && is_estimated(&opened.profile) => {
                callgrind::write_estimated(&with_apportioned_arcs(opened.profile.clone()), output)
            }
            (Writing::Whole { write, .. }, _) => write(&opened.profile, output),
            (Writing::OneMetric { write, .. }, Some(metric)) => write(&opened.profile, metric, output),
            // A format that may refuse the profile is written apart.
            _ => Ok(Dropped::default()),
        }
    }

    /// The part of the profile that a gmon.out can hold, and the program that gprof needs beside it.
    fn gmon(&self, profile: &Profile, metric: Option<MetricId>) -> Result<(gmon::Gmon, Gmon), Failure> {
        let refused = |why: gmon::NotExportable| {
            let failure = Failure::new(format_args!("{}: {why}", self.file.display()));
            failure.hint(
                "treering record, count and instrumented programs know them; text of other tools does not",
            )
        };
        let metric = metric.ok_or_else(|| refused(gmon::NotExportable::NoMetric))?;
        let plain = gmon::of_profile(profile, metric, None, gmon::Layout::default()).map_err(refused)?;
        // gprof takes the width of addresses and the order of bytes from the program.
        let layout = code_layout(Path::new(&plain.1), &Options::default());
        let layout = layout.map(|code| gmon::Layout { wide: code.wide, big_endian: code.big_endian });
        let (file, path, dropped) = match layout {
            Ok(layout) => gmon::of_profile(profile, metric, None, layout).map_err(refused)?,
            Err(_) => plain,
        };
        Ok((file, Gmon { path, dropped }))
    }

    /// The call graph as XML of CBS.
    fn cbs_xml(&self, profile: &Profile, metric: Option<MetricId>) -> Result<Picture, Failure> {
        let file = metric.and_then(|metric| cbs_xml(profile, metric, cbs_xml_format::MARK));
        file.ok_or_else(|| self.no_time(profile, "XML of CBS holds"))
    }

    /// The metric to write is no time, and a format `holds` nothing else.
    fn no_time(&self, profile: &Profile, holds: &str) -> Failure {
        let times = profile.cost_metrics().filter(|(_, metric)| metric.unit == Unit::Nanoseconds);
        let times: Vec<_> = times.map(|(_, metric)| metric.name.as_str()).collect();
        let failure = Failure::new(format_args!("{}: {holds} times only", self.file.display()));
        match times.is_empty() {
            true => failure.hint("the profile has none; --to csv writes any metric"),
            false => failure.hint(format_args!("it has: --metric {}", times.join(", "))),
        }
    }

    /// The metric for formats that hold one; nothing if the profile has none.
    fn chosen_metric(&self, profile: &Profile) -> Result<Option<MetricId>, Failure> {
        let Some(name) = &self.metric else { return Ok(default_metric(profile)) };
        let found = metric::named(profile, name).map_err(|failure| failure.of(self.file.display()))?;
        found.map(Some).ok_or_else(|| {
            let failure = Failure::new(format_args!("{} has no metric {name}", self.file.display()));
            failure.hint(format_args!("it has: {}", metric::names(profile)))
        })
    }

    /// Says on standard error what was written, what it adds up to, and what was dropped.
    fn tell(
        &self,
        format: Format,
        profile: &Profile,
        path: &Path,
        metric: Option<MetricId>,
        dropped: &Dropped,
    ) {
        let single = metric.filter(|_| format.holds_one_metric());
        let costs = profile.cost_metrics();
        let written = costs.filter(|(id, _)| single.is_none_or(|single| single == *id));
        let totals: Vec<_> = written.map(|(id, metric)| total(profile, id, metric)).collect();
        tell!("wrote {format} to {}: {}", place(path), totals.join(", "));
        if format == Format::Callgrind && is_estimated(profile) {
            let how = how_estimated(profile);
            tell!("inclusive costs are {how}; the file says that they are estimates");
        }
        for note in &dropped.notes {
            tell!("dropped: {note}");
        }
    }
}

/// The user's name for an output.
fn place(path: &Path) -> Cow<'_, str> {
    if path == Path::new("-") { "standard output".into() } else { path.to_string_lossy() }
}

/// Why total costs are not known.
fn how_estimated(profile: &Profile) -> &'static str {
    match profile.is_arcs_only() {
        true => "estimated from calls; treering count --tree measures them",
        false => "incomplete, as contexts were folded; treering count --max-nodes keeps more",
    }
}

/// Whether a profile has arcs whose costs were not measured, or not all of them.
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
