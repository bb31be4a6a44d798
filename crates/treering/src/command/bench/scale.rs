//! `treering bench scale`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use treering_analysis::correct;
use treering_compare::{FunctionPart, LEAST_SIZES, NotScalable, Options, Scaling, Sized, compare, growth};
use treering_measure::{Ended, Launch, LaunchError};
use treering_plot::{GrowthPanel, GrowthPlot, growth_svg};
use treering_profile::{Profile, Unit};
use treering_report::{GrowthView, Style, grouped};
use treering_temporary::Folder;

use super::drawing::write_plot;
use super::measuring::Stop;
use super::parameters::{Parameter, Template, check_used};
use crate::arguments::seconds;
use crate::ending::{ended_by, signal_name};
use crate::failure::{Context as _, Failure, Outcome};
use crate::open::open_profile;
use crate::output::check_plot_target;
use crate::working::Working;
use crate::{pager, terminal};

/// Show how the cost of each function grows with the size of the input
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The program is counted exactly, once for each size. Five or six sizes, each twice the one before, \
tell forms of growth apart best. The first row is the function that makes the run grow. See \
docs/growth.md.

Examples:
  treering bench scale -p size=250..8000*2 -- ./solve {size}
  treering bench scale -p size=1000..32000*2 -o growth.svg -- sh -c './solve < input.{size}'
  treering bench scale --files 250=a.trg 500=b.trg 1000=c.trg      profiles of any kind")]
pub struct Scale {
    /// The size, as {NAME} in the command: a list or a range, 250..8000*2 doubles; others may have one value
    #[arg(short, long = "parameter", value_name = "NAME=VALUES", required_unless_present = "files")]
    parameters: Vec<Parameter>,
    /// Profiles that are there, with the size of each
    #[arg(long, value_name = "SIZE=FILE", num_args = 1.., conflicts_with_all = ["parameters", "command", "timeout"])]
    files: Vec<SizedFile>,
    /// The metric [default: the first one that the largest has]
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// Show at most N functions [default: those that make a thousandth of the run, and at most 24]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print JSON; every key is described in docs/json.md
    #[arg(long)]
    json: bool,
    /// Draw the growth of the largest functions as an SVG picture as well, as PNG where the file is called .png
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    /// Replace FILE.svg even if it is not a plot
    #[arg(long, requires = "output")]
    force: bool,
    /// Give up when a run takes longer
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "files", value_name = "PROGRAM ARGS")]
    command: Vec<OsString>,
}

/// A profile that is there, and its size.
#[derive(Clone, Debug)]
struct SizedFile {
    size: f64,
    file: PathBuf,
}

impl FromStr for SizedFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (size, file) = text.split_once('=').ok_or("it is not of the form SIZE=FILE, as 250=a.trg")?;
        Ok(Self { size: number(size)?, file: file.into() })
    }
}

fn number(text: &str) -> Result<f64, String> {
    let size: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if size.is_finite() { Ok(size) } else { Err(format!("{text:?} is not a size")) }
}

/// The values of the size, each with its text.
type Sizes = Vec<(f64, String)>;

/// The profiles that were counted or read.
struct Runs {
    parameter: String,
    profiles: Vec<(f64, Profile)>,
    /// Sentences on how far counts can be trusted.
    notes: Vec<String>,
}

