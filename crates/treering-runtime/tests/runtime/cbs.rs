//! Programs that use the interface of CBS, and C programs, from the compiler to the report.
//!
//! They are linked with the static library that cargo builds beside this test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::program::{library, succeeded};
use treering_profile::FunctionKind;

/// A program that was built, and its folder, where it runs.
struct Program {
    folder: PathBuf,
}

impl Program {
    /// Builds one of `hooks/c/tests/end_to_end`; nothing if there is no compiler.
    fn build(source: &str) -> Option<Self> {
        let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/c");
        Self::build_file(&hooks.join("tests/end_to_end").join(source), &["-O1"])
    }

    fn build_file(source: &Path, flags: &[&str]) -> Option<Self> {
        // Tests run at the same time, each in a thread of its name.
        let test = std::thread::current().name().unwrap_or("test").replace("::", "/");
        let is_c = source.extension().is_some_and(|extension| extension == "c");
        let (compiler, standard) = if is_c { ("cc", "-std=c11") } else { ("c++", "-std=c++17") };
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("skipped: {compiler} is not installed");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cbs").join(test);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/c/include");
        let mut command = Command::new(compiler);
        command.args([standard, "-Wall", "-Wextra", "-Werror"]).args(flags).arg("-I").arg(include);
        command.arg(source).arg(library("a")).args(["-lpthread", "-ldl", "-lm", "-lrt", "-o"]);
        succeeded(command.arg(folder.join("program")));
        Some(Self { folder })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.folder.join("program"));
        command.args(arguments).current_dir(&self.folder);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        succeeded(&mut self.command(arguments))
    }

    /// The program's standard output and standard error, after it has ended well.
    fn says(&self, arguments: &[&str]) -> (String, String) {
        let Output { stdout, stderr, .. } = self.run(arguments);
        (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn read(&self, file: &str) -> String {
        let bytes = std::fs::read(self.folder.join(file)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// The XML report in a file, after it was found to follow the schema.
    fn report(&self, file: &str) -> Report {
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/bench.xsd");
        let mut command = Command::new("xmllint");
        command.args(["--noout", "--nonet", "--schema"]).arg(schema).arg(self.folder.join(file));
        match command.output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(_) => eprintln!("skipped: xmllint is not installed"),
        }
        Report { xml: self.read(file) }
    }
}

/// An XML report, read line by line.
struct Report {
    xml: String,
}

impl Report {
    fn attribute<'a>(line: &'a str, name: &str) -> &'a str {
        let start = format!(" {name}=\"");
        let (_, rest) = line.split_once(&start).unwrap_or_else(|| panic!("no {name} in {line}"));
        rest.split_once('"').unwrap().0
    }

    fn lines<'a>(&'a self, element: &str) -> impl Iterator<Item = &'a str> {
        let start = format!("<{element} ");
        self.xml.lines().filter(move |line| line.trim_start().starts_with(&start))
    }

    fn number(line: &str, name: &str) -> u64 {
        Self::attribute(line, name).parse().unwrap()
    }

    /// Name, calls and recursive calls of all tasks, by name.
    fn tasks(&self) -> Vec<(&str, u64, u64)> {
        let task = |line| {
            (Self::attribute(line, "name"), Self::number(line, "calls"), Self::number(line, "recursiveCalls"))
        };
        let mut tasks: Vec<_> = self.lines("task").map(task).collect();
        tasks.sort_unstable();
        tasks
    }

    /// Caller, callee and calls, by name.
    fn calls(&self) -> Vec<(&str, &str, u64)> {
        let name = |line, end| {
            let id = Self::attribute(line, end);
            let task = self.lines("task").find(|task| Self::attribute(task, "id") == id);
            Self::attribute(task.unwrap(), "name")
        };
        let call = |line| (name(line, "source"), name(line, "target"), Self::number(line, "count"));
        let mut calls: Vec<_> = self.lines("call").map(call).collect();
        calls.sort_unstable();
        calls
    }

    /// Task and description of each point of the memory plot.
    fn points(&self) -> Vec<(&str, &str)> {
        let content = |plot: &'_ str, name: &str| -> std::ops::Range<usize> {
            let start = plot.find(&format!("<{name}>")).unwrap() + name.len() + 2;
            start..plot.find(&format!("</{name}>")).unwrap()
        };
        let plots = self.xml.split("<plot>").skip(1);
        plots.map(|plot| (&plot[content(plot, "task")], &plot[content(plot, "description")])).collect()
    }

    fn value(&self, element: &str, name: &str) -> &str {
        let line = self.lines(element).find(|line| Self::attribute(line, "name") == name);
        Self::attribute(line.unwrap_or_else(|| panic!("no {name} in\n{}", self.xml)), "value")
    }
}

