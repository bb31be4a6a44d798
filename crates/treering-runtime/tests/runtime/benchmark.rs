//! The reports of one small benchmark, to the letter, and what other programs make of them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use treering_runtime::benchmark::{
    Contents, Format, Machine, MeasuringCost, Node, Options, Point, Run, Times, Verbosity, write,
};

const MS: u64 = 1_000_000;

fn cost(user_ms: u64, system_ms: u64) -> Times {
    let (user_ns, system_ns) = (user_ms * MS, system_ms * MS);
    Times { wall_ns: user_ns + system_ns + MS, user_ns, system_ns }
}

/// main calls solve; solve and refine call each other, and refine calls itself.
fn nodes() -> [Node; 4] {
    let node = |parent, task, calls, recursive_calls, self_cost| Node {
        parent,
        task,
        calls,
        recursive_calls,
        self_cost,
    };
    [
        node(None, 0, 1, 0, cost(100, 20)),
        node(Some(0), 1, 4, 0, cost(300, 0)),
        node(Some(1), 2, 10, 6, cost(200, 80)),
        node(Some(2), 1, 2, 0, cost(50, 0)),
    ]
}

const TASKS: [&[u8]; 3] = [b"main", b"solve", b"refine the mesh until it is fine enough for everyone"];

/// Names that are hard to write: quotes, markup, line ends, control characters, invalid UTF-8.
const HARD: [&[u8]; 3] = [
    b"a \"quoted\" <name> & 'more'",
    b"two\nlines\t\\n \x01\x1b[31m",
    b"\xff\xfe not UTF-8 \xed\xa0\x80 ]]>",
];

fn points() -> [Point<'static>; 2] {
    let point = |time_ns, task, description, virtual_bytes| Point {
        time_ns,
        task,
        description,
        virtual_bytes,
        // Not the largest where the virtual size is.
        resident_bytes: if time_ns == 0 { 2_000_000_001 } else { 1_500_000_000 },
    };
    [
        point(0, None, &b"Initial memory usage"[..], 3_000_000_000),
        point(1_234_567_890, Some(1), &b"a \"grid\"\nof cells"[..], 7_500_000_000),
    ]
}

/// Shows a run with these tasks to `see`.
fn with_run<T>(tasks: &[&[u8]], see: impl Fn(&Run) -> T) -> T {
    let machine = Machine { host: "oak".into(), cpu: "Fast & Co <3 GHz>".into(), memory: "1024 kB".into() };
    let run = Run {
        name: tasks[0],
        description: b"What it is about,\nin two lines",
        start_unix_s: 1_790_000_000,
        date: "Mon Sep 21 14:13:20 2026",
        machine: &machine,
        parameters: &[(b"n", b"3"), (b"mode", b"fast"), (b"n", b"4")],
        results: &[(b"error", b"0.5")],
        nodes: &nodes(),
        tasks,
        points: &points(),
        run: Times { wall_ns: 900 * MS, user_ns: 700 * MS, system_ns: 100 * MS },
        children: cost(5, 1),
        cpu_uncertainty_ns: 0,
        timer_measures: 17,
        measuring_cost: Some(MeasuringCost { estimated_ns: 70.5, most_ns: 120.5 }),
        stopped: true,
        notes: &[],
    };
    see(&run)
}

const ALL: Contents = Contents(3);

fn report_of(run: &Run, verbosity: Verbosity, format: Format, contents: Contents) -> String {
    let mut out = Vec::new();
    write(run, Options { verbosity, format, contents }, &mut out);
    String::from_utf8(out).unwrap()
}

fn report(tasks: &[&[u8]], verbosity: Verbosity, format: Format) -> String {
    with_run(tasks, |run| report_of(run, verbosity, format, ALL))
}

/// Gives a program the text and returns what it wrote, or nothing if it is not installed.
fn through(program: &str, arguments: &[&str], text: &str) -> Option<(bool, String)> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    let text = text.to_owned();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A program that refuses the text may not read all of it.
    drop(writer.join());
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[test]
fn the_text_is_as_it_was_agreed() {
    let expected = include_str!("benchmark/normal.txt");
    assert_eq!(report(&TASKS, Verbosity::Normal, Format::Text), expected);
}