impl Scale {
    /// Does it.
    pub fn run(self) -> Outcome {
        if let Some(output) = &self.output {
            let inputs: Vec<_> = self.files.iter().map(|sized| sized.file.as_path()).collect();
            check_plot_target(output, &inputs, self.force)?;
        }
        let runs = if self.files.is_empty() { self.count()? } else { self.read()? };
        let working = Working::on("fitting");
        let sized: Vec<Sized<'_>> =
            runs.profiles.iter().map(|(size, profile)| Sized { size: *size, profile }).collect();
        let scaling = growth(&sized, self.metric.as_deref()).map_err(refused)?;
        drop(working);
        let style = Style { colour: terminal::colour(), width: terminal::width() };
        let view = GrowthView { parameter: &runs.parameter, limit: self.top, notes: &runs.notes };
        match (self.json, terminal::has_unicode()) {
            (true, _) => pager::print(&treering_report::growth_json(&scaling, view))?,
            (false, true) => pager::print(&treering_report::growth_text(&scaling, view, &style))?,
            (false, false) => {
                pager::print(&treering_report::in_ascii(&treering_report::growth_text(
                    &scaling, view, &style,
                )))?;
            }
        }
        if let Some(output) = &self.output {
            let svg = growth_svg(&self.plot(&scaling, &runs.parameter));
            write_plot(output, &svg)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> Result<Runs, Failure> {
        let read = |sized: &SizedFile| {
            let opened = open_profile(&sized.file)?;
            opened.print_warnings();
            Ok((sized.size, correct(&opened.profile).profile.into_owned()))
        };
        let profiles = self.files.iter().map(read).collect::<Result<_, Failure>>()?;
        Ok(Runs { parameter: "n".to_owned(), profiles, notes: Vec::new() })
    }

    fn count(&self) -> Result<Runs, Failure> {
        let (parameter, sizes, template) = self.sizes()?;
        let folder = Folder::create("scale").context("cannot make a folder for the profiles")?;
        let stop = Stop::at_signals()?;
        let count = |text: &str, place: String| {
            let _working = Working::on(format!("counting {parameter} = {text} ({place})"));
            let file = folder.path().join("run.trg");
            let words = template.fill(|name| self.value(name, text));
            let counted = self.count_one(words, &file, stop.flag());
            counted.map_err(|failure| failure.of(&parameter, text, &stop))?;
            let opened = open_profile(&file)?;
            std::fs::remove_file(&file).context("cannot remove a profile")?;
            Ok::<Profile, Failure>(opened.profile)
        };
        let mut profiles = Vec::new();
        for (at, (size, text)) in sizes.iter().enumerate() {
            profiles.push((*size, count(text, format!("{} of {}", at + 1, sizes.len()))?));
        }
        let again = count(&sizes[0].1, "again".to_owned())?;
        let notes = vec![repeated(&profiles[0].1, &again, &format!("{parameter} = {}", sizes[0].1))];
        Ok(Runs { parameter, profiles, notes })
    }

    /// The name of the size, its values with their texts, and the command.
    fn sizes(&self) -> Result<(String, Sizes, Template), Failure> {
        let several: Vec<&Parameter> = self.parameters.iter().filter(|of| of.values.len() > 1).collect();
        let size = match several[..] {
            [size] => size,
            [] => return Err(refused(NotScalable::TooFew(1))),
            [first, second, ..] => {
                let message = format!("both {} and {} have several values", first.name, second.name);
                return Err(Failure::new(message).hint("give one value to all but the size"));
            }
        };
        let mut names: Vec<&str> = self.parameters.iter().map(|of| of.name.as_str()).collect();
        let template = Template::new(&self.command, &names).map_err(Failure::new)?;
        check_used(&self.parameters, |name| template.has(name)).map_err(Failure::new)?;
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::new(format_args!("the parameter {} is there twice", twice[0])));
        }
        let sized = |text: &String| Ok((number(text)?, text.clone()));
        let sizes = size.values.iter().map(sized).collect::<Result<Vec<_>, String>>();
        let mut sizes = sizes.context(&size.name)?;
        sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
        if sizes.len() < LEAST_SIZES {
            return Err(refused(NotScalable::TooFew(sizes.len())));
        }
        if sizes[0].0 < 1.0 {
            return Err(refused(NotScalable::TooSmall(sizes[0].0)));
        }
        Ok((size.name.clone(), sizes, template))
    }

    /// The value of a parameter, which is `size` for the one that has several.
    fn value(&self, name: &str, size: &str) -> OsString {
        let parameter = self.parameters.iter().find(|of| of.name == name);
        match parameter.map(|of| of.values.as_slice()) {
            Some([only]) => only.into(),
            _ => size.into(),
        }
    }

    fn count_one(
        &self,
        words: Vec<OsString>,
        file: &std::path::Path,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), NotCounted> {
        let own = std::env::current_exe()
            .map_err(|error| NotCounted::Other(format!("cannot find treering: {error}")))?;
        let mut all: Vec<OsString> = vec![own.into()];
        all.extend(["count", "--quiet", "--tree", "--fixed", "-o"].map(OsString::from));
        all.extend([file.into(), "--".into()]);
        all.extend(words);
        let launch = Launch { timeout: self.timeout, stop: Some(Arc::clone(stop)), ..Launch::new(all) };
        let sample = match treering_measure::run(&launch) {
            Ok(sample) => sample,
            Err(LaunchError::Stopped) => return Err(NotCounted::Stopped),
            Err(error) => return Err(NotCounted::Other(error.to_string())),
        };
        let how = match sample.ended {
            Ended::Exited(0) => return Ok(()),
            Ended::Exited(status) => format!("ended with status {status}"),
            Ended::Killed(signal) => format!("was ended by {}", signal_name(signal)),
        };
        let last = sample.last_error.unwrap_or_default();
        let last = if last.is_empty() { String::new() } else { format!("; its last line: {last}") };
        Err(NotCounted::Other(format!("{how}{last}")))
    }

