//! Every view and every export of every kind of profile, and of all that can be merged.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use clap::{Parser as _, ValueEnum as _};
use serde_json::Value;
use treering_formats::Format;
use treering_profile::{Profile, RecursionRule, merge};
use treering_report::Style;

use super::export::{Export, To};
use super::report::Report;
use crate::arguments::{Arguments, Command};
use crate::open::{Opened, open_profile};

/// The options of each view.
const VIEWS: [&str; 21] = [
    "--flat",
    "--flat --unit samples",
    "--flat --unit percent",
    "--callgraph",
    "--callgraph --min 0",
    "--callgraph --collapse-cycles",
    "--callgraph --statistics",
    "--prof",
    "--tree",
    "--tree --min 0",
    "--tree --unit samples",
    "--callers",
    "--callers --min 0",
    "--lines main",
    "--blocks",
    "--histogram main",
    "--points",
    "--threads",
    "--processes",
    "--metrics",
    "--timeline",
];

/// A profile and its name in messages.
struct Known {
    name: String,
    profile: Profile,
    format: Format,
}

impl Known {
    fn opened(&self) -> Opened {
        Opened { profile: self.profile.clone(), format: self.format, warnings: Vec::new(), hint: None }
    }
}

/// The recorded files that can be opened without a program beside them.
fn recorded() -> Vec<Known> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["formats", "live"] {
        files(&fixtures.join(folder), &mut paths);
    }
    paths.sort();
    let known = |path: &PathBuf| {
        let opened = open_profile(path).ok()?;
        let name = path.strip_prefix(&fixtures).unwrap_or(path).display().to_string();
        Some(Known { name, profile: opened.profile, format: opened.format })
    };
    paths.iter().filter_map(known).collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("fixtures are there") {
        let path = entry.expect("fixtures can be listed").path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// One profile for each way in which profiles differ that a view may ask for.
fn one_of_each_kind(known: &[Known]) -> Vec<&Known> {
    let kind = |known: &&Known| {
        let profile = &known.profile;
        let first = profile.cost_metrics().next();
        (
            profile.is_arcs_only().then_some(known.format),
            (profile.is_arcs_only(), profile.arcs.is_empty(), profile.recursion == RecursionRule::Flat),
            (profile.tree.has_calls(), profile.activations.is_some(), profile.metadata.call_bias.is_some()),
            first.map(|(_, metric)| (metric.sampling.is_some(), metric.weights().is_some())),
            (profile.code.blocks.is_empty(), profile.line_costs.is_empty(), profile.points.is_empty()),
        )
    };
    let mut kinds: BTreeMap<_, &Known> = BTreeMap::new();
    known.iter().for_each(|known| {
        kinds.entry(format!("{:?}", kind(&known))).or_insert(known);
    });
    kinds.into_values().collect()
}

/// The pairs that `treering merge` takes.
fn merged(known: &[&Known]) -> Vec<Known> {
    let pairs =
        known.iter().enumerate().flat_map(|(at, one)| known[at..].iter().map(move |other| (one, other)));
    let fit = pairs.filter(|(one, other)| one.profile.is_arcs_only() == other.profile.is_arcs_only());
    let merged = fit.map(|(one, other)| Known {
        name: format!("{} and {}", one.name, other.name),
        profile: merge(&[&one.profile, &other.profile]),
        format: Format::Trg,
    });
    merged.collect()
}

fn command(words: &str) -> Command {
    let words = words.split(' ');
    Arguments::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).command
}

fn report(options: &str) -> Report {
    match command(&format!("treering report {options}")) {
        Command::Report(report) => report,
        other => panic!("{other:?}"),
    }
}

fn exports() -> Vec<Export> {
    let formats = To::value_variants().iter().filter_map(To::to_possible_value);
    let words = formats.map(|format| format!("treering export in.trg --to {}", format.get_name()));
    let export = |words: String| match command(&words) {
        Command::Export(export) => export,
        other => panic!("{other:?}"),
    };
    words.map(export).collect()
}

/// Shows a profile in all views; each is shown or refused. The number of those that were shown.
fn view_all(known: &Known) -> usize {
    let mut shown = 0;
    for (view, end) in VIEWS.iter().flat_map(|view| [(view, ""), (view, " --json")]) {
        let options = format!("{view}{end}");
        for width in [None, Some(60)].into_iter().take(if end.is_empty() { 2 } else { 1 }) {
            let style = Style { colour: false, width };
            let listing = catch_unwind(AssertUnwindSafe(|| report(&options).listing(known.opened(), &style)));
            let listing = listing.unwrap_or_else(|_| panic!("report {options} of {} panics", known.name));
            if let Ok(listing) = listing {
                shown += 1;
                check_listing(&listing, !end.is_empty(), &format!("{options} of {}", known.name));
            }
        }
    }
    shown
}

/// A listing is no number, and no share is beyond the whole.
fn check_listing(listing: &str, is_json: bool, name: &str) {
    for word in listing.split(|c: char| !c.is_alphanumeric()) {
        assert!(!matches!(word, "NaN" | "inf"), "{name}:\n{listing}");
    }
    if is_json {
        let json: Value = serde_json::from_str(listing).unwrap_or_else(|error| panic!("{name}: {error}"));
        check_shares(&json, name);
    }
}