#[test]
fn each_verbosity_adds_sections() {
    let heads = |verbosity| -> Vec<String> {
        let text = report(&TASKS, verbosity, Format::Text);
        let heads = text.lines().filter(|line| line.starts_with('[') && line.ends_with(":]"));
        heads.skip(4).map(|line| line.trim_matches(['[', ']', ':']).to_owned()).collect()
    };
    assert_eq!(heads(Verbosity::None), [""; 0]);
    assert_eq!(heads(Verbosity::Minimal), ["Task list", "Memplot"]);
    assert_eq!(heads(Verbosity::Normal), ["Task list", "Cycles", "Call graph", "Memplot"]);
    assert_eq!(heads(Verbosity::Full), ["Task list", "Cycles", "Call graph", "Detailed tasks", "Memplot"]);
}

#[test]
fn up_to_normal_no_line_is_longer_than_80_columns() {
    let long: Vec<u8> = "ü".repeat(200).into_bytes();
    let text = with_run(&[&long, &long[2..], b"short"], |run| {
        report_of(run, Verbosity::Normal, Format::Text, ALL | Contents::NOSUMMARY)
    });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().any(|line| line.ends_with('…')), "{text}");
    let full = with_run(&[&long, b"b", b"c"], |run| report_of(run, Verbosity::Full, Format::Text, ALL));
    assert!(full.contains(&"ü".repeat(200)));
}

#[test]
fn parts_that_are_not_asked_for_are_left_out() {
    let of = |format, contents| {
        with_run(&TASKS, |run| report_of(run, Verbosity::Full, format, Contents(contents)))
    };
    assert!(!of(Format::Text, 0).contains("[Task list:]"));
    assert_eq!(of(Format::Text, 4), "");
    assert_eq!(of(Format::Xml, 4), "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<bench>\n</bench>\n");
    assert!(of(Format::Xml, 2).contains("<memplot>") && !of(Format::Xml, 2).contains("<timer"));
    assert!(!of(Format::Dot, 2).contains("t0"));
    assert_eq!(of(Format::Gnuplot, 1), "");
}

#[test]
fn wall_time_is_the_base_where_no_cpu_time_was_measured() {
    let wall = |node: Node| {
        let self_cost = Times { wall_ns: node.self_cost.wall_ns, ..Times::default() };
        Node { self_cost, ..node }
    };
    let nodes = nodes().map(wall);
    let text = with_run(&TASKS, |run| {
        report_of(&Run { nodes: &nodes, ..*run }, Verbosity::Minimal, Format::Text, ALL)
    });
    assert!(text.contains("the run's wall time,\n900.000 ms."), "{text}");
}

#[test]
fn threads_that_take_longer_together_than_the_run_are_told_of() {
    let text = with_run(&TASKS, |run| {
        let run = Run { run: Times { user_ns: MS, ..run.run }, ..*run };
        report_of(&run, Verbosity::Minimal, Format::Text, ALL)
    });
    assert!(text.contains("the run's CPU time,\n750.000 ms."), "{text}");
    assert!(text.contains("add up to more CPU time than the run took"), "{text}");
}

#[test]
fn threads_are_noted_only_beyond_the_uncertainty_of_the_clocks() {
    let tells = |excess_ns: u64| {
        with_run(&TASKS, |run| {
            // The tasks have 650 ms of user time and 100 ms of system time.
            let times = Times { user_ns: 450 * MS - excess_ns, system_ns: 300 * MS, ..run.run };
            let run = Run { run: times, cpu_uncertainty_ns: 4_000, ..*run };
            report_of(&run, Verbosity::Minimal, Format::Text, ALL).contains("add up to more CPU time")
        })
    };
    assert_eq!([0, 1, 4_000, 4_001].map(tells), [false, false, false, true]);
}

