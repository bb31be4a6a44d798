//! The table of top-down metrics, made from the descriptions of events that Intel publishes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use crate::workspace;

/// Where the table is.
const TABLE: &str = "crates/treering-stat/src/metric/intel.tsv";

/// Reads a checkout of <https://github.com/intel/perfmon> and writes the table.
pub(crate) fn run(checkout: &str) -> ExitCode {
    let written = table(Path::new(checkout)).and_then(|text| {
        let table = workspace::root().join(TABLE);
        std::fs::write(&table, text).map_err(|error| format!("{}: {error}", table.display()))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn table(checkout: &Path) -> Result<String, String> {
    let licence = read(&checkout.join("LICENSE"))?;
    let mut text =
        "# Made by `cargo xtask metrics` from github.com/intel/perfmon, whose licence follows.\n#\n"
            .to_owned();
    licence.lines().for_each(|line| text += &(format!("# {line}").trim_end().to_owned() + "\n"));
    let models = models(&read(&checkout.join("mapfile.csv"))?);
    for (folder, models) in models {
        let Some(described) = described(&checkout.join(&folder))? else { continue };
        models.iter().for_each(|model| text += &format!("model\t{model}\t{folder}\n"));
        text += &described.replace('@', &folder);
    }
    Ok(text)
}

/// The folder of every processor with one kind of cores, and the processors that it describes: `6-55-[01234]`.
fn models(mapfile: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut models: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in mapfile.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [model, _, file, "core", ""] = cells[..5] else { continue };
        let (Some(model), Some(folder)) = (model.strip_prefix("GenuineIntel-"), file.split('/').nth(1))
        else {
            continue;
        };
        models.entry(folder.to_owned()).or_default().insert(model.to_owned());
    }
    models
}

/// The lines of a folder's metrics and of the events that these need, with @ for its name; nothing if it has none.
fn described(folder: &Path) -> Result<Option<String>, String> {
    let (Some(metrics), Some(events)) = (
        file_ending(&folder.join("metrics"), "_metrics.json"),
        file_ending(&folder.join("events"), "_core.json"),
    ) else {
        return Ok(None);
    };
    let (metrics, events) = (json(&metrics)?, json(&events)?);
    let known: BTreeMap<&str, &Value> =
        list(&events["Events"]).filter_map(|event| Some((event["EventName"].as_str()?, event))).collect();
    let (mut lines, mut needed) = (String::new(), BTreeSet::new());
    for metric in list(&metrics["Metrics"]) {
        let (name, level) = (text(&metric["MetricName"]), metric["Level"].as_u64().unwrap_or(0));
        let is_tree = text(&metric["Category"]) == "TMA" && text(&metric["UnitOfMeasure"]) == "percent";
        if !is_tree
            || !(1..=2).contains(&level)
            || name.starts_with("Info_")
            || name.starts_with("Bottleneck_")
        {
            continue;
        }
        let aliases = |of: &Value| -> Vec<(String, String)> {
            list(of).map(|of| (text(&of["Alias"]).to_owned(), text(&of["Name"]).to_owned())).collect()
        };
        let own: Vec<_> = aliases(&metric["Events"]);
        if !own.iter().all(|(_, name)| encoded(name, &known).is_some()) {
            continue;
        }
        let parent = text(&metric["ParentCategory"]);
        lines += &format!("metric\t@\t{name}\t{level}\t{parent}\t{}", text(&metric["Formula"]));
        for (alias, name) in own {
            lines += &format!("\t{alias}={name}");
            needed.insert(name);
        }
        lines.push('\n');
    }
    for name in needed {
        let encoded = encoded(&name, &known).unwrap_or_default();
        lines += &format!("event\t@\t{name}\t{encoded}\n");
    }
    Ok((!lines.is_empty()).then_some(lines))
}

/// An event as the kernel's `cpu` unit takes it; nothing if it is none of the core.
fn encoded(name: &str, known: &BTreeMap<&str, &Value>) -> Option<String> {
    // Fixed counters go by the codes of the general events that count the same, or by the kernel's own names.
    let fixed = match name {
        "INST_RETIRED.ANY" => "event=0xc0",
        "CPU_CLK_UNHALTED.THREAD" | "CPU_CLK_UNHALTED.CORE" => "event=0x3c",
        "CPU_CLK_UNHALTED.THREAD_ANY" => "event=0x3c,any=1",
        "CPU_CLK_UNHALTED.REF_TSC" => "event=0x0,umask=0x3",
        "TOPDOWN.SLOTS" | "TOPDOWN.SLOTS:perf_metrics" => "slots",
        "PERF_METRICS.RETIRING" => "topdown-retiring",
        "PERF_METRICS.BAD_SPECULATION" => "topdown-bad-spec",
        "PERF_METRICS.FRONTEND_BOUND" => "topdown-fe-bound",
        "PERF_METRICS.BACKEND_BOUND" => "topdown-be-bound",
        "PERF_METRICS.HEAVY_OPERATIONS" => "topdown-heavy-ops",
        "PERF_METRICS.BRANCH_MISPREDICTS" => "topdown-br-mispredict",
        "PERF_METRICS.FETCH_LATENCY" => "topdown-fetch-lat",
        "PERF_METRICS.MEMORY_BOUND" => "topdown-mem-bound",
        _ => "",
    };
    if !fixed.is_empty() {
        return Some(format!("cpu/{fixed}/"));
    }
    // `:c4:e1:i1` are changes to a described event.
    let (base, changes) = name.split_once(':').unwrap_or((name, ""));
    let event = known.get(base)?;
    let number = |key: &str| parse(text(&event[key]));
    let code = text(&event["EventCode"]).split(',').next()?;
    let mut terms =
        vec![("event", parse(code)), ("umask", number("UMask")), ("cmask", number("CounterMask"))];
    terms.extend([("inv", number("Invert")), ("any", number("AnyThread")), ("edge", number("EdgeDetect"))]);
    for change in changes.split(':').filter(|change| !change.is_empty()) {
        let term = match change.as_bytes()[0] {
            b'c' => "cmask",
            b'e' => "edge",
            b'i' => "inv",
            _ => return None,
        };
        let value = change[1..].parse().ok();
        terms.iter_mut().filter(|(name, _)| *name == term).for_each(|(_, of)| *of = value);
    }
    let terms = terms.iter().filter_map(|(name, value)| match (*name, value.unwrap_or(0)) {
        (name, 0) if name != "event" => None,
        (name, value) => Some(format!("{name}={value:#x}")),
    });
    Some(format!("cpu/{}/", terms.collect::<Vec<_>>().join(",")))
}

fn parse(number: &str) -> Option<u64> {
    match number.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => number.parse().ok(),
    }
}

/// The only file of a folder with such an end.
fn file_ending(folder: &Path, ending: &str) -> Option<std::path::PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|file| file.path());
    files.into_iter().find(|path| path.to_string_lossy().ends_with(ending))
}

fn json(path: &Path) -> Result<Value, String> {
    serde_json::from_str(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
