//! The text of a suite.

use std::collections::BTreeMap;
use std::time::Duration;

use toml::{Table, Value};

use super::super::job::Measure;
use super::super::parameters::{check_name, parse_values};

/// The content of the file.
#[derive(Debug)]
pub struct File {
    pub rounds: Option<usize>,
    pub floor: Option<f64>,
    pub timeout: Option<Duration>,
    pub measure: Measure,
    pub limit: BTreeMap<String, f64>,
    pub version: BTreeMap<String, VersionTable>,
    pub program: BTreeMap<String, Program>,
}

/// `[version.NAME]`.
#[derive(Debug, Default)]
pub struct VersionTable {
    /// The revision, built in a work tree of its own; nothing for the work tree as it is.
    pub git: Option<String>,
    pub build: Option<String>,
}

/// `[program.NAME]`.
#[derive(Debug, Default)]
pub struct Program {
    pub run: String,
    pub params: BTreeMap<String, Vec<String>>,
    pub skip: Vec<BTreeMap<String, String>>,
    pub setup: Option<String>,
    pub input: Option<String>,
    pub same: Option<String>,
    pub compare: Option<String>,
    pub cbs: bool,
}

impl File {
    /// Reads the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let table: Table =
            text.parse().map_err(|error: toml::de::Error| error.to_string().trim_end().to_owned())?;
        let top = Part { name: "", table: &table };
        top.check(&["rounds", "floor", "timeout", "measure", "limit", "version", "program"])?;
        let measure = match top.words("measure")? {
            Some(names) => super::measure(&names)?,
            None => Measure { instructions: false, time: true, memory: true },
        };
        let rounds = top.integer("rounds")?.map(|rounds| match usize::try_from(rounds) {
            Ok(rounds @ 1..=100_000) => Ok(rounds),
            _ => Err("rounds must be between 1 and 100000".to_owned()),
        });
        let limits = Part { name: "limit", table: top.table("limit")? };
        limits.check(&["instructions", "time", "memory"])?;
        let limit =
            |name: &String| Ok((name.clone(), percent(name, limits.text(name)?.unwrap_or_default())?));
        let file = Self {
            rounds: rounds.transpose()?,
            floor: top.text("floor")?.map(|text| percent("floor", text)).transpose()?,
            timeout: top.text("timeout")?.map(duration).transpose()?,
            measure,
            limit: limits.table.keys().map(limit).collect::<Result<_, String>>()?,
            version: top.each("version", version)?,
            program: top.each("program", program)?,
        };
        if file.program.is_empty() {
            return Err("it has no program: [program.NAME]".to_owned());
        }
        Ok(file)
    }
}

fn version(part: &Part<'_>) -> Result<VersionTable, String> {
    part.check(&["git", "build"])?;
    let text = |key: &str| Ok::<_, String>(part.text(key)?.map(str::to_owned));
    Ok(VersionTable { git: text("git")?, build: text("build")? })
}

fn program(part: &Part<'_>) -> Result<Program, String> {
    part.check(&["run", "params", "skip", "setup", "input", "same", "compare", "cbs"])?;
    let text = |key: &str| Ok::<_, String>(part.text(key)?.map(str::to_owned));
    let cbs = match part.table.get("cbs") {
        None => false,
        Some(Value::Boolean(cbs)) => *cbs,
        Some(_) => return Err(part.of("cbs must be true or false")),
    };
    let mut params = BTreeMap::new();
    for (name, values) in part.table("params")? {
        let of = |error: String| part.of(&format!("params.{name}: {error}"));
        check_name(name).map_err(of)?;
        params.insert(name.clone(), values_of(values).map_err(of)?);
    }
    Ok(Program {
        run: text("run")?.ok_or_else(|| part.of("run is missing"))?,
        params,
        skip: skips(part)?,
        setup: text("setup")?,
        input: text("input")?,
        same: text("same")?,
        compare: text("compare")?,
        cbs,
    })
}

/// `"250..8000*2"` or `[250, 500, "list"]`.
fn values_of(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::String(text) => parse_values(text),
        Value::Array(list) => {
            let values =
                list.iter().map(|value| word(value).ok_or("a value must be a number or a text".to_owned()));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            let mut seen = std::collections::BTreeSet::new();
            match values.iter().find(|value| !seen.insert(*value)) {
                _ if values.is_empty() => Err("it has no values".to_owned()),
                Some(twice) => Err(format!("{twice} is given twice")),
                None => Ok(values),
            }
        }
        value => word(value)
            .map(|word| vec![word])
            .ok_or("it must be a list, or a text such as \"250..8000*2\"".to_owned()),
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

fn skips(part: &Part<'_>) -> Result<Vec<BTreeMap<String, String>>, String> {
    let wrong = || part.of("skip must be a list of tables: [{ n = 16, algo = \"list\" }]");
    let Some(list) = part.table.get("skip") else { return Ok(Vec::new()) };
    let known: Vec<&str> = part.table("params")?.keys().map(String::as_str).collect();
    let skip = |value: &Value| {
        let table = value.as_table().filter(|table| !table.is_empty()).ok_or_else(wrong)?;
        Part { name: part.name, table }.check(&known)?;
        table.iter().map(|(name, value)| Ok((name.clone(), word(value).ok_or_else(wrong)?))).collect()
    };
    list.as_array().ok_or_else(wrong)?.iter().map(skip).collect()
}

/// `"2 %"`.
fn percent(name: &str, text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.map(|number| number / 100.0).ok_or_else(|| format!("{name} is {text:?}; write it as \"2 %\""))
}

/// `"60 s"`.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, factor) = match text.trim().strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => match text.trim().strip_suffix("min") {
            Some(number) => (number, 60.0),
            None => (text.trim().strip_suffix('s').unwrap_or(""), 1.0),
        },
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * factor);
    let duration =
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).filter(|some| !some.is_zero());
    duration.ok_or_else(|| format!("timeout is {text:?}; write it as \"60 s\""))
}

