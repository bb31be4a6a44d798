//! `treering bench compare`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use treering_archive::{Archive, Error, Manifest, ProfileFile, Summary, metric};
use treering_compare::{Options, Sides, compare_with_code};
use treering_formats::trg;
use treering_measure::{FLOOR, Outcome as Certain, clock_step_ms};
use treering_profile::Profile;
use treering_report::{Rows, Style};

use super::amount::{amount, title};
use super::columns::{Side, print, table};
use super::judged::{Judged, is_time, judge};
use super::list::parameters;
use super::place::{Place, failure};
use super::series::Value;
use super::suite::Suite;
use crate::command::diff::code;
use crate::failure::{Context as _, Failure, Outcome};
use crate::terminal;

/// Compare two runs, or all runs of two versions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Always base → head, and change = head − base. Of versions, runs pair that agree in program and parameters, the \
latest of each. Where both runs have a profile, treering diff explains the change.

Exit status: 0 within the limits, also without any; 1 beyond one; 2 an error; 3 undecided.

Examples:
  treering bench compare 3fa940 7c1e02
  treering bench compare base head --suite bench.toml
  treering bench compare 5.4.8 gc400 --limit time=5% --limit memory=10%")]
pub struct Compare {
    /// The run to compare with, by the beginning of its identifier; or the name of a version
    base: String,
    /// The run to compare, or the version
    head: String,
    /// Only runs of this program
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Compare only what was counted
    #[arg(long)]
    exact: bool,
    /// Exit with status 1 if this metric grows by more than that: time=5%, memory=10%, instructions=1%
    #[arg(long, value_name = "METRIC=PERCENT", value_parser = limit)]
    limit: Vec<(String, f64)>,
    /// Take limits and the floor from this file
    #[arg(long, value_name = "FILE")]
    suite: Option<PathBuf>,
    /// Compare times of two machines all the same
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// Two runs that are compared.
struct Pair {
    base: (Summary, Manifest),
    head: (Summary, Manifest),
    judged: Vec<(String, Judged)>,
    /// The metrics of one of both alone, and whether that is the base.
    one_sided: Vec<(String, bool)>,
}

impl Compare {
    /// Does it.
    pub fn run(self) -> Outcome {
        let suite = self.suite.as_deref().map(Suite::read).transpose()?;
        let floor = suite.as_ref().and_then(Suite::floor).unwrap_or(FLOOR);
        let limits = self.limits(suite.as_ref());
        let mut archive = self.place.open_existing()?;
        let mut pairs = self.pairs(&mut archive)?;
        if !self.force && !self.exact {
            check_machines(&pairs)?;
        }
        for pair in &mut pairs {
            pair.judge(floor, self.exact);
        }
        if pairs.iter().all(|pair| pair.judged.is_empty()) {
            return Err(Failure::new("the runs have no measurement in common")
                .hint("treering bench show RUN names them"));
        }
        self.check_limits(&pairs, &limits)?;
        pairs.iter().for_each(Pair::note_one_sided);
        let mut largest: Vec<&Pair> = pairs.iter().collect();
        largest.sort_by(|a, b| b.size().total_cmp(&a.size()));
        let explained = largest.iter().find_map(|pair| pair.explain(&archive).transpose()).transpose()?;
        let is_free =
            |pair: &Pair| suite.as_ref().is_some_and(|suite| suite.is_competitor(&pair.head.1.program));
        let status = status(pairs.iter().filter(|pair| !is_free(pair)), &limits);
        if self.json {
            let pairs: Vec<_> = pairs.iter().map(Pair::json).collect();
            terminal::print(&format!("{:#}\n", json!({ "pairs": pairs, "floor": floor, "exit": status })))?;
        } else {
            print(&self.text(&pairs, explained.as_deref()))?;
        }
        Ok(ExitCode::from(status))
    }

