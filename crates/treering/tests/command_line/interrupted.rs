//! `treering record` that is interrupted, killed, or has no room to write.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use treering_testing::programs::{EXITS_WITH, KNOWN_SHARES};

use crate::session::{Outcome, Session, program, words};
use crate::skip;

/// Starts a recording of a program that does not end by itself, in a process group of its own,
/// as a shell with job control does.
fn start(session: &Session, options: &[&str]) -> Child {
    let mut all = words(&["record"]);
    all.extend(words(options));
    all.push("--".into());
    all.extend(program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["1000000"]));
    session.command(&all).process_group(0).spawn().expect("treering runs")
}

fn group(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("process numbers are small"))
}

/// Waits until the file holds so many samples that shares are known well and there is something to lose, at most a
/// minute.
fn wait_for_samples(session: &Session) {
    let start = Instant::now();
    let is_written = || {
        let report = session.run(&["report", "--flat", "--json"]);
        let flat = serde_json::from_str(&report.stdout).map(crate::profile::Flat);
        flat.is_ok_and(|flat| flat.samples() >= 1000)
    };
    while !is_written() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_interrupt_from_the_keyboard_still_gives_the_report() {
    let session = Session::new();
    let child = start(&session, &[]);
    wait_for_samples(&session);
    killpg(group(&child), Signal::SIGINT).expect("the group exists");
    let outcome = Outcome::of(child.wait_with_output().expect("it is our child"));
    assert!(outcome.stderr.contains("forty_percent"), "no summary: {outcome:#?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:#?}");
    let flat = session.flat(&[]);
    flat.assert_self_shares(&[("ten_percent", 0.1), ("forty_percent", 0.4), ("thirty_percent", 0.3)]);
}

#[test]
fn a_request_to_end_still_gives_the_report() {
    let session = Session::new();
    let child = start(&session, &[]);
    wait_for_samples(&session);
    kill(group(&child), Signal::SIGTERM).expect("it runs");
    let outcome = Outcome::of(child.wait_with_output().expect("it is our child"));
    assert!(outcome.stderr.contains("forty_percent"), "no summary: {outcome:#?}");
    assert!(session.flat(&[]).samples() > 20);
}

#[test]
fn a_terminal_that_is_closed_still_leaves_names() {
    for signal in [Signal::SIGHUP, Signal::SIGQUIT] {
        let session = Session::new();
        let child = start(&session, &[]);
        wait_for_samples(&session);
        killpg(group(&child), signal).expect("the group exists");
        // The shell says so too, after the kernel.
        if signal == Signal::SIGHUP {
            std::thread::sleep(Duration::from_millis(20));
            _ = kill(group(&child), signal);
        }
        let outcome = Outcome::of(child.wait_with_output().expect("it is our child"));
        assert!(!outcome.stderr.contains("panicked"), "{outcome:#?}");
        assert_eq!(outcome.shell_status(), 128 + signal as i32, "{outcome:#?}");
        let flat = session.flat(&[]);
        flat.assert_self_shares(&[("ten_percent", 0.1), ("forty_percent", 0.4), ("thirty_percent", 0.3)]);
        assert_eq!(flat.0["run"]["unfinished"], false, "{signal}: {:#}", flat.0["run"]);
    }
}

#[test]
fn a_killed_recorder_leaves_a_file_that_report_reads() {
    let session = Session::new();
    let mut child = start(&session, &[]);
    wait_for_samples(&session);
    kill(group(&child), Signal::SIGKILL).expect("it runs");
    child.wait().expect("it is our child");
    // The program is still there: it must not outlive the test.
    _ = killpg(group(&child), Signal::SIGKILL);
    let report = session.run(&["report", "--flat", "--json"]);
    assert!(report.status.success(), "{report:#?}");
    let flat = crate::profile::Flat(serde_json::from_str(&report.stdout).expect("it is JSON"));
    assert!(flat.samples() > 20, "{:#}", flat.0);
    let histogram = session.json("--histogram=forty_percent", &[]);
    assert_eq!(histogram["total"].as_f64(), Some(flat.cost("forty_percent").own), "{histogram:#}");
    let said = report.stderr + &session.run(&["report"]).stdout;
    assert!(said.contains("did not end properly") || said.contains("missing"), "{said}");
}

#[test]
fn a_full_disk_is_told_and_what_was_written_stays() {
    let session = Session::new();
    let directory = session.path("small");
    std::fs::create_dir(&directory).expect("the directory can be written");
    let mount = |words: &[&str]| Command::new(words[0]).args(&words[1..]).stderr(Stdio::null()).status();
    let place = directory.to_str().expect("the target directory is UTF-8");
    let mounted = mount(&["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place]);
    if !mounted.is_ok_and(|status| status.success()) {
        return skip("a full disk: no right to mount a small file system");
    }
    let filler = directory.join("filler");
    let file = format!("{place}/full.trg");
    std::fs::write(&filler, [0; 4096]).expect("there is room for one page");
    let python =
        treering_testing::programs::WorkloadKind::Stl.prepare(treering_testing::programs::Size::Short);
    let workload = python.expect("the compiler is installed").expect("it needs nothing else");
    let mut all = words(&[&workload.program]);
    all.extend(workload.arguments);
    let outcome = session.record_any(&["-o", &file, "-F", "4000"], &all);
    let report = session.run(&["report", &file]);
    _ = mount(&["umount", place]);
    assert!(outcome.stderr.contains("No space left on device"), "{outcome:#?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:#?}");
    assert!(!report.stderr.contains("panicked"), "{report:#?}");
}

/// It was said that the program was not compiled with `-pg`, and a file was named that was removed.
#[test]
fn calls_for_which_the_disk_has_no_room_are_not_taken_for_none() {
    let session = Session::new();
    let Some(counting) = crate::gprof::compile(&session, crate::gprof::FEW_CALLS, "few", &[]) else { return };
    let directory = session.path("small");
    std::fs::create_dir(&directory).expect("the directory can be written");
    let place = directory.to_str().expect("the target directory is UTF-8");
    let mount = |words: &[&str]| Command::new(words[0]).args(&words[1..]).stderr(Stdio::null()).status();
    for left in [0, 8 << 10] {
        let mounted = mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place]);
        if !mounted.is_ok_and(|status| status.success()) {
            return skip("a full disk: no right to mount a small file system");
        }
        // A file larger than the disk fills it.
        _ = std::fs::write(directory.join("filler"), vec![0; (64 << 10) - left]);
        let file = format!("{place}/full.trg");
        let outcome = crate::gprof::gprof(&session, &["-q", "-o", &file], &counting, &[]);
        let kept = directory.join("full.trg.arcs/sampled.trg").exists();
        _ = mount(&["umount", place]);
        assert!(!outcome.status.success(), "{outcome:#?}");
        assert!(outcome.stderr.to_lowercase().contains("no space left on device"), "{outcome:#?}");
        assert!(!outcome.stderr.contains("does not report them"), "{outcome:#?}");
        assert!(!outcome.stderr.contains("compile it with -pg"), "{outcome:#?}");
        assert!(kept || !outcome.stderr.contains("is kept"), "{outcome:#?}");
    }
}

#[test]
fn a_device_that_takes_nothing_is_an_error() {
    let session = Session::new();
    let outcome = session.record_any(
        &["-o", "/dev/full"],
        &program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["100"]),
    );
    assert!(outcome.stderr.contains("No space left on device"), "{outcome:#?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:#?}");
}

#[test]
fn a_profile_that_cannot_be_written_hides_neither_summary_nor_status() {
    let session = Session::new();
    let exits = EXITS_WITH.build().expect("the compiler is installed");
    for (status, expected) in [("7", 7), ("0", 1)] {
        let outcome = session.record_any(&["-o", "/dev/full"], &program(&exits, &[status, "30"]));
        assert_eq!(outcome.shell_status(), expected, "{outcome:#?}");
        assert!(outcome.stderr.contains("No space left on device"), "{outcome:#?}");
        assert!(outcome.stderr.contains("on-CPU") || outcome.stderr.contains("samples"), "{outcome:#?}");
    }
}

#[test]
fn a_closed_standard_error_changes_neither_the_status_nor_the_file() {
    let exits = EXITS_WITH.build().expect("the compiler is installed");
    for command in ["record", "count"] {
        let session = Session::new();
        let mut all = words(&[command, "--"]);
        all.extend(program(&exits, &["3"]));
        let mut child = session.command(&all).stdout(Stdio::null()).spawn().expect("treering runs");
        drop(child.stderr.take());
        assert_eq!(child.wait().expect("it is our child").code(), Some(3), "{command}");
        session.output(&["report", "--flat"]);
    }
}
