//! `treering export`.

use std::process::Command;

use treering_testing::programs::{KNOWN_SHARES, installed};

use crate::session::{Session, program};
use crate::skip;

fn recording() -> Session {
    let session = Session::new();
    session.record(&[], &program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["200"]));
    session
}

#[test]
fn folded_stacks_hold_every_sample() {
    let session = recording();
    let folded = session.output(&["export", "treering.trg", "--to", "folded"]);
    let weights: u64 = folded
        .lines()
        .map(|line| line.rsplit_once(' ').and_then(|(_, weight)| weight.parse::<u64>().ok()))
        .map(|weight| weight.expect("each line ends with a space and a weight"))
        .sum();
    let flat = session.flat(&[]);
    let possible = [flat.samples() as f64, flat.run_cost()];
    assert!(possible.contains(&(weights as f64)), "{weights}, but the run has {possible:?}");
    let stack = folded.lines().find(|line| line.contains("forty_percent")).expect("its stack is there");
    assert!(stack.contains("main;first_half;forty_percent"), "{stack}");
}

#[test]
fn callgrind_annotate_reads_what_is_written() {
    let session = recording();
    session.output(&["export", "treering.trg", "--to", "callgrind", "-o", "callgrind.out"]);
    let Some(annotate) = installed("callgrind_annotate") else {
        return skip("callgrind_annotate is not installed");
    };
    let output = Command::new(annotate).arg(session.path("callgrind.out")).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stderr));
    let first = text.lines().find(|line| line.contains("_percent")).unwrap_or_else(|| panic!("{text}"));
    let flat = session.flat(&[]);
    let names = ["ten_percent", "twenty_percent", "thirty_percent", "forty_percent"];
    let costliest = names.into_iter().max_by(|a, b| flat.self_share(a).total_cmp(&flat.self_share(b)));
    let costliest = costliest.expect("there are four");
    assert!(first.contains(costliest), "{costliest} is the costliest and comes first: {first}");
}

#[test]
fn pprof_files_are_compressed() {
    let session = recording();
    session.output(&["export", "treering.trg", "--to", "pprof", "-o", "profile.pb.gz"]);
    let bytes = std::fs::read(session.path("profile.pb.gz")).expect("it was just written");
    assert_eq!(bytes[..2], [0x1f, 0x8b], "pprof files are gzip files");
}

#[test]
fn an_unknown_format_is_a_mistake_of_the_command_line() {
    let session = Session::new();
    let outcome = session.run(&["export", "treering.trg", "--to", "papyrus"]);
    assert_eq!(outcome.shell_status(), 2, "{outcome:#?}");
    assert!(outcome.stderr.contains("pprof"), "it lists what there is: {outcome:#?}");
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let session = recording();
    let treering = env!("CARGO_BIN_EXE_treering");
    let script = format!(
        "'{treering}' export treering.trg --to folded | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    );
    let Some(bash) = installed("bash") else { return skip("bash is not installed") };
    let output =
        Command::new(bash).args(["-c", &script]).current_dir(session.path("")).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0", "{output:?}");
}