fn check_shares(json: &Value, name: &str) {
    match json {
        Value::Array(all) => all.iter().for_each(|one| check_shares(one, name)),
        Value::Object(object) => {
            for (key, value) in object {
                if let (true, Some(share)) = (key.ends_with("share"), value.as_f64()) {
                    assert!((0.0..=1.0 + 1e-9).contains(&share), "{name}: {key} is {share}");
                }
                check_shares(value, name);
            }
        }
        _ => {}
    }
}

/// Writes a profile in all formats; each is written or refused.
fn export_all(known: &Known, exports: &[Export]) -> usize {
    let written = exports.iter().filter(|export| {
        let write = || export.export(known.opened(), Path::new("/dev/null")).is_ok();
        catch_unwind(AssertUnwindSafe(write))
            .unwrap_or_else(|_| panic!("{export:?} of {} panics", known.name))
    });
    written.count()
}

/// Trees of sampled profiles that have arcs only panicked: their rows had a cell less than the heading.
#[test]
fn every_view_and_export_of_every_profile_ends_without_a_panic() {
    let (known, exports) = (recorded(), exports());
    assert!(known.len() > 50, "only {} were opened", known.len());
    for known in &known {
        assert!(view_all(known) >= 6, "{}", known.name);
        assert!(export_all(known, &exports) >= 1, "{}", known.name);
    }
}

#[test]
fn every_view_and_export_of_merged_profiles_ends_without_a_panic() {
    let (known, exports) = (recorded(), exports());
    let pairs = merged(&one_of_each_kind(&known));
    let of_arcs = pairs.iter().filter(|pair| pair.profile.is_arcs_only()).count();
    assert!(of_arcs > 5 && pairs.len() > 50, "{} pairs, {of_arcs} of arcs", pairs.len());
    for pair in &pairs {
        view_all(pair);
        export_all(pair, &exports);
    }
}

/// Options, with values of which one changes something where it can.
const OPTIONS: [&[&str]; 17] = [
    &["--full-names"],
    &["--metric samples"],
    &["--sort name"],
    &["--unit percent", "--unit time"],
    &["--min 60"],
    &["--top 1"],
    &["--depth 0"],
    &["--collapse-cycles"],
    &["--statistics"],
    &["--raw"],
    &["--bias 3,5"],
    &["--focus ^s"],
    &["--ignore ^s"],
    &["--hide ^s"],
    &["--thread nobody"],
    &["--run 7"],
    &["--from 40%"],
];

/// The views of what fixtures hold, each once; a function of the profile stands for NAME. Executions of code are in
/// none of them.
const PLAIN_VIEWS: [&str; 11] = [
    "--flat",
    "--callgraph",
    "--prof",
    "--tree",
    "--callers",
    "--lines NAME",
    "--histogram NAME",
    "--points",
    "--threads",
    "--processes",
    "--metrics",
];

/// The listing of a view, or why there is none.
fn shown(known: &Known, options: &str) -> Result<String, String> {
    let report = report(options);
    report.check_options().map_err(|failure| failure.to_string())?;
    report.listing(known.opened(), &Style::default()).map_err(|failure| failure.to_string())
}

/// A function of a profile that options can name.
fn some_function(profile: &Profile) -> String {
    let name = profile.functions.entries().get(2).map_or("main", |function| &profile.strings[function.name]);
    if name.contains(' ') { "main".to_owned() } else { name.to_owned() }
}

/// `--depth` was ignored by all views but trees, `--statistics` by all but the call graph, and so on.
#[test]
fn every_option_changes_a_view_or_is_refused_by_it() {
    let known = recorded();
    for view in PLAIN_VIEWS {
        let all = known.iter().map(|known| {
            let view = view.replace("NAME", &some_function(&known.profile));
            (known, shown(known, &view), view)
        });
        let plain: Vec<_> = all.filter(|(_, plain, _)| plain.is_ok()).collect();
        assert!(!plain.is_empty(), "{view}");
        for values in OPTIONS {
            let of_code = |why: &str| why.contains("chooses stacks");
            let is_refused = |why: &str| why.contains("has no effect on") || of_code(why);
            let given = || values.iter().flat_map(|value| plain.iter().map(move |plain| (value, plain)));
            let with_option = given()
                .map(|(value, (known, plain, view))| (plain, shown(known, &format!("{view} {value}"))));
            let (refused, heeded): (Vec<_>, Vec<_>) =
                with_option.partition(|(_, shown)| shown.as_ref().is_err_and(|why| is_refused(why)));
            assert!(refused.is_empty() || heeded.is_empty(), "{view} {values:?}");
            let changes = heeded.iter().any(|(plain, shown)| *plain != shown);
            // No function of a fixture that has lines has a longer name in full.
            let is_exempt = view.ends_with("NAME") && values[0] == "--full-names";
            assert!(changes || heeded.is_empty() || is_exempt, "{view} ignores {values:?}");
        }
    }
}
