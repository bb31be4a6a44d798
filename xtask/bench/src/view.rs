//! `cargo xtask bench view`: how large pages are, how quickly they are made, shown and moved through, beside
//! Speedscope on the same profiles.
//!
//! `web/bench.mjs` of the viewer opens each page in a Chromium of its own and measures both viewers
//! by the same means. Rounds alternate between them, because the machine drifts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use treering_testing::programs::installed;
use treering_testing::synthetic::{Shape, synthetic};

use crate::frame::{Bench, Report};
use crate::measure::{self, succeed, text_of};
use crate::statistics::Spread;
use crate::table::Table;
use crate::{large, workspace};

/// The version of Speedscope, from npm.
const SPEEDSCOPE: &str = "1.25.0";

/// A number that a page is measured by.
struct Number {
    name: &'static str,
    unit: &'static str,
    /// The most that it should be.
    target: Option<f64>,
    /// The number in one measurement of a viewer; `None` where it has none.
    read: fn(&Value) -> Option<f64>,
}

const fn number(
    name: &'static str,
    unit: &'static str,
    target: Option<f64>,
    read: fn(&Value) -> Option<f64>,
) -> Number {
    Number { name, unit, target, read }
}

const NUMBERS: [Number; 12] = [
    number("the page", "MB", Some(18.0), |of| at(of, "/bytes", 1e6)),
    number("making it", "s", Some(2.0), |of| at(of, "/made_s", 1.0)),
    number("first picture after opening", "s", Some(1.0), |of| at(of, "/first_picture_ms", 1e3)),
    number("until then: processor time of the page's process", "s", None, |of| {
        at(of, "/first_picture_cpu_s", 1.0)
    }),
    number("zoom and pan: work for a frame, median", "ms", None, |of| at(of, "/work_ms/median", 1.0)),
    number("zoom and pan: work for a frame, p95", "ms", Some(16.0), |of| at(of, "/work_ms/p95", 1.0)),
    number("zoom and pan: between frames, p95", "ms", None, |of| at(of, "/interval_ms/p95", 1.0)),
    number("metric switch, slowest", "ms", Some(300.0), |of| worst_switch(of, "until")),
    number("metric switch: longest without a frame", "ms", None, |of| worst_switch(of, "longest")),
    number("heaps with typed arrays, page and worker", "MB", Some(150.0), |of| heaps(of, "/heaps")),
    number("the same after all metrics were shown", "MB", None, |of| heaps(of, "/heaps_after")),
    number("most memory of the page's process", "MB", None, |of| at(of, "/peak_bytes", 1e6)),
];

fn at(of: &Value, pointer: &str, divisor: f64) -> Option<f64> {
    of.pointer(pointer)?.as_f64().map(|value| value / divisor)
}

fn worst_switch(of: &Value, key: &str) -> Option<f64> {
    of["switches"].as_array()?.iter().filter_map(|switch| switch[key].as_f64()).max_by(f64::total_cmp)
}

fn heaps(of: &Value, pointer: &str) -> Option<f64> {
    let bytes = |heap: &Value| Some(heap["objects"].as_f64()? + heap["arrays"].as_f64()?);
    of.pointer(pointer)?.as_array()?.iter().map(bytes).sum::<Option<f64>>().map(|bytes| bytes / 1e6)
}

/// A profile to be looked at.
struct Subject {
    name: &'static str,
    profile: PathBuf,
    nodes: u64,
}

pub(super) fn run(bench: &Bench, for_docs: bool) -> Result<Report, String> {
    if bench.quick && for_docs {
        return Err("--quick measures too little for the documentation".to_owned());
    }
    for program in ["node", "chromium"] {
        installed(program).ok_or_else(|| format!("{program} is not installed"))?;
    }
    let web = workspace::root().join("crates/treering-viewer/web");
    if !web.join("node_modules/puppeteer-core").is_dir() {
        succeed(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&web))?;
    }
    let speedscope = speedscope(&bench.directory);
    if let Err(error) = &speedscope {
        eprintln!("note: Speedscope is not measured: {error}");
    }
    let viewers = Viewers { bench, script: web.join("bench.mjs"), speedscope: speedscope.ok() };
    let mut tables = Vec::new();
    for subject in [viewers.synthetic()?, viewers.real()?] {
        eprintln!("measuring {} ({} nodes)", subject.name, subject.nodes);
        tables.push(viewers.measure(&subject, bench.rounds(7, 1))?);
    }
    tables.push(sizes_of_scripts()?);
    let mut report = Report { tables, ..Report::default() };
    if for_docs {
        report.then = Some(into_docs);
    }
    Ok(report)
}