#[test]
fn a_benchmark_that_was_never_started_has_a_report_in_every_format() {
    let machine = Machine::default();
    let notes = ["a report was asked for and no benchmark had been started".to_owned()];
    let run = Run { notes: &notes, ..Run::new(&machine) };
    for format in [Format::Text, Format::Xml] {
        let text = report_of(&run, Verbosity::Full, format, ALL);
        assert!(text.contains(&notes[0]) && text.contains("has not been stopped"), "{text}");
    }
    validate(&report_of(&run, Verbosity::Full, Format::Xml, ALL));
    render(&report_of(&run, Verbosity::Full, Format::Dot, ALL));
}

#[test]
fn memory_beyond_four_gibibytes_is_stated_exactly() {
    let text = report(&TASKS, Verbosity::None, Format::Text);
    assert!(text.contains("  * memory peak: 7500000000\n"), "{text}");
    assert!(text.contains("  * relative memory usage: 4500000000\n"), "{text}");
    let plot = report(&TASKS, Verbosity::Normal, Format::Gnuplot);
    let points: Vec<&str> = plot.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        points,
        [
            "0.000 \"_program\" 3000000000 2000000001 \"Initial memory usage\"",
            "1234.568 \"solve\" 7500000000 1500000000 \"a 'grid'\\nof cells\"",
        ]
    );
}

