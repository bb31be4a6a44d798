//! `treering import`, mostly of what `treering export` wrote.

use treering_testing::programs::RECURSION;

use crate::session::{Session, program};

#[test]
fn an_exported_profile_comes_back_with_the_same_shares() {
    let session = Session::new();
    let before = session.record(&[], &program(&RECURSION.build().expect("the compiler is installed"), &[]));
    for (format, file) in [
        ("folded", "a.folded"),
        ("pprof", "a.pb.gz"),
        ("callgrind", "callgrind.out.a"),
        ("speedscope", "a.speedscope.json"),
        ("cpuprofile", "a.cpuprofile"),
        ("firefox", "a.firefox.json"),
    ] {
        session.output(&["export", "treering.trg", "--to", format, "-o", file]);
        let back = format!("{format}.trg");
        session.output(&["import", file, "--from", format, "-o", &back]);
        let after = session.flat(&[&back]);
        for function in ["direct", "even", "odd"] {
            let shares = (before.self_share(function), after.self_share(function));
            assert!((shares.0 - shares.1).abs() < 1e-3, "{format}, self cost of {function}: {shares:?}");
        }
        let totals = (before.total_share("main"), after.total_share("main"));
        assert!((totals.0 - totals.1).abs() < 1e-3, "{format}, total cost of main: {totals:?}");
        // Recursion is the hard part: a tree keeps the outermost activation, arcs alone may not.
        if format != "callgrind" {
            let totals = (before.total_share("direct"), after.total_share("direct"));
            assert!((totals.0 - totals.1).abs() < 1e-3, "{format}, total cost of direct: {totals:?}");
        }
    }
}

#[test]
fn the_format_is_recognised_by_content() {
    let session = Session::new();
    std::fs::write(session.path("stacks.txt"), "main;a;b 3\nmain;a 2\nmain;c 5\n")
        .expect("it can be written");
    session.output(&["import", "stacks.txt", "-o", "stacks.trg"]);
    let flat = session.flat(&["stacks.trg"]);
    assert_eq!((flat.cost("c").own, flat.cost("a").total, flat.run_cost()), (5.0, 5.0, 10.0));
    // A report reads it without being told.
    assert_eq!(session.flat(&["stacks.txt"]).run_cost(), 10.0);
}

#[test]
fn a_file_of_another_format_than_was_said_is_an_error() {
    let session = Session::new();
    std::fs::write(session.path("stacks.txt"), "main;a;b 3\n").expect("it can be written");
    let outcome = session.run(&["import", "stacks.txt", "--from", "pprof", "-o", "out.trg"]);
    assert!(outcome.error().contains("stacks.txt"));
    assert!(!session.path("out.trg").exists());
}

#[test]
fn the_output_of_perf_script_is_read_from_files_and_pipes_of_any_length() {
    let session = Session::new();
    let sample =
        "ls 7/8 1.000001: 250000 cpu-clock:\n\t4005b1 parse+0x7 (/bin/ls)\n\t400100 main+0x9 (/bin/ls)\n\n";
    // More than is read before it is known what it is.
    for count in [2, 2000] {
        std::fs::write(session.path("samples.txt"), sample.repeat(count)).expect("it can be written");
        let flat = session.flat(&["samples.txt", "--metric", "samples"]);
        assert_eq!((flat.cost("parse").own, flat.run_cost()), (count as f64, count as f64));
        session.output(&["import", "samples.txt", "--from", "perf-script", "-o", "samples.trg"]);
        assert_eq!(
            session.flat(&["samples.trg", "--metric", "cpu-clock"]).run_cost(),
            count as f64 * 250_000.0
        );
    }
}

#[test]
fn labels_of_pprof_choose_samples() {
    let session = Session::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/formats/pprof/cpu.pb.gz");
    session.output(&["import", file, "--label", "phase=second", "-o", "second.trg"]);
    // As `go tool pprof -top -tagfocus=phase=second` prints it.
    let flat = session.flat(&["second.trg", "--metric", "cpu"]);
    assert_eq!((flat.run_cost(), flat.cost("runtime.asyncPreempt").own), (170_000_000.0, 90_000_000.0));
    let wrong = session.run(&["import", file, "--label", "phase=third", "-o", "third.trg"]);
    assert!(
        wrong.error().contains("no sample has the label phase=third; there are: phase=second"),
        "{wrong:#?}"
    );
    assert!(session.run(&["import", file, "--label", "phase", "-o", "x.trg"]).error().contains("KEY=VALUE"));
}