/// The lines between which the tables stand in `docs/view.md`.
const MARKS: [&str; 2] = ["<!-- cargo xtask bench view --docs -->\n", "<!-- end -->\n"];

/// Puts the tables into the documentation, in the place of those of the time before.
fn into_docs(page: &str) -> Result<(), String> {
    let path = workspace::root().join("docs/view.md");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text =
        with_tables(&text, page).ok_or_else(|| format!("{} has no place for tables", path.display()))?;
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A text with other tables between the marks, whose headings are below its own.
fn with_tables(text: &str, tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    // The heading names the command, which the mark does too.
    let tables: Vec<&str> =
        tables.lines().skip_while(|line| line.starts_with("# ") || line.is_empty()).collect();
    let tables = tables.join("\n").replace("\n## ", "\n### ");
    Some(format!("{before}{}\n{}\n\n{}{after}", MARKS[0], tables.trim_end(), MARKS[1]))
}

/// The folder of Speedscope, installed from npm.
fn speedscope(directory: &Path) -> Result<PathBuf, String> {
    let folder = directory.join("node_modules/speedscope");
    let is_installed = std::fs::read_to_string(folder.join("package.json"))
        .is_ok_and(|text| text.contains(&format!("\"version\": \"{SPEEDSCOPE}\"")));
    if !is_installed {
        let package = format!("speedscope@{SPEEDSCOPE}");
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(directory).arg(package);
        succeed(&mut npm)?;
    }
    Ok(folder.join("dist/release"))
}

/// The viewers that are compared.
struct Viewers<'a> {
    bench: &'a Bench,
    script: PathBuf,
    speedscope: Option<PathBuf>,
}

impl Viewers<'_> {
    /// A million nodes in six metrics, of which the numbers are noise.
    fn synthetic(&self) -> Result<Subject, String> {
        let shape =
            if self.bench.quick { Shape { nodes: 100_000, ..Shape::MILLION } } else { Shape::MILLION };
        let profile = self.bench.directory.join("synthetic.trg");
        large::write(&synthetic(&shape), &profile)?;
        Ok(Subject { name: "synthetic", profile, nodes: shape.nodes as u64 })
    }

    /// A compiler's run, counted exactly with its calling context tree.
    fn real(&self) -> Result<Subject, String> {
        let profile = self.bench.directory.join("compiler.trg");
        let source = self.bench.directory.join("source.cc");
        let text = if self.bench.quick {
            "int main() { return 0; }\n"
        } else {
            "#include <vector>\nint main() { return std::vector<int>{1}.front(); }\n"
        };
        std::fs::write(&source, text).map_err(|error| error.to_string())?;
        let compiler = text_of(Command::new("c++").arg("-print-prog-name=cc1plus"))?;
        let mut count = self.bench.command("treering count --quiet --tree --force -o");
        count.arg(&profile).arg("--").arg(compiler.trim());
        succeed(count.args(["-quiet", "-O1", "-o", "/dev/null"]).arg(&source))?;
        let nodes = measure::profile(&profile)?.tree.len() as u64;
        Ok(Subject { name: "cc1plus, counted", profile, nodes })
    }

    fn measure(&self, subject: &Subject, rounds: usize) -> Result<Table, String> {
        let page = subject.profile.with_extension("html");
        let exported = subject.profile.with_extension("pb.gz");
        if self.speedscope.is_some() {
            let mut export = self.bench.command("treering export --to pprof --yes --force -o");
            succeed(export.arg(&exported).arg(&subject.profile))?;
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            eprintln!("  round {round} of {rounds}");
            ours.push(self.measure_ours(subject, &page)?);
            // Where it shows no picture once, another attempt takes as long and says the same.
            let gave_up = theirs.iter().any(|one: &Value| one["none"].is_string());
            if let Some(speedscope) = self.speedscope.as_ref().filter(|_| !gave_up) {
                theirs.push(self.driven(
                    Command::new("node").arg(&self.script).arg("speedscope").arg(speedscope).arg(&exported),
                )?);
            }
        }
        let mut table = table(subject, &ours, &theirs);
        if let Some(why) = theirs.iter().find_map(|one| one["none"].as_str()) {
            table.note(format!("Speedscope {SPEEDSCOPE} was tried once: {why}."));
        } else if !theirs.is_empty() {
            let size = std::fs::metadata(&exported).map_or(0, |known| known.len());
            table.note(format!(
                "Speedscope {SPEEDSCOPE} read the same profile as pprof, {:.1} MB, of which it shows one metric; its \
                 first picture is that of stacks in their order in the file. It draws with WebGL, here by the \
                 processor, in another process that the work for a frame leaves out.",
                size as f64 / 1e6
            ));
        }
        Ok(table)
    }

    fn measure_ours(&self, subject: &Subject, page: &Path) -> Result<Value, String> {
        let mut view = self.bench.command("treering view --no-open -o");
        let start = Instant::now();
        succeed(view.arg(page).arg(&subject.profile))?;
        let made = start.elapsed().as_secs_f64();
        let mut measured = self.driven(Command::new("node").arg(&self.script).arg("treering").arg(page))?;
        measured["made_s"] = json!(made);
        measured["bytes"] = json!(std::fs::metadata(page).map_err(|error| error.to_string())?.len());
        Ok(measured)
    }

    fn driven(&self, command: &mut Command) -> Result<Value, String> {
        let printed = succeed(command)?;
        let measured: Value =
            serde_json::from_slice(&printed).map_err(|error| format!("bench.mjs: {error}"))?;
        if let (Some("treering"), Some(why)) = (measured["tool"].as_str(), measured["none"].as_str()) {
            return Err(format!("the page failed: {why}"));
        }
        match measured["problems"].as_array() {
            Some(problems) if !problems.is_empty() => Err(format!("the page failed: {problems:?}")),
            _ => Ok(measured),
        }
    }
}