#[test]
fn scripts_find_parameters_and_results_line_by_line() {
    let xml = report(&HARD, Verbosity::Normal, Format::Xml);
    let pairs = |name: &str| -> Vec<(String, String)> {
        let start = format!("<{name} name=\"");
        let lines = xml.lines().filter_map(|line| line.trim().strip_prefix(&start));
        lines
            .map(|line| line.strip_suffix("\" />").unwrap().split_once("\" value=\"").unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(pairs("parameter"), [own("n", "4"), own("mode", "fast")]);
    let results = pairs("result");
    let expected = [
        own("timer measures", "18"),
        own("time", "806.000"),
        own("time (user)", "700.000"),
        own("time (system)", "100.000"),
        own("time (children, user)", "5.000"),
        own("time (children, system)", "1.000"),
        own("time (wall)", "900.000"),
        own("memory peak", "7500000000"),
        own("relative memory usage", "4500000000"),
        own("memory peak (resident)", "2000000001"),
        // 17 activations of 70.5 ns, or 120.5 ns.
        own("measuring overhead (estimated)", "0.001"),
        own("measuring overhead (at most)", "0.002"),
        own("error", "0.5"),
    ];
    assert_eq!(results, expected);
}

#[test]
fn a_result_of_the_program_goes_before_a_computed_one() {
    let text = with_run(&TASKS, |run| {
        report_of(&Run { results: &[(b"time", b"mine")], ..*run }, Verbosity::None, Format::Text, ALL)
    });
    assert!(text.contains("  * time: mine\n") && !text.contains("806.000"), "{text}");
}

#[test]
fn overhead_is_the_cost_of_all_measures_where_it_is_known() {
    let text = |cost: Option<[f64; 2]>| {
        let measuring_cost = cost.map(|[estimated_ns, most_ns]| MeasuringCost { estimated_ns, most_ns });
        with_run(&TASKS, |run| {
            let run = Run { timer_measures: 2_000_000, measuring_cost, ..*run };
            report_of(&run, Verbosity::None, Format::Text, ALL)
        })
    };
    let tells = |cost, estimated, most| {
        let lines = format!(
            "  * measuring overhead (estimated): {estimated}\n  * measuring overhead (at most): {most}\n"
        );
        assert!(text(Some(cost)).contains(&lines), "{}", text(Some(cost)));
    };
    tells([40.5, 50.0], "81.000", "100.000");
    // Less than nothing is nothing, and the most is never below the estimate.
    tells([-3.0, 1.0], "0.000", "2.000");
    tells([4.0, 3.0], "8.000", "8.000");
    assert!(!text(None).contains("overhead"));
}

fn validate(xml: &str) {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/bench.xsd");
    if let Some((valid, said)) = through("xmllint", &["--noout", "--nonet", "--schema", schema, "-"], xml) {
        assert!(valid, "{said}\n{xml}");
    }
}

#[test]
fn the_xml_follows_the_schema_whatever_the_names_are() {
    for tasks in [TASKS, HARD] {
        for contents in 0..8 {
            validate(&with_run(&tasks, |run| {
                report_of(run, Verbosity::Normal, Format::Xml, Contents(contents))
            }));
        }
    }
}

#[test]
fn an_xml_reader_gets_the_names_back() {
    let xml = report(&HARD, Verbosity::Normal, Format::Xml);
    let path = "string(/bench/timer/taskList/task[@id=2]/@name)";
    if let Some((_, said)) = through("xmllint", &["--xpath", path, "-"], &xml) {
        assert_eq!(said.trim_end_matches('\n'), "two\nlines\t\\n \u{fffd}\u{fffd}[31m");
    }
    let path = "string(/bench/name)";
    if let Some((_, said)) = through("xmllint", &["--xpath", path, "-"], &xml) {
        assert_eq!(said.trim_end(), "a \"quoted\" <name> & 'more'");
    }
}

fn render(dot: &str) {
    if let Some((good, said)) = through("dot", &["-Tsvg"], dot) {
        assert!(good && said.contains("</svg>") && !said.contains("Warning"), "{said}\n{dot}");
    }
}

#[test]
fn graphviz_draws_the_graph_whatever_the_names_are() {
    for tasks in [TASKS, HARD] {
        for verbosity in [Verbosity::None, Verbosity::Minimal, Verbosity::Normal, Verbosity::Full] {
            render(&report(&tasks, verbosity, Format::Dot));
        }
    }
}

#[test]
fn tasks_in_xml_stand_by_charge_and_keep_their_ids() {
    let xml = report(&TASKS, Verbosity::Normal, Format::Xml);
    let starts: Vec<&str> = xml.lines().filter_map(|line| line.trim().strip_prefix("<task id=\"")).collect();
    let ids: Vec<&str> = starts.iter().map(|line| line.split_once('"').unwrap().0).collect();
    // As in the text: solve, refine, main, _program, which is always 0.
    assert_eq!(ids, ["2", "3", "1", "0"]);
    assert!(starts[3].contains("name=\"_program\""), "{xml}");
}

#[test]
fn the_memory_plot_by_itself_is_drawn_as_a_chain() {
    let of = |tasks: &[&[u8]], contents| {
        with_run(tasks, |run| report_of(run, Verbosity::Normal, Format::Dot, contents))
    };
    let dot = of(&TASKS, Contents::MEMPLOT);
    let first = "p0 [label=\"Initial memory usage\\lin _program\\lafter 0.000 ms\\l\
                 virtual 3000000000 bytes\\lresident 2000000001 bytes\\l\"";
    assert!(dot.contains(first), "{dot}");
    let step = "p0 -> p1 [label=\"1234.568 ms\\lvirtual +4500000000\\lresident -500000001\\l\"];";
    assert!(dot.contains(step) && !dot.contains("t0"), "{dot}");
    render(&dot);
    render(&of(&HARD, Contents::MEMPLOT));
    assert!(!of(&TASKS, ALL).contains("p0"));
    assert!(!of(&TASKS, Contents(0)).contains("p0"));
}

#[test]
fn the_graph_has_charges_counts_and_a_cluster_for_the_cycle() {
    let dot = report(&TASKS, Verbosity::Minimal, Format::Dot);
    assert!(dot.contains("t1 [label=\"main\\lself 15.0 %\\lcalls 1\\l\""), "{dot}");
    assert!(dot.contains("calls 10, 6 by itself"), "{dot}");
    assert!(dot.contains("calls: 4 incoming, 6 internal, 0 outgoing"), "{dot}");
    assert!(dot.contains("t2 -> t3 [label=\"calls 4\\l"), "{dot}");
    assert_eq!(dot.matches("subgraph cluster").count(), 1, "{dot}");
}

#[test]
fn numbers_of_the_c_interface_out_of_range_have_a_meaning() {
    let options = Options::from_numbers(-1, 99, -1);
    assert_eq!(options, Options { verbosity: Verbosity::None, format: Format::Text, contents: Contents(7) });
    assert_eq!(Options::from_numbers(i32::MAX, 2, 0).verbosity, Verbosity::Full);
}
