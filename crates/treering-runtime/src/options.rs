//! How a program is to be profiled.

use std::path::PathBuf;

use treering_events::{mode, rule};

#[cfg(feature = "enabled")]
use crate::environment::variable;
use crate::filter::Filter;
// Nothing obeys the options then.
#[cfg(not(feature = "enabled"))]
use std::env::var_os as variable;

fn text(value: std::ffi::OsString) -> String {
    value.to_string_lossy().into_owned()
}

/// The kind of profile that the events make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A calling context tree: calls, time and statistics of every chain of callers.
    #[default]
    CallGraph,
    /// One record for each function: calls, self and total time.
    Flat,
    /// A calling context tree with calls but without time, at a fraction of the cost.
    Count,
}

/// When two activations share a node; the glossary describes the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recursion {
    /// A function directly under itself stays in one node.
    #[default]
    Direct,
    /// A node for each depth.
    Full,
    /// An arc that is already on the path leads back up to it, as in SWI-Prolog's profiler.
    SwiClassic,
}

/// How a program is to be profiled.
///
/// [`from_environment`](Self::from_environment) holds for a program that chooses nothing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The kind of profile.
    pub kind: Kind,
    /// When two activations share a node.
    pub recursion: Recursion,
    /// The functions to record.
    pub filter: Filter,
    /// How many activations of a thread may be open before further ones are not recorded;
    /// 0 for no limit.
    pub depth_limit: u32,
    /// Whether the processor time of tasks is measured as well, in user's and system's mode.
    /// It is read about every 100 µs, so tasks shorter than that share it by chance.
    pub cpu_time: bool,
    /// Whether exits of logic programs are told by [`Call::exit`](crate::Call::exit) and counted. Without
    /// this, what was entered and did neither fail nor raise an exception counts as an exit.
    pub counts_exits: bool,
    /// Whether it is kept when time passed: how much of each node's time in which slot of the run. Only in call graphs,
    /// and not under the rule of SWI-Prolog, by which the time of a node does not follow from when it ran. Calls cost a few
    /// nanoseconds more.
    pub keeps_time: bool,
    /// Whether the processor's time stamp counter must not be used.
    pub no_tsc: bool,
    /// The file to write, with marks (`%p`, `%h`, `%r`, `%%`) as in `TREERING_OUTPUT`. `treering.trg` by default.
    pub output: Option<PathBuf>,
    /// The command that the profile shows, each word ended by a zero byte. By default the one that the kernel knows.
    pub command: Option<Vec<u8>>,
}

impl Options {
    /// The options that the environment asks for; `None` when it asks for no profile (`TREERING=off`).
    ///
    /// | variable | values |
    /// |---|---|
    /// | `TREERING` | `off`, `graph` (default), `flat`, `count` |
    /// | `TREERING_OUTPUT` | the file to write; `%p` stands for the process's number, `%h` for the name of the machine, `%r` for the rank in a parallel program (0 if there is none), `%%` for `%` |
    /// | `TREERING_ONLY`, `TREERING_IGNORE` | patterns of names with `*` and `?`, separated by commas |
    /// | `TREERING_DEPTH` | the deepest activation that is recorded |
    /// | `TREERING_RECURSION` | `direct` (default), `full`, `swi-classic` |
    /// | `TREERING_CPU` | `1`: the processor time of tasks too |
    /// | `TREERING_MEMPLOT` | `off`: no points of the memory plot |
    /// | `TREERING_CLOCK` | `tsc` (default where it can be trusted), `monotonic` |
    ///
    /// None of them holds for a program that runs with more rights than its user, such as a setuid program.
    pub fn from_environment() -> Option<Self> {
        let output = variable("TREERING_OUTPUT").filter(|path| !path.is_empty()).map(PathBuf::from);
        Some(Self { output, ..Self::read(&|name| variable(name).map(text))? })
    }

    /// The values of the environment that make no sense, and how each is replaced: a line for each.
    pub(crate) fn problems_of_environment() -> Vec<String> {
        Self::problems(&|name| variable(name).map(text))
    }