fn table(subject: &Subject, ours: &[Value], theirs: &[Value]) -> Table {
    let title = format!("{}: {} nodes", subject.name, subject.nodes);
    let mut table = Table::new(&title, &["what", "target", "treering view", "Speedscope"]);
    for number in &NUMBERS {
        let spread = |of: &[Value]| {
            let values: Vec<f64> = of.iter().filter_map(number.read).collect();
            Spread::of(&values).map_or_else(|| "–".to_owned(), |spread| spread.to_string())
        };
        let target = number.target.map_or_else(String::new, |target| format!("{target}"));
        table.row(vec![format!("{}, {}", number.name, number.unit), target, spread(ours), spread(theirs)]);
    }
    table.note(format!(
        "Median (middle half) of {} runs, each in a browser of its own, alternating.",
        ours.len()
    ));
    table
}

/// The scripts that every page has, as gzip packs them.
fn sizes_of_scripts() -> Result<Table, String> {
    let assets = workspace::root().join("crates/treering-viewer/assets");
    let mut table = Table::new("Scripts of a page, packed by gzip", &["what", "target, KB", "KB"]);
    let mut sum = 0.0;
    for name in ["viewer.js", "worker.js", "viewer.css"] {
        let packed = succeed(Command::new("gzip").args(["-9", "-c"]).arg(assets.join(name)))?;
        sum += packed.len() as f64 / 1e3;
        table.row(vec![name.to_owned(), String::new(), format!("{:.1}", packed.len() as f64 / 1e3)]);
    }
    table.row(vec!["together".to_owned(), "100".to_owned(), format!("{sum:.1}")]);
    let graph = std::fs::metadata(assets.join("graph.js.gz")).map_err(|error| error.to_string())?.len();
    table.note(format!(
        "Graphviz, which is inflated when a graph is first shown, has another {:.0}.",
        graph as f64 / 1e3
    ));
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_measurements_of_the_browser() {
        let measured = json!({
            "first_picture_ms": 500, "switches": [{"until": 100.0, "longest": 20.0}, {"until": 250.0, "longest": 17.0}],
            "heaps": [{"objects": 10e6, "arrays": 30e6}, {"objects": 1e6, "arrays": 59e6}],
        });
        let read = |name: &str| {
            NUMBERS.iter().find(|number| number.name.starts_with(name)).and_then(|n| (n.read)(&measured))
        };
        assert_eq!(read("first picture"), Some(0.5));
        assert_eq!(read("metric switch, slowest"), Some(250.0));
        assert_eq!(read("heaps with typed arrays"), Some(100.0));
        assert_eq!(read("the page"), None);
    }

    #[test]
    fn tables_replace_those_of_the_time_before() {
        let text = format!("above\n{}old\n{}below\n", MARKS[0], MARKS[1]);
        let once = with_tables(&text, "# cargo xtask bench view\n\na machine\n\n## A table\n\n| a |\n")
            .expect("there are marks");
        assert_eq!(
            once,
            format!("above\n{}\na machine\n\n### A table\n\n| a |\n\n{}below\n", MARKS[0], MARKS[1])
        );
        assert_eq!(with_tables(&once, "# x\n\na machine\n\n## A table\n\n| a |\n"), Some(once));
        assert_eq!(with_tables("no marks", "a"), None);
    }
}
