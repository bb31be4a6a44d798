//! The library and the pack that SWI-Prolog loads, in the SWI-Prolog of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use treering_profile::Profile;

use crate::skip;

const TREERING: &str = env!("CARGO_BIN_EXE_treering");

pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project is there")
}

/// The library that SWI-Prolog loads.
pub(crate) fn library() -> PathBuf {
    crate::libraries::beside("libtreering_prolog.so")
}

/// A folder in which a test runs SWI-Prolog.
pub(crate) struct Prolog {
    pub(crate) folder: PathBuf,
}

impl Prolog {
    /// A folder of its own for a test; nothing where there is no SWI-Prolog.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if Command::new("swipl").arg("--version").output().is_err() {
            skip("there is no swipl");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prolog").join(test);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        Some(Self { folder })
    }

    /// `swipl` with the pack on its library path, a program, and what is not to be asked for.
    pub(crate) fn command(&self, program: &str) -> Command {
        std::fs::write(self.folder.join("program.pl"), program).expect("the program can be written");
        let mut command = Command::new("swipl");
        let pack = project().join("hooks/prolog/prolog");
        let fixtures = project().join("fixtures/prolog");
        command
            .args(["-q", "-f", "none", "-t", "halt"])
            .arg("-p")
            .arg(format!("library={}", pack.display()))
            .arg("-p")
            .arg(format!("fixtures={}", fixtures.display()))
            .arg("program.pl")
            .env("TREERING_PROLOG_LIBRARY", library())
            .env("TREERING_PROGRAM", TREERING)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn output(&self, program: &str) -> Output {
        self.command(program).output().expect("swipl runs")
    }

    /// Runs a program that has nothing to complain of; what it prints.
    pub(crate) fn run(&self, program: &str) -> String {
        let output = self.output(program);
        let (text, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && errors.is_empty(), "{text}\n{errors}");
        text
    }

    /// A profile that a program has written.
    pub(crate) fn profile(&self, file: &str) -> Profile {
        let bytes = std::fs::read(self.folder.join(file)).expect("the profile was written");
        let (_, profile, report) = treering_formats::read_any(&bytes).expect("it can be read");
        assert!(report.is_complete(), "{report:?}");
        profile.validate().expect("it is sound");
        profile
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Calls, exits, redos, fails, exceptions and cuts.
pub(crate) type Counts = [u64; 6];

/// The counts of every predicate in all its places in the trees.
pub(crate) fn counts(profile: &Profile) -> BTreeMap<String, Counts> {
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    for node in profile.tree.nodes().filter(|&node| profile.tree.parent(node).is_some()) {
        let function = &profile.functions.entries()[profile.tree.function(node).index()];
        let row = counts.entry(profile.strings[function.name].to_owned()).or_default();
        let [exits, redos, fails, exceptions, cuts] = profile.ports.get(node).counts();
        let here = [profile.tree.calls(node), exits, redos, fails, exceptions, cuts];
        row.iter_mut().zip(here).for_each(|(sum, count)| *sum += count);
    }
    counts
}

/// Nothing was lost, and what was entered has ended, or is open.
pub(crate) fn check_boxes(profile: &Profile) {
    let losses = &profile.metadata.losses;
    assert_eq!([losses.unwound_activations, losses.unbalanced_leaves, losses.dropped_events], [0; 3]);
    for (name, [calls, exits, redos, fails, exceptions, _]) in counts(profile) {
        assert_eq!(calls + redos, exits + fails + exceptions, "{name}");
    }
}

const BOXES: &str = ":- use_module(library(treering)).\n:- use_module(fixtures(boxes)).\n";

/// A goal, whether the tracer is a witness, and the counts of predicates.
pub(crate) type Row = (&'static str, bool, &'static [(&'static str, Counts)]);

/// Goals in the module `boxes`, whether SWI-Prolog's tracer sees the same calls, exits, fails and
/// exceptions, and what is expected of each predicate.
///
/// The goals without choices follow from their definitions, such as 2^(n+1) - 1 calls of hanoi/4. Those
/// of generators follow from Byrd's box model. All were compared with the tracer but the tabled ones,
/// where that shows the calls within the tables as well.
pub(crate) const TRUTH: &[Row] = &[
    (
        "nrev30(1)",
        true,
        &[
            ("app/3", [465, 465, 0, 0, 0, 0]),
            ("nrev/2", [31, 31, 0, 0, 0, 0]),
            ("range/3", [30, 30, 0, 0, 0, 0]),
            ("nrev30/1", [2, 2, 0, 0, 0, 0]),
        ],
    ),
    ("hanoi(5,a,b,c)", true, &[("hanoi/4", [63, 63, 0, 0, 0, 0])]),
    ("fib(10,_)", true, &[("fib/2", [177, 177, 0, 0, 0, 0])]),
    ("loop(1000)", true, &[("loop/1", [1001, 1001, 0, 0, 0, 0])]),
    (
        "queens(6,_)",
        true,
        &[
            ("queens/3", [32, 7, 0, 25, 0, 7]),
            ("sel/3", [102, 153, 141, 90, 0, 12]),
            ("not_attack/3", [190, 106, 0, 84, 0, 0]),
            ("queens/2", [1, 1, 0, 0, 0, 1]),
            ("range/3", [6, 6, 0, 0, 0, 0]),
        ],
    ),
    (
        "findall(Q,queens(6,Q),_)",
        true,
        &[
            ("queens/2", [1, 4, 4, 1, 0, 0]),
            ("queens/3", [153, 28, 28, 153, 0, 0]),
            ("sel/3", [509, 705, 705, 509, 0, 0]),
            ("not_attack/3", [936, 562, 0, 374, 0, 0]),
            ("range/3", [6, 6, 0, 0, 0, 0]),
        ],
    ),
    ("even(10)", true, &[("even/1", [6, 6, 0, 0, 0, 0]), ("odd/1", [5, 5, 0, 0, 0, 0])]),
    ("ping(6)", true, &[("ping/1", [4, 4, 0, 0, 0, 0]), ("pong/1", [3, 3, 0, 0, 0, 0])]),
    ("p(3)", true, &[("p/1", [4, 4, 0, 0, 0, 0]), ("q/1", [3, 3, 0, 0, 0, 0]), ("r/1", [3, 3, 0, 0, 0, 0])]),
    ("use", true, &[("gen/1", [1, 3, 2, 0, 0, 0]), ("use/0", [1, 1, 0, 0, 0, 0])]),
    ("all", true, &[("gen/1", [1, 3, 2, 0, 0, 0]), ("all/0", [1, 1, 0, 0, 0, 0])]),
    ("first(_)", true, &[("gen/1", [1, 1, 0, 0, 0, 1]), ("first/1", [1, 1, 0, 0, 0, 0])]),
    ("ite(_)", true, &[("gen/1", [1, 2, 1, 0, 0, 1]), ("ite/1", [1, 1, 0, 0, 0, 0])]),
    ("neg", true, &[("gen/1", [1, 3, 2, 0, 0, 0]), ("neg/0", [1, 1, 0, 0, 0, 0])]),
    ("collect(_)", true, &[("gen/1", [1, 3, 2, 0, 0, 0]), ("collect/1", [1, 1, 0, 0, 0, 0])]),
    ("each", true, &[("gen/1", [1, 3, 2, 0, 0, 0]), ("each/0", [1, 1, 0, 0, 0, 0])]),
    ("caught(5)", true, &[("deep/1", [6, 0, 0, 0, 6, 0]), ("caught/1", [1, 1, 0, 0, 0, 0])]),
    ("tfib(10,_)", false, &[("tfib/2", [19, 19, 0, 0, 0, 0])]),
    ("findall(Y,path(1,Y),_)", false, &[("path/2", [2, 6, 5, 1, 0, 0]), ("edge/2", [4, 4, 0, 0, 0, 0])]),
    ("remember(3)", true, &[("fact/1", [1, 3, 2, 0, 0, 0]), ("remember/1", [1, 1, 0, 0, 0, 0])]),
    // The second call has its argument, so it leaves no choice.
    ("twice(gen(_))", true, &[("gen/1", [2, 2, 0, 0, 0, 1]), ("twice/1", [1, 1, 0, 0, 0, 1])]),
];

/// Every goal of [`TRUTH`], each into a file with its number.
fn run_all(prolog: &Prolog, options: &str) {
    let mut program = BOXES.to_owned();
    for (at, (goal, ..)) in TRUTH.iter().enumerate() {
        program += &format!(
            ":- treering(boxes:({goal}), [ports(true), modules([boxes]), report(none), output('{at}.trg'){options}]).\n"
        );
    }
    prolog.run(&program);
}

pub(crate) fn of_boxes(counts: BTreeMap<String, Counts>) -> BTreeMap<String, Counts> {
    counts
        .into_iter()
        .filter_map(|(name, row)| Some((name.strip_prefix("boxes:")?.to_owned(), row)))
        .collect()
}

#[test]
fn ports_are_exact() {
    let Some(prolog) = Prolog::new("exact") else { return };
    run_all(&prolog, "");
    for (at, (goal, _, expected)) in TRUTH.iter().enumerate() {
        let profile = prolog.profile(&format!("{at}.trg"));
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(name, row)| ((*name).to_owned(), *row)).collect();
        assert_eq!(of_boxes(counts(&profile)), expected, "{goal}");
        check_boxes(&profile);
    }
}

#[test]
fn calls_exits_fails_and_exceptions_are_those_of_the_tracer() {
    let Some(prolog) = Prolog::new("traced") else { return };
    let mut program = ":- use_module(fixtures(boxes)).\n:- use_module(fixtures(traced)).\n".to_owned();
    let goals: Vec<_> = TRUTH.iter().filter(|(_, is_traced, _)| *is_traced).collect();
    for (goal, ..) in &goals {
        program += &format!(":- writeln(goal), traced(boxes:({goal})).\n");
    }
    let traced = prolog.run(&program);
    let sections: Vec<&str> = traced.split("goal\n").skip(1).collect();
    assert_eq!(sections.len(), goals.len());
    for (section, (goal, _, expected)) in sections.iter().zip(&goals) {
        let row = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let numbers = words[1..].iter().map(|word| word.parse::<u64>().expect("a number")).collect();
            (words[0].to_owned(), numbers)
        };
        let found: BTreeMap<String, Vec<u64>> = section.lines().map(row).collect();
        let expected: BTreeMap<_, _> = expected
            .iter()
            .map(|(name, [calls, exits, _, fails, exceptions, _])| {
                ((*name).to_owned(), vec![*calls, *exits, *fails, *exceptions])
            })
            .collect();
        assert_eq!(found, expected, "{goal}");
    }
}

#[test]
fn counts_are_the_same_under_every_recursion_rule() {
    let Some(prolog) = Prolog::new("rules") else { return };
    for rule in ["full", "swi_classic"] {
        run_all(&prolog, &format!(", recursion({rule})"));
        for (at, (goal, _, expected)) in TRUTH.iter().enumerate() {
            let profile = prolog.profile(&format!("{at}.trg"));
            let expected: BTreeMap<_, _> =
                expected.iter().map(|(name, row)| ((*name).to_owned(), *row)).collect();
            assert_eq!(of_boxes(counts(&profile)), expected, "{goal} under {rule}");
        }
    }
}

#[test]
fn the_systems_profiler_counts_the_same_calls() {
    let Some(prolog) = Prolog::new("ticks") else { return };
    let mut program = BOXES.to_owned();
    for (at, (goal, ..)) in TRUTH.iter().enumerate() {
        program += &format!(":- treering(boxes:({goal}), [report(none), output('{at}.trg')]).\n");
    }
    let output = prolog.output(&program);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("too few to tell where it goes"));
    // Of tabled predicates it counts the calls within the tables as well.
    for (at, (goal, _, expected)) in TRUTH.iter().enumerate().filter(|(_, (_, is_traced, _))| *is_traced) {
        let profile = prolog.profile(&format!("{at}.trg"));
        let calls = of_boxes(counts(&profile)).into_iter().map(|(name, row)| (name, row[0]));
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(name, row)| ((*name).to_owned(), row[0])).collect();
        assert_eq!(calls.collect::<BTreeMap<_, _>>(), expected, "{goal}");
        assert!(profile.ports.is_empty(), "its exits and redos are wrong");
    }
}

#[test]
fn without_the_tree_callers_are_known_all_the_same() {
    let Some(prolog) = Prolog::new("no_tree") else { return };
    let output = prolog.output(&format!(
        "{BOXES}:- use_module(library(prolog_wrap)).
        :- wrap_predicate(treering:has_tree, none, _, fail).
        :- treering(boxes:(findall(Q, queens(6, Q), _)), [report(none), output('flat.trg')]).\n"
    ));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let profile = prolog.profile("flat.trg");
    assert!(profile.is_arcs_only());
    let name = |function: treering_profile::FunctionId| {
        &profile.strings[profile.functions.entries()[function.index()].name]
    };
    let arcs: Vec<_> =
        profile.arcs.iter().map(|arc| (name(arc.caller), name(arc.callee), arc.calls)).collect();
    for expected in [
        ("boxes:queens/2", "boxes:queens/3", 1),
        ("boxes:queens/3", "boxes:queens/3", 152),
        ("boxes:queens/3", "boxes:sel/3", 153),
    ] {
        assert!(arcs.contains(&expected), "{expected:?} in {arcs:?}");
    }
    assert_eq!(of_boxes(counts(&profile))["sel/3"][0], 509);
}

#[test]
fn time_of_the_systems_profiler_is_all_of_the_processor_time() {
    let Some(prolog) = Prolog::new("time") else { return };
    // On a busy machine the system takes some four samples in a tenth of a second, and at times none.
    let output = prolog.output(&format!(
        "{BOXES}:- statistics(cputime, Before),
           treering(boxes:nrev30(60000), [report(none), output('time.trg')]),
           statistics(cputime, After),
           Time is round((After-Before)*1.0e9), print(Time), nl."
    ));
    let around: u64 = text(&output.stdout).trim().parse().expect("a number");
    let profile = prolog.profile("time.trg");
    let cpu = profile.find_metric("cpu").expect("the metric is there");
    let time = profile.run_cost(cpu);
    assert_eq!(Some(time), profile.runs[0].cpu_ns);
    // The text around it is that of the file.
    assert!(time <= around && around - time < around / 5, "{time} of {around}");
    let samples = profile.find_metric("samples").expect("the metric is there");
    assert_eq!(profile.run_cost(samples), profile.metadata.losses.samples);
    let roots =
        profile.tree.nodes().filter(|&node| profile.tree.parent(node) == Some(profile.threads[0].root));
    let names: Vec<_> = roots
        .map(|node| &profile.strings[profile.functions.entries()[profile.tree.function(node).index()].name])
        .collect();
    assert_eq!(names, ["boxes:nrev30/1"]);
}

#[test]
fn profile_of_the_system_leads_to_our_report() {
    let Some(prolog) = Prolog::new("profile") else { return };
    let output =
        prolog.output(&format!("{BOXES}:- profile(boxes:queens(6, _), [top(2), cumulative(true)]).\n"));
    let printed = text(&output.stdout);
    assert!(printed.contains("CPU time:") && printed.contains("no sample was taken"), "{printed}");
    assert!(printed.contains("(=\\=)/2") && !printed.contains("queens/3"), "two lines: {printed}");
    assert_eq!(of_boxes(counts(&prolog.profile("treering.trg")))["queens/3"][0], 32);
}

#[test]
fn a_goal_that_uses_the_profiler_of_the_system_is_counted_by_ports_or_said_to_miss_calls() {
    let Some(prolog) = Prolog::new("within") else { return };
    let goal = "(boxes:nrev30(1), profile(boxes:nrev30(1)), boxes:nrev30(1))";
    for (options, is_whole) in [("ports(true)", true), ("ports(false)", false), ("clock(wall)", false)] {
        let said =
            prolog.output(&format!("{BOXES}:- treering({goal}, [{options}, output('within.trg')]).\n"));
        let profile = prolog.profile("within.trg");
        let calls = of_boxes(counts(&profile)).get("app/3").map_or(0, |counts| counts[0]);
        let note = "the goal used SWI-Prolog's profiler itself";
        let is_noted = profile.metadata.notes.iter().any(|known| known.0.starts_with(note));
        assert_eq!((calls == 3 * 465, !is_noted), (is_whole, is_whole), "{options}: {calls} {said:?}");
        assert_eq!(text(&said.stderr).contains(note), !is_whole, "{said:?}");
        // The table of the system's profiler is empty only where that is said.
        let has_row = text(&said.stdout).lines().any(|line| line.starts_with("boxes:nrev30/1"));
        assert_eq!(text(&said.stderr).contains("whose table is empty"), !has_row, "{options}: {said:?}");
    }
}