/// A table, with its name for messages.
struct Part<'a> {
    name: &'a str,
    table: &'a Table,
}

static EMPTY: std::sync::LazyLock<Table> = std::sync::LazyLock::new(Table::new);

impl<'a> Part<'a> {
    fn of(&self, message: &str) -> String {
        if self.name.is_empty() { message.to_owned() } else { format!("[{}] {message}", self.name) }
    }

    /// Refuses keys that are not known, and names the nearest one that is.
    fn check(&self, known: &[&str]) -> Result<(), String> {
        const ALIKE: f64 = 0.6;
        let Some(unknown) = self.table.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let alike = known.iter().map(|known| (strsim::normalized_damerau_levenshtein(unknown, known), known));
        let nearest = alike.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(alike, _)| *alike >= ALIKE);
        let hint = match nearest {
            Some((_, nearest)) => format!("did you mean {nearest}?"),
            None => format!("there are {}", known.join(", ")),
        };
        Err(self.of(&format!("{unknown} is no key; {hint}")))
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, String> {
        let text = |value: &'a Value| {
            value.as_str().ok_or_else(|| self.of(&format!("{key} must be a text in quotes")))
        };
        self.table.get(key).map(text).transpose()
    }

    fn integer(&self, key: &str) -> Result<Option<i64>, String> {
        let integer = |value: &Value| {
            value.as_integer().ok_or_else(|| self.of(&format!("{key} must be a whole number")))
        };
        self.table.get(key).map(integer).transpose()
    }

    fn words(&self, key: &str) -> Result<Option<Vec<String>>, String> {
        let wrong = || self.of(&format!("{key} must be a list of texts"));
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let words = value.as_array().ok_or_else(wrong)?.iter().map(|word| word.as_str().map(str::to_owned));
        words.collect::<Option<Vec<_>>>().map(Some).ok_or_else(wrong)
    }

    fn table(&self, key: &str) -> Result<&'a Table, String> {
        match self.table.get(key) {
            None => Ok(&EMPTY),
            Some(value) => value.as_table().ok_or_else(|| self.of(&format!("{key} must be a table"))),
        }
    }

    /// Reads each table below one.
    fn each<T>(
        &self,
        key: &str,
        read: impl Fn(&Part<'_>) -> Result<T, String>,
    ) -> Result<BTreeMap<String, T>, String> {
        let mut all = BTreeMap::new();
        for (name, value) in self.table(key)? {
            let full = format!("{key}.{name}");
            let table = value.as_table().ok_or_else(|| format!("{full} must be a table: [{full}]"))?;
            all.insert(name.clone(), read(&Part { name: &full, table })?);
        }
        Ok(all)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_documentation_is_read() {
        let page = include_str!("../../../../../../docs/bench.md");
        let example =
            page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
        let file = File::parse(example).unwrap();
        assert_eq!(file.rounds, Some(15));
        assert_eq!(file.limit["instructions"], 0.01);
        assert_eq!(file.program["records"].params["n"], ["250", "500", "1000", "2000", "4000", "8000"]);
        assert_eq!(file.program["determinize"].params["n"], ["10", "12", "14", "16"]);
        let skip = [("algo", "bmig"), ("n", "16")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(file.program["determinize"].skip, [BTreeMap::from(skip)]);
        assert!(file.program["determinize"].cbs);
    }

    #[test]
    fn wrong_keys_and_values_are_named_with_the_nearest_right_ones() {
        let error = |text: &str| File::parse(text).unwrap_err();
        let program = "[program.p]\nrun = \"./p\"\n";
        let of = |line: &str| error(&format!("{program}{line}"));
        assert_eq!(error(&format!("ruonds = 3\n{program}")), "ruonds is no key; did you mean rounds?");
        assert_eq!(of("param = 1"), "[program.p] param is no key; did you mean params?");
        assert_eq!(
            of("zzz = 1"),
            "[program.p] zzz is no key; there are run, params, skip, setup, input, same, compare, cbs"
        );
        assert_eq!(error("[program.p]\nparams = {n = 1}"), "[program.p] run is missing");
        assert_eq!(of("params = { n = \"8..1\" }"), "[program.p] params.n: 8..1: it goes down");
        assert_eq!(of("params = { n = [1, 1] }"), "[program.p] params.n: 1 is given twice");
        assert_eq!(of("params = { n = [] }"), "[program.p] params.n: it has no values");
        assert_eq!(of("params = { n = [1] }\nskip = [{ m = 1 }]"), "[program.p] m is no key; there are n");
        assert_eq!(of("cbs = 1"), "[program.p] cbs must be true or false");
        assert_eq!(error(&format!("floor = \"2\"\n{program}")), "floor is \"2\"; write it as \"2 %\"");
        assert_eq!(
            error(&format!("timeout = \"0 s\"\n{program}")),
            "timeout is \"0 s\"; write it as \"60 s\""
        );
        assert_eq!(error(&format!("rounds = 0\n{program}")), "rounds must be between 1 and 100000");
        assert_eq!(
            error(&format!("measure = [\"heat\"]\n{program}")),
            "\"heat\" cannot be measured; there are instructions, time, memory"
        );
        assert_eq!(error("rounds = 3"), "it has no program: [program.NAME]");
        assert!(error("rounds = ").contains("line 1"));
    }
}