#[test]
fn every_macro_of_cbs_has_its_effect() {
    let Some(program) = Program::build("all_macros.cc") else { return };
    let output = program.run(&[]);
    let report = program.report("stopped.xml");
    assert_eq!(
        report.tasks(),
        [
            ("_program", 1, 0),
            ("factorial", 10, 9),
            ("outer", 1, 0),
            ("ping", 9, 0),
            ("pong", 9, 0),
            ("throwing", 4, 0)
        ]
    );
    assert_eq!(
        report.calls(),
        [
            ("_program", "factorial", 1),
            ("_program", "outer", 1),
            ("_program", "throwing", 4),
            ("factorial", "factorial", 9),
            ("outer", "ping", 3),
            ("ping", "pong", 9),
            ("pong", "ping", 6)
        ]
    );
    assert_eq!(report.value("parameter", "depth"), "5");
    assert_eq!(report.value("result", "answer"), "42");
    assert_eq!(report.value("result", "late"), "told after the stop");
    assert_eq!(report.value("result", "timer measures"), "34");
    let [resident, all] = ["memory peak (resident)", "memory peak"].map(|name| report.value("result", name));
    let [resident, all]: [u64; 2] = [resident, all].map(|bytes| bytes.parse().unwrap());
    assert!(0 < resident && resident <= all, "{resident} of {all}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("all \"macros\"\n") && text.contains("(C: 1) ping"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80 || line.starts_with("  * ")), "{text}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("[Results:]"));
    assert!(program.read("stopped.dot").starts_with("digraph \"all \\\"macros\\\"\""));
    assert!(program.read("stopped.plot").contains("\"half of it\""));
}

#[test]
fn a_benchmark_that_runs_can_be_saved() {
    let Some(program) = Program::build("all_macros.cc") else { return };
    program.run(&[]);
    let report = program.report("running.xml");
    assert!(report.xml.contains("stopped=\"false\"") && report.xml.contains("has not been stopped"));
    assert_eq!(report.tasks(), program.report("stopped.xml").tasks());
}

#[test]
fn starts_and_stops_that_do_not_balance_are_told_of() {
    let Some(program) = Program::build("unbalanced.cc") else { return };
    program.run(&[]);
    let report = program.report("unbalanced.xml");
    assert_eq!(
        report.calls(),
        [
            ("_program", "left running", 1),
            ("left running", "scope", 1),
            ("left running", "within the first", 1),
            ("scope", "left running in a scope", 1),
        ]
    );
    assert!(report.xml.matches("<note>").count() >= 2, "{}", report.xml);
}

#[test]
fn a_report_without_a_benchmark_is_valid_and_says_so() {
    let Some(program) = Program::build("unstarted.cc") else { return };
    program.run(&[]);
    let report = program.report("unstarted.xml");
    assert_eq!(report.tasks(), [("_program", 1, 0)]);
    assert!(report.xml.contains("<note>"), "{}", report.xml);
    assert!(program.read("unstarted.dot").starts_with("digraph"));
}

#[test]
fn tasks_of_a_c_program_are_counted() {
    let Some(program) = Program::build("tasks.c") else { return };
    program.run(&[]);
    let report = program.report("tasks.xml");
    assert_eq!(
        report.calls(),
        [
            ("_program", "branch", 10),
            ("_program", "by id", 1),
            ("branch", "leaves", 10),
            ("by id", "&quot;quoted&quot;&#10;&lt;\u{fffd}&gt;", 1),
            ("leaves", "leaf", 45),
        ]
    );
}

#[test]
fn interpreters_state_kinds_of_functions_and_costs_of_lines() {
    let Some(program) = Program::build("language.c") else { return };
    program.run(&[]);
    let (profile, _) =
        treering_formats::trg::read(&std::fs::read(program.folder.join("treering.trg")).unwrap()).unwrap();
    let text = |id| profile.strings.get(id).unwrap().to_owned();
    let mut kinds: Vec<_> = profile.functions.iter().map(|(_, of)| (text(of.name), of.kind)).collect();
    kinds.retain(|(name, _)| ["script", "solve", "sine", "odd"].contains(&&**name));
    kinds.sort_by(|(one, _), (other, _)| one.cmp(other));
    let [user, builtin, script] = [FunctionKind::Interpreted, FunctionKind::Builtin, FunctionKind::Script];
    let expected = [("odd", user), ("script", script), ("sine", builtin), ("solve", user)];
    assert_eq!(kinds, expected.map(|(name, kind)| (name.to_owned(), kind)));
    let hits = profile.metrics().find(|(_, metric)| metric.name == "line hits").unwrap().0;
    let mut lines: Vec<_> = profile
        .line_costs
        .iter()
        .filter(|part| part.metric == hits)
        .map(|part| (profile.lines.get(part.line).unwrap().line, part.cost))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, [(2, 10), (8, 20), (9, 10)]);
}