    fn limits(&self, suite: Option<&Suite>) -> BTreeMap<String, f64> {
        let mut limits: BTreeMap<String, f64> =
            suite.map_or_else(BTreeMap::new, |suite| suite.limits().clone());
        limits.extend(self.limit.iter().cloned());
        limits
    }

    /// Refuses a limit of something that no pair of runs has: it would hold whatever changed.
    fn check_limits(&self, pairs: &[Pair], limits: &BTreeMap<String, f64>) -> Result<(), Failure> {
        let known: BTreeSet<&str> =
            pairs.iter().flat_map(|pair| &pair.judged).map(|(name, _)| limited(name)).collect();
        // With --exact, limits of a suite on all else are not asked for.
        let is_asked = |name: &str| !self.exact || self.limit.iter().any(|(asked, _)| asked == name);
        let mut asked = limits.keys().filter(|name| is_asked(name));
        asked.find(|name| !known.contains(name.as_str())).map_or(Ok(()), |name| {
            let known: Vec<&str> = known.iter().copied().collect();
            let of_suite = !self.limit.iter().any(|(asked, _)| asked == name);
            let whose = if of_suite { "the suite's limit of" } else { "--limit" };
            Err(Failure::new(format_args!("{whose} {name}: no two of these runs were measured in it"))
                .hint(format_args!("they have: {}", known.join(", ")))
                .status(2))
        })
    }

    fn pairs(&self, archive: &mut Archive) -> Result<Vec<Pair>, Failure> {
        let all = archive.summaries(None).map_err(failure)?;
        let run = |name: &str| match archive.find(name) {
            Ok(id) => Ok(all.iter().find(|of| of.run == id).cloned()),
            Err(Error::NoRun(_)) => Ok(None),
            Err(error) => Err(error),
        };
        // A version may be called as a run begins: names of versions go first.
        let is_version = |name: &str| all.iter().any(|of| of.version == name);
        let read = |of: Summary| {
            let manifest = archive.read(&of.run).map_err(failure)?;
            Ok::<_, Failure>((of, manifest))
        };
        let pair = |(base, head): (Summary, Summary)| {
            Ok(Pair { base: read(base)?, head: read(head)?, judged: Vec::new(), one_sided: Vec::new() })
        };
        if is_version(&self.base) && is_version(&self.head) {
            let pairs = self.versions(&all);
            if pairs.is_empty() {
                let message =
                    format!("no runs of {} and {} agree in program and parameters", self.base, self.head);
                return Err(Failure::new(message).hint("treering bench list --all names the runs"));
            }
            return pairs.into_iter().map(pair).collect();
        }
        if let Some(program) = &self.program {
            let failure =
                Failure::new(format_args!("--program {program} is for versions, and these are runs"));
            return Err(failure.status(2));
        }
        let mut found = Vec::new();
        for name in [&self.base, &self.head] {
            let why = match is_version(name) {
                true => "a version, and the other is none: compare two runs or two versions",
                false => "neither a run nor a version",
            };
            let missing = || {
                Failure::new(format_args!("{name} is {why}")).hint("treering bench list --all names the runs")
            };
            found.push(run(name).map_err(failure)?.ok_or_else(missing)?);
        }
        let head = found.pop();
        found.pop().zip(head).map(pair).into_iter().collect()
    }