    fn problems(get: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        /// Variables with few values; the one that holds instead comes first.
        const WORDS: [(&str, &[&str]); 5] = [
            ("TREERING", &["graph", "flat", "count", "off", "0", "no", "on", "1", "yes"]),
            ("TREERING_RECURSION", &["direct", "full", "swi-classic"]),
            ("TREERING_CPU", &["1", "0"]),
            ("TREERING_CLOCK", &["tsc", "monotonic"]),
            ("TREERING_MEMPLOT", &["on", "1", "off", "0"]),
        ];
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let wrong = WORDS.iter().filter_map(|(name, words)| {
            let value = set(name).filter(|value| !words.contains(&value.as_str()))?;
            let known = words.join(", ");
            Some(format!("{name}={value} is not one of {known}; it is taken for {}", words[0]))
        });
        let mut problems: Vec<String> = wrong.collect();
        if let Some(depth) = set("TREERING_DEPTH").filter(|depth| depth.parse::<u32>().is_err()) {
            problems.push(format!("TREERING_DEPTH={depth} is not a number; calls of any depth are recorded"));
        }
        problems
    }

    /// The same, but for the file, from any source of variables. Values that make no sense are as if not set.
    fn read(get: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let kind = match get("TREERING").as_deref() {
            Some("off" | "0" | "no") => return None,
            Some("flat") => Kind::Flat,
            Some("count") => Kind::Count,
            _ => Kind::CallGraph,
        };
        let recursion = match get("TREERING_RECURSION").as_deref() {
            Some("full") => Recursion::Full,
            Some("swi-classic") => Recursion::SwiClassic,
            _ => Recursion::Direct,
        };
        let list = |name: &str| get(name).map(|text| Filter::list(&text)).unwrap_or_default();
        Some(Self {
            kind,
            recursion,
            filter: Filter { only: list("TREERING_ONLY"), ignored: list("TREERING_IGNORE") },
            depth_limit: get("TREERING_DEPTH").and_then(|text| text.parse().ok()).unwrap_or(0),
            cpu_time: get("TREERING_CPU").is_some_and(|text| text != "0"),
            keeps_time: false,
            counts_exits: false,
            no_tsc: get("TREERING_CLOCK").as_deref() == Some("monotonic"),
            output: None,
            command: None,
        })
    }

    pub(crate) fn mode(&self) -> u32 {
        match self.kind {
            Kind::CallGraph => mode::CALL_GRAPH,
            Kind::Flat => mode::FLAT,
            Kind::Count => mode::COUNT,
        }
    }

    pub(crate) fn rule(&self) -> u32 {
        match self.recursion {
            Recursion::Direct => rule::DIRECT,
            Recursion::Full => rule::FULL,
            Recursion::SwiClassic => rule::SWI_CLASSIC,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<Options> {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Options::read(&find)
    }

    #[test]
    fn nothing_set_is_a_call_graph_without_limits() {
        let options = read(&[]).expect("profiled");
        assert_eq!(
            (options.kind, options.recursion, options.depth_limit),
            (Kind::CallGraph, Recursion::Direct, 0)
        );
        assert!(options.filter.is_open() && !options.cpu_time && options.output.is_none());
    }

    #[test]
    fn variables_are_read() {
        let set =
            [("TREERING", "flat"), ("TREERING_ONLY", "a*,b"), ("TREERING_DEPTH", "7"), ("TREERING_CPU", "1")];
        let options = read(&set).expect("profiled");
        assert_eq!((options.kind, options.depth_limit, options.cpu_time), (Kind::Flat, 7, true));
        assert_eq!(options.filter.only, ["a*", "b"]);
        assert!(read(&[("TREERING", "off")]).is_none());
    }

    #[test]
    fn values_without_sense_are_as_if_not_set() {
        let options = read(&[("TREERING", "what"), ("TREERING_DEPTH", "deep")]).expect("profiled");
        assert_eq!((options.kind, options.depth_limit), (Kind::CallGraph, 0));
    }

    #[test]
    fn values_without_sense_are_told_and_others_are_not() {
        let problems = |name: &'static str, value: &'static str| {
            Options::problems(&|asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(
            problems("TREERING", "what"),
            ["TREERING=what is not one of graph, flat, count, off, 0, no, on, 1, yes; it is taken for graph"]
        );
        assert_eq!(
            problems("TREERING_DEPTH", "deep"),
            ["TREERING_DEPTH=deep is not a number; calls of any depth are recorded"]
        );
        assert_eq!(problems("TREERING_RECURSION", "Full").len(), 1);
        assert_eq!(problems("TREERING_CPU", "yes").len(), 1);
        for (name, value) in [("TREERING", "off"), ("TREERING_CLOCK", "monotonic"), ("TREERING_DEPTH", "7")] {
            assert!(problems(name, value).is_empty(), "{name}={value}");
        }
    }
}