#[test]
fn reports_that_the_command_line_asks_for_are_written_at_the_stop() {
    let Some(program) = Program::build("arguments.cc") else { return };
    let (said, reported) =
        program.says(&["first", "--report-time=minimal", "second", "--export-time-xml=asked.xml"]);
    assert_eq!(said, "first second \nstopping\nstopped\n");
    assert!(reported.starts_with("arguments\n\n[Description:]\n"), "{reported}");
    assert!(reported.contains("[Task list:]") && !reported.contains("[Call graph:]"), "{reported}");
    assert!(reported.ends_with("after the stop\n"), "{reported}");
    let report = program.report("asked.xml");
    assert_eq!(report.calls(), [("_program", "outer", 2), ("outer", "inner", 6)]);
    assert_eq!(report.value("result", "late"), "told after the stop");
}

#[test]
fn a_program_that_is_not_asked_reports_nothing() {
    let Some(program) = Program::build("arguments.cc") else { return };
    let (said, reported) = program.says(&["--report-timed", "--", "--report-time"]);
    assert_eq!(said, "--report-timed -- --report-time \nstopping\nstopped\n");
    assert_eq!(reported, "after the stop\n");
}

#[test]
fn graphs_and_documents_go_to_standard_error_without_a_file() {
    let Some(program) = Program::build("arguments.cc") else { return };
    let (_, dot) = program.says(&["--export-time-dot=0"]);
    assert!(dot.starts_with("digraph \"arguments\"") && !dot.contains("avg"), "{dot}");
    assert!(program.says(&["--export-time-dot"]).1.contains("avg"));
    let (_, xml) = program.says(&["--export-time-xml", "--report-time=none"]);
    let (text, xml) = xml.split_once("<?xml").unwrap();
    assert!(text.contains("[Results:]") && !text.contains("[Task list:]"), "{text}");
    assert!(xml.contains("<task id=\"1\" name=\"outer\" calls=\"2\""), "{xml}");
}

