//! `treering record`: costs add up to the processor time that the kernel counted, and the processor time is that of all
//! processes.
//!
//! The programs tell their times by the kernel's clock of each process.

use std::process::{Child, Command, Stdio};

use treering_testing::programs::UNWAITED;

use crate::profile::Flat;
use crate::session::{Session, program};
use crate::skip;

/// The time that the program's processes used, in nanoseconds, as they told it.
fn told(output: &str) -> f64 {
    output.lines().filter_map(|line| line.strip_prefix("used ")?.parse::<f64>().ok()).sum()
}

fn cpu(flat: &Flat) -> f64 {
    flat.0["run"]["cpu_ns"].as_f64().expect("the processor time is known")
}

/// Whether this user may sample the kernel, whose time the kernel counts.
fn samples_kernel(flat: &Flat) -> bool {
    let sampled = !flat.0["run"]["notes"].to_string().contains("the kernel's own frames");
    if !sampled {
        skip("this user may not sample the kernel, whose time the kernel counts");
    }
    sampled
}

/// Checks that a time is another one, but for the start and the end of processes (some milliseconds on a busy machine),
/// and for interrupts.
fn assert_near(found: f64, truth: f64, said: &str) {
    assert!((found - truth).abs() < 0.1 * truth + 2e6, "{said}: {found} is not {truth}");
}

/// Checks that the costs add up to the processor time, where there is nothing that only the latter holds.
fn assert_adds_up(flat: &Flat, said: &str) {
    let told = flat.run_cost() + flat.loss("unseen_cpu_ns") as f64;
    assert!(
        (told - cpu(flat)).abs() < 0.005 * cpu(flat),
        "{said}: {told} is not {}: {:#}",
        cpu(flat),
        flat.0["run"]
    );
    let own: f64 = flat.rows().iter().filter_map(|row| row["self_cost"].as_f64()).sum();
    assert_eq!(own, flat.run_cost(), "{said}");
}

#[test]
fn costs_of_one_thread_add_up_to_its_processor_time() {
    let unwaited = UNWAITED.build().expect("the compiler is installed");
    for options in [&["-F", "100"][..], &["-F", "1000"], &["--fixed", "-F", "200"], &["-F", "2000", "--fp"]] {
        let session = Session::new();
        let mut all = vec!["-e", "cpu-clock"];
        all.extend(options);
        let outcome = session.record_any(&all, &program(&unwaited, &["alone", "600"]));
        let flat = session.flat(&[]);
        if !samples_kernel(&flat) {
            return;
        }
        assert_near(flat.run_cost(), told(&outcome.stdout), &format!("{options:?}"));
        assert_adds_up(&flat, &format!("{options:?}"));
    }
}

#[test]
fn processes_that_nothing_waits_for_have_their_part_of_the_processor_time() {
    let unwaited = UNWAITED.build().expect("the compiler is installed");
    for kind in ["waited", "ignored", "never", "daemon"] {
        let session = Session::new();
        let outcome = session.record_any(&["-e", "cpu-clock"], &program(&unwaited, &[kind, "400"]));
        let flat = session.flat(&[]);
        assert_near(cpu(&flat), told(&outcome.stdout), kind);
        if samples_kernel(&flat) {
            assert_near(flat.run_cost(), told(&outcome.stdout), kind);
            assert_adds_up(&flat, kind);
        }
    }
}

#[test]
fn an_attached_process_has_its_processor_time_as_well() {
    let unwaited = UNWAITED.build().expect("the compiler is installed");
    let start = |rounds: &str| -> Child {
        let mut command = Command::new(&unwaited);
        command.args(["alone", rounds]).stdout(Stdio::null()).spawn().expect("it runs")
    };
    for options in [&[][..], &["--fixed"]] {
        let session = Session::new();
        let mut child = start("100000");
        let pid = child.id();
        let before = treering_proc::processor_time(pid, pid).expect("it runs");
        let pid_text = pid.to_string();
        let mut all = vec!["record", "-e", "cpu-clock", "-d", "1", "-p", &pid_text];
        all.extend(options);
        let outcome = session.run(&all);
        let after = treering_proc::processor_time(pid, pid).expect("it runs");
        child.kill().expect("it runs");
        child.wait().expect("it is our child");
        assert!(outcome.status.success(), "{outcome:#?}");
        let flat = session.flat(&[]);
        let between = (after - before) as f64;
        assert!(cpu(&flat) > 0.0 && cpu(&flat) <= between, "{} of {between}", cpu(&flat));
        if samples_kernel(&flat) {
            assert_adds_up(&flat, &format!("{options:?}"));
        }
    }
}

#[test]
fn costs_that_are_not_the_processor_time_are_said_to_be_a_part_of_it() {
    let session = Session::new();
    let unwaited = UNWAITED.build().expect("the compiler is installed");
    let outcome =
        session.record_any(&["-e", "cpu-clock", "--user-only"], &program(&unwaited, &["alone", "20"]));
    // A recorder that waits for a processor draws intervals late, and then the costs may be above the CPU time.
    let reasons = ["only one of the processor's modes", "each sample stands for the mean interval"];
    let is_said = |reason: &str| outcome.stderr.contains(&format!("% of the CPU time: {reason}"));
    assert!(reasons.into_iter().any(is_said), "{}", outcome.stderr);
}