    /// The latest runs of both versions that agree in program and parameters.
    fn versions(&self, all: &[Summary]) -> Vec<(Summary, Summary)> {
        let is_asked = |of: &&Summary| self.program.as_ref().is_none_or(|name| of.is_called(name));
        let latest = |version: &str| {
            let mut latest: BTreeMap<(&str, &BTreeMap<String, String>), &Summary> = BTreeMap::new();
            for of in all.iter().filter(is_asked).filter(|of| of.version == version) {
                latest.entry((&of.program, &of.parameters)).or_insert(of);
            }
            latest
        };
        let (base, head) = (latest(&self.base), latest(&self.head));
        for (version, own, other) in [(&self.base, &base, &head), (&self.head, &head, &base)] {
            let alone: Vec<String> = own
                .iter()
                .filter(|(key, _)| !other.contains_key(*key))
                .map(|(_, of)| format!("{} {}", of.program, parameters(of)).trim_end().to_owned())
                .collect();
            if !alone.is_empty() {
                tell!("note: only {version} has these, so they are not compared: {}", alone.join("; "));
            }
        }
        let pair = |(key, base): (&(&str, &BTreeMap<String, String>), &&Summary)| {
            head.get(key).map(|head| ((*base).clone(), (*head).clone()))
        };
        let mut pairs: Vec<(Summary, Summary)> = base.iter().filter_map(pair).collect();
        let values = |run: &Summary| {
            let value = |(name, value): (&String, &String)| (name.clone(), Value(value.clone()));
            run.parameters.iter().map(value).collect::<Vec<_>>()
        };
        pairs.sort_by_cached_key(|(_, head)| (head.program.clone(), values(head)));
        pairs
    }