#[test]
fn a_benchmark_that_runs_when_the_program_exits_is_reported() {
    let Some(program) = Program::build("arguments.cc") else { return };
    let output = program.command(&["--export-time-xml=exit.xml", "exit"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let report = program.report("exit.xml");
    assert_eq!(report.calls(), [("_program", "outer", 2), ("outer", "inner", 6)]);
    assert!(report.xml.contains("stopped=\"true\""), "{}", report.xml);
}

#[test]
fn a_program_that_starts_no_benchmark_reports_that() {
    let Some(program) = Program::build("arguments.cc") else { return };
    let (_, reported) = program.says(&["--report-time", "idle"]);
    assert!(reported.contains("no benchmark was started"), "{reported}");
}

#[test]
fn a_child_of_a_fork_reports_nothing() {
    let Some(program) = Program::build("arguments.cc") else { return };
    let (_, reported) = program.says(&["--report-time=none", "fork"]);
    assert_eq!(reported.matches("[Results:]").count(), 1, "{reported}");
}

#[test]
fn wrong_arguments_are_reported_and_none_is_taken() {
    let Some(program) = Program::build("arguments.cc") else { return };
    for (wrong, problem) in [
        ("--report-time=loud", "--report-time: \"loud\" is not a level"),
        ("--export-time-dot=4", "--export-time-dot: \"4\" is not a level"),
        ("--export-time-xml=", "--export-time-xml: the name of the file is missing"),
    ] {
        let output = program.command(&["--report-time", wrong]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(said.starts_with(&format!("program: {problem}")), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(output.stdout, format!("--report-time {wrong} \n").as_bytes());
    }
}

#[test]
fn files_that_cannot_be_written_are_reported() {
    let Some(program) = Program::build("arguments.cc") else { return };
    let (_, said) = program.says(&["--export-time-xml=no such folder/x"]);
    assert!(said.starts_with("treering: cannot write no such folder/x: "), "{said}");
}

#[test]
fn the_help_of_a_program_lists_the_options() {
    let Some(program) = Program::build("arguments.cc") else { return };
    let (said, _) = program.says(&["--help"]);
    for option in ["--report-time[=LEVEL]", "--export-time-xml[=FILE]", "--export-time-dot[=LEVEL]"] {
        assert!(said.lines().any(|line| line.starts_with(&format!("  {option} "))), "{said}");
    }
    assert!(said.ends_with("from 0 to 3\n"), "{said}");
}

#[test]
fn a_c_program_takes_the_same_options() {
    let Some(program) = Program::build("tasks.c") else { return };
    let (said, reported) = program.says(&["--export-time-xml=asked.xml", "left", "--report-time=1"]);
    assert_eq!(said, "left\n");
    assert!(reported.contains("[Task list:]"), "{reported}");
    assert_eq!(program.report("asked.xml").calls(), program.report("tasks.xml").calls());
}

#[test]
fn tasks_by_number_are_those_of_that_name() {
    let Some(program) = Program::build("by_id.cc") else { return };
    program.run(&[]);
    let report = program.report("by_id.xml");
    assert_eq!(
        report.calls(),
        [
            ("_program", "outer", 1),
            ("outer", "started", 6),
            ("scoped", "scoped", 10),
            ("started", "scoped", 5),
        ]
    );
    assert!(!report.xml.contains("<note>"), "{}", report.xml);
}

/// The stop that belonged to a start of no task ended the task around it.
#[test]
fn a_task_without_a_number_is_stopped_by_its_own_stop() {
    let Some(program) = Program::build("by_id.cc") else { return };
    succeeded(program.command(&["none"]).env("TREERING", "off"));
    let report = program.report("by_id.xml");
    assert_eq!(report.calls(), [("_program", "outer", 1), ("outer", "started", 1)]);
    assert!(!report.xml.contains("<note>"), "{}", report.xml);
}

#[test]
fn points_of_the_memory_plot_have_the_task_that_runs() {
    let Some(program) = Program::build("switches.cc") else { return };
    program.run(&[]);
    let expected = [
        ("_program", "Initial memory usage"),
        ("outer", "in outer"),
        ("inner", "in inner"),
        ("worker", "in a thread"),
        ("outer", "in outer again"),
        ("_program", "outside"),
        ("around", "timer off"),
        ("_program", "Final memory usage"),
    ];
    assert_eq!(program.report("switches.xml").points(), expected);
}

const WITH_ALL_TASKS: [(&str, &str, u64); 6] = [
    ("_program", "around", 1),
    ("_program", "often", 100_000),
    ("_program", "outer", 1),
    ("_program", "worker", 1),
    ("around", "within", 1),
    ("outer", "inner", 1),
];

#[test]
fn the_timer_is_switched_off_and_on_between_starts_and_stops() {
    let Some(program) = Program::build("switches.cc") else { return };
    program.run(&[]);
    let report = program.report("switches.xml");
    assert_eq!(report.calls(), WITH_ALL_TASKS);
    assert!(!report.xml.contains("<note>"), "{}", report.xml);
}

#[test]
fn task_that_runs_at_the_start_is_not_charged_with_time_used_before() {
    let Some(program) = Program::build("started_within.cc") else { return };
    program.run(&[]);
    let report = program.report("started_within.xml");
    // Once within the benchmark, besides the start before it.
    assert_eq!(report.tasks(), [("_program", 1, 0), ("task", 1, 0)]);
    assert!(!report.xml.contains("<note>"), "{}", report.xml);
}

#[test]
fn the_overhead_is_estimated_within_the_run_and_has_an_upper_end() {
    let Some(program) = Program::build("switches.cc") else { return };
    program.run(&[]);
    let report = program.report("switches.xml");
    let [estimated, most, run] =
        ["measuring overhead (estimated)", "measuring overhead (at most)", "time (wall)"]
            .map(|name| report.value("result", name).parse::<f64>().unwrap());
    assert!(0.0 <= estimated && estimated <= most && estimated < run, "{estimated} to {most} of {run} ms");
    // 100,000 tasks, for each of which the clock is read twice.
    assert!(0.1 < most, "{most} ms");
}

#[test]
fn the_environment_switches_the_memory_plot_off_and_leaves_the_tasks() {
    let Some(program) = Program::build("switches.cc") else { return };
    succeeded(program.command(&[]).env("TREERING_MEMPLOT", "off"));
    let report = program.report("switches.xml");
    assert_eq!(report.points(), []);
    assert_eq!(report.calls(), WITH_ALL_TASKS);
    assert_eq!(report.value("result", "memory peak"), "0");
}

#[test]
fn the_environment_switches_the_tasks_off_and_leaves_the_memory_plot() {
    let Some(program) = Program::build("switches.cc") else { return };
    succeeded(program.command(&[]).env("TREERING_IGNORE", "*"));
    let report = program.report("switches.xml");
    assert_eq!(report.tasks(), [("_program", 1, 0)]);
    assert_eq!(report.points().len(), 8);
    assert!(report.points().iter().all(|(task, _)| *task == "_program"), "{}", report.xml);
    assert!(!report.xml.contains("<note>"), "{}", report.xml);
}