    /// The culprit with all it calls, and the largest functions elsewhere.
    fn plot(&self, scaling: &Scaling, parameter: &str) -> GrowthPlot {
        const PANELS: usize = 6;
        let (cause, share) = treering_report::growth_verdict(scaling, parameter);
        let mut panels = Vec::new();
        let parts: Vec<&FunctionPart> = match &scaling.culprit {
            Some(culprit) => {
                let name = &scaling.functions[culprit.function].name;
                panels.push(panel(scaling, parameter, name, "with all it calls", &culprit.total_cost, true));
                culprit.elsewhere.iter().chain(&culprit.parts[1..]).collect()
            }
            None => Vec::new(),
        };
        let own = parts.iter().map(|part| (part.function, &part.self_cost));
        let all =
            scaling.functions.iter().enumerate().map(|(function, growth)| (function, &growth.self_cost));
        let shown: Vec<_> = if parts.is_empty() { all.collect() } else { own.collect() };
        let mut shown: Vec<_> = shown.into_iter().filter(|(_, curve)| scaling.share(curve) > 0.0).collect();
        shown.sort_by(|a, b| scaling.share(b.1).total_cmp(&scaling.share(a.1)));
        for (function, curve) in shown.into_iter().take(PANELS - panels.len()) {
            panels.push(panel(scaling, parameter, &scaling.functions[function].name, "self", curve, false));
        }
        GrowthPlot {
            title: format!("{cause}; {share}"),
            subtitle: format!(
                "{} · {} sizes · grey: the whole run, the same in each · dotted: foretold",
                scaling.metric,
                scaling.sizes.len()
            ),
            run: points(scaling, &scaling.run.costs),
            unit: match scaling.unit {
                Unit::Nanoseconds => treering_plot::Unit::Nanoseconds,
                Unit::Bytes => treering_plot::Unit::Bytes,
                _ => treering_plot::Unit::Count,
            },
            foretold: scaling.foretold(),
            panels,
        }
    }
}

fn points(scaling: &Scaling, costs: &[u64]) -> Vec<(f64, f64)> {
    scaling.sizes.iter().zip(costs).map(|(size, cost)| (*size, *cost as f64)).collect()
}

fn panel(
    scaling: &Scaling,
    parameter: &str,
    name: &str,
    note: &str,
    curve: &treering_compare::Curve,
    is_culprit: bool,
) -> GrowthPanel {
    const STEPS: i32 = 12;
    let settled = if curve.is_settled { "" } else { ", not settled" };
    let mark = if curve.is_settled { "" } else { " ?" };
    let foretold = (0..=STEPS).map(|step| {
        let ratio = scaling.foretold() / scaling.largest();
        let size = scaling.largest() * ratio.powf(f64::from(step) / f64::from(STEPS));
        (size, curve.model.at(size))
    });
    GrowthPanel {
        name: name.to_owned(),
        note: format!("{note}{settled}"),
        form: format!("{}{mark}", curve.growth(parameter)),
        slope: curve.slope,
        shares: (scaling.share(curve), scaling.foretold_share(curve)),
        points: points(scaling, &curve.costs),
        foretold: foretold.collect(),
        is_culprit,
    }
}

/// Why a run was not counted.
enum NotCounted {
    /// A signal ended it all.
    Stopped,
    /// In words that follow the size.
    Other(String),
}

impl NotCounted {
    fn of(self, parameter: &str, size: &str, stop: &Stop) -> Failure {
        match self {
            // This process then ends by the signal.
            Self::Stopped => Failure::new("interrupted").status(stop.signal().map_or(2, ended_by)),
            Self::Other(why) => Failure::new(format_args!("{parameter} = {size}: {why}")),
        }
    }
}

fn refused(error: NotScalable) -> Failure {
    let failure = Failure::new(&error);
    match error {
        NotScalable::TooFew(_) => {
            failure.hint("give five or six, each twice the one before: -p n=250..8000*2")
        }
        NotScalable::NotMeasured(..) | NotScalable::NoMetric => {
            failure.hint("record all in the same way; treering report --metrics lists those of a profile")
        }
        _ => failure,
    }
}

/// How far two counts of the same run agree.
fn repeated(first: &Profile, second: &Profile, size: &str) -> String {
    const MUCH: f64 = 0.01;
    let Ok(difference) = compare(first, second, &Options::default()) else {
        return format!("{size} counted twice: cannot be compared");
    };
    let moved: u128 =
        difference.functions.iter().map(|function| function.self_cost.change().unsigned_abs()).sum();
    if moved == 0 {
        return format!("{size} counted twice: no difference");
    }
    let run = difference.run.base.cost;
    let part = moved as f64 / run.max(1) as f64;
    let most = difference.functions.iter().max_by_key(|function| function.self_cost.change().unsigned_abs());
    let note = format!(
        "{size} counted twice: {} of {} {} differ ({:.2} %), {} most",
        grouped(u64::try_from(moved).unwrap_or(u64::MAX)),
        grouped(run),
        difference.metric,
        part * 100.0,
        most.map_or("", |function| function.name.as_str())
    );
    if part > MUCH {
        tell!("warning: {note}: the program is not deterministic, so that growth is uncertain");
        tell!("hint: hold what changes from run to run, as PYTHONHASHSEED=0 does for Python");
    }
    note
}