    fn text(&self, pairs: &[Pair], explained: Option<&str>) -> String {
        let mut rows = vec![
            ["program", "parameters", "metric", "base → head", "", "change  99 %"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let sides = [Side::Left, Side::Left, Side::Left, Side::Right, Side::Left, Side::Left];
        for pair in pairs {
            for (at, (name, judged)) in pair.judged.iter().enumerate() {
                let first = |text: String| if at == 0 { text } else { String::new() };
                let of = |value| amount(value, judged.unit);
                rows.push(vec![
                    first(pair.head.1.program.clone()),
                    first(pair.parameters()),
                    title(name).to_owned(),
                    format!("{} → {}", of(judged.base), of(judged.head)),
                    judged.mark().to_owned(),
                    judged.text(),
                ]);
            }
        }
        let notes = notes(pairs);
        let explained = explained.map_or(String::new(), |text| format!("\n{text}"));
        format!("{}\n\n{}{notes}{explained}", verdict(pairs), table(&sides, &rows))
    }
}

/// The first line: how many changed, in which metric.
fn verdict(pairs: &[Pair]) -> String {
    let judged = || pairs.iter().flat_map(|pair| &pair.judged);
    let of = |mark: &str| judged().filter(|(_, judged)| judged.mark() == mark).count();
    let (more, less, undecided) = (of("▲"), of("▼"), of("?"));
    if let [pair] = pairs {
        let certain: Vec<String> = pair
            .judged
            .iter()
            .filter(|(_, judged)| ["▲", "▼"].contains(&judged.mark()))
            .map(|(name, judged)| format!("{} {}", judged.text(), title(name)))
            .collect();
        match (certain.is_empty(), undecided) {
            (true, 0) => return "no difference".to_owned(),
            (true, _) => return "undecided".to_owned(),
            _ => return certain.join(", "),
        }
    }
    let mut parts = Vec::new();
    for (number, word) in [(more, "more"), (less, "less"), (undecided, "undecided")] {
        parts.extend((number > 0).then(|| format!("{number} {word}")));
    }
    let same = judged().count() - more - less - undecided;
    parts.extend((same > 0).then(|| format!("{same} same")));
    format!("{} of {} measurements of {} pairs of runs", parts.join(", "), judged().count(), pairs.len())
}

/// The sentences below the table.
fn notes(pairs: &[Pair]) -> String {
    let mut text = String::new();
    if pairs.iter().any(|pair| pair.base.0.parameters != pair.head.0.parameters) {
        text += "the parameters differ: so may the work that was measured\n";
    }
    let has_times = |pair: &&Pair| pair.judged.iter().any(|(name, _)| is_time(name));
    let other =
        pairs.iter().filter(has_times).filter(|pair| pair.base.1.session != pair.head.1.session).count();
    if other > 0 {
        text += "times of two sessions decide nothing: measure both versions in one, by a suite or treering compare\n";
    }
    if let Some(step) = pairs.iter().flat_map(Pair::steps).max() {
        text +=
            &format!("times come in steps of {step} ms: intervals are too narrow for changes of few steps\n");
    }
    let few = |pair: &Pair| {
        pair.judged.iter().any(|(name, of)| {
            name != metric::INSTRUCTIONS && of.rounds < treering_measure::LEAST_ROUNDS && of.mark() == "?"
        })
    };
    let other_work =
        |pair: &Pair| pair.judged.iter().any(|(name, of)| name == metric::INSTRUCTIONS && of.mark() == "?");
    if pairs.iter().any(other_work) {
        text += "instructions that change no more than two counts of one program differ decide nothing\n";
    }
    if pairs.iter().any(few) {
        let least = treering_measure::LEAST_ROUNDS;
        text += &format!("fewer than {least} rounds decide nothing\n");
    }
    text
}

/// Refuses times of two machines.
fn check_machines(pairs: &[Pair]) -> Result<(), Failure> {
    let has_time = |of: &Manifest| of.samples.keys().any(|name| is_time(name));
    for Pair { base: (_, base), head: (_, head), .. } in pairs {
        let is_one = base.machine.is_known() && base.machine.key() == head.machine.key();
        if has_time(base) && has_time(head) && !is_one {
            let message = format!(
                "the runs are of two machines ({}; {}): times are not comparable",
                base.machine.text(),
                head.machine.text()
            );
            return Err(
                Failure::new(message).hint("--exact compares what was counted, --force does it all the same")
            );
        }
    }
    Ok(())
}

impl Pair {
    /// The steps in milliseconds of the clocks of all times that were judged, where they are so long that times show them.
    fn steps(&self) -> Vec<u32> {
        let times = self.judged.iter().filter(|(name, _)| is_time(name));
        let values = |name: &str| {
            let both = [&self.base.1, &self.head.1].map(|of| of.samples.get(name));
            both.into_iter().flatten().flat_map(|of| of.values.iter().copied()).collect::<Vec<f64>>()
        };
        times.filter_map(|(name, _)| clock_step_ms(&values(name))).collect()
    }

    fn judge(&mut self, floor: f64, exact: bool) {
        let (base, head) = (&self.base.1, &self.head.1);
        let known = [metric::INSTRUCTIONS, metric::CPU, metric::WALL, metric::MEMORY];
        let names: BTreeSet<&str> = base.samples.keys().map(String::as_str).collect();
        let names = names.into_iter().chain(head.samples.keys().map(String::as_str));
        let others: BTreeSet<&str> = names.filter(|name| !known.contains(name)).collect();
        let wanted = known.into_iter().chain(others).filter(|name| !exact || *name == metric::INSTRUCTIONS);
        let has = |run: &Manifest, name: &str| run.samples.get(name).is_some_and(|of| !of.values.is_empty());
        for name in wanted {
            let sides = (has(base, name), has(head, name));
            match judge(name, base, head, floor) {
                Some(judged) => self.judged.push((name.to_owned(), judged)),
                None if sides.0 != sides.1 => self.one_sided.push((name.to_owned(), sides.0)),
                None => {}
            }
        }
    }

    /// Names what cannot be compared, as one run alone was measured in it.
    fn note_one_sided(&self) {
        for is_base in [true, false] {
            let of = |(name, of_base): &(String, bool)| (*of_base == is_base).then(|| title(name).to_owned());
            let names: Vec<String> = self.one_sided.iter().filter_map(of).collect();
            if !names.is_empty() {
                let side = if is_base { "base" } else { "head" };
                let run = format!("{} {}", self.head.1.program, self.parameters());
                tell!(
                    "note: {}: only {side} was measured in {}, not compared",
                    run.trim_end(),
                    names.join(", ")
                );
            }
        }
    }

    /// The parameters; those of both where they differ.
    fn parameters(&self) -> String {
        let (base, head) = (parameters(&self.base.0), parameters(&self.head.0));
        if base == head { head } else { format!("{base} → {head}") }
    }

    /// The certain change of what was counted, or else of time, without its sign.
    fn size(&self) -> f64 {
        let of = |wanted: &str| self.judged.iter().find(|(name, _)| name == wanted).map(|(_, judged)| judged);
        let judged = of(metric::INSTRUCTIONS).or_else(|| of(metric::CPU));
        let certain = judged.filter(|judged| matches!(judged.outcome, Certain::More | Certain::Less));
        certain.and_then(|judged| judged.change).map_or(0.0, f64::abs)
    }

    /// The text of `treering diff` for the profiles of both, if they differ in what was counted.
    fn explain(&self, archive: &Archive) -> Result<Option<String>, Failure> {
        let differs =
            |(name, of): &(String, Judged)| name == metric::INSTRUCTIONS && matches!(of.mark(), "▲" | "▼");
        let Some((base, head)) = self.profiles() else { return Ok(None) };
        let is_counted = self.judged.iter().any(|(name, _)| name == metric::INSTRUCTIONS);
        if is_counted && !self.judged.iter().any(differs) {
            return Ok(None);
        }
        let read = |of: &ProfileFile| {
            let bytes = archive.profile(of).map_err(failure)?;
            let path = archive.profile_path(of);
            trg::read(&bytes).map(|(profile, _)| profile).context(path.display())
        };
        let (base, head): (Profile, Profile) = (read(base)?, read(head)?);
        let code = code::read(Sides { base: &base, head: &head });
        let difference = compare_with_code(&base, &head, &Options::default(), &code).map_err(Failure::new)?;
        let style = Style { colour: terminal::colour(), width: terminal::width() };
        Ok(Some(treering_report::difference_text(&difference, &style, Rows { limit: None })))
    }

    /// The profiles of both that were made in the same way, counted ones first.
    fn profiles(&self) -> Option<(&ProfileFile, &ProfileFile)> {
        let of = |profile: &'_ ProfileFile| {
            self.head.1.profiles.iter().position(|other| other.made_by == profile.made_by)
        };
        let base = self.base.1.profiles.iter().find(|profile| of(profile).is_some())?;
        Some((base, &self.head.1.profiles[of(base)?]))
    }

    fn json(&self) -> serde_json::Value {
        let metrics: serde_json::Map<String, serde_json::Value> =
            self.judged.iter().map(|(name, judged)| (name.clone(), judged.json())).collect();
        json!({
            "program": self.head.1.program, "parameters": self.head.1.parameters,
            "base_parameters": self.base.1.parameters,
            "base": self.base.0.run, "head": self.head.0.run,
            "same_session": self.base.1.session == self.head.1.session, "metrics": metrics,
        })
    }
}

/// 0 within the limits, 1 beyond one, 3 where that is not decided.
fn status<'a>(pairs: impl Iterator<Item = &'a Pair>, limits: &BTreeMap<String, f64>) -> u8 {
    let mut undecided = false;
    for pair in pairs {
        undecided |= pair.one_sided.iter().any(|(name, _)| limits.contains_key(limited(name)));
        for (name, judged) in &pair.judged {
            match limits.get(limited(name)).map(|limit| judged.against(*limit)) {
                Some(Some(true)) => return 1,
                Some(None) => undecided = true,
                Some(Some(false)) | None => {}
            }
        }
    }
    if undecided { 3 } else { 0 }
}

/// The name of a metric in limits. Of both times, the processor's decides.
fn limited(name: &str) -> &str {
    if name == metric::CPU { "time" } else { name }
}

fn limit(text: &str) -> Result<(String, f64), String> {
    let (name, percent) = text.split_once('=').ok_or("it is not of the form METRIC=PERCENT, as time=5%")?;
    let number = percent.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number
        .map(|number| (name.to_owned(), number / 100.0))
        .ok_or_else(|| format!("{percent:?} is no percentage"))
}
