//! Profiles of real processes that treat the runtime badly.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use super::probe::{Probe, calls, expected};
use super::program::library;
use treering_formats::Format;
use treering_profile::Profile;

/// Starts the counting program and kills it after a random time; the events whose enter had
/// returned must be in its file.
fn kill_once(probe: &Probe, random: &mut fastrand::Rng) -> [u64; 4] {
    let counts = probe.folder.join("counts");
    std::fs::write(&counts, [0; 4096]).unwrap();
    let file = probe.folder.join("treering.trg");
    drop(std::fs::remove_file(&file));
    let mut child = probe.command(&["count-aloud", counts.to_str().unwrap()]).spawn().unwrap();
    let said = || {
        let bytes = std::fs::read(&counts).unwrap();
        std::array::from_fn(|at| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap()))
    };
    while said() == [0; 4] {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_nanos(random.u64(0..3_000_000)));
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
    let said: [u64; 4] = said();
    let (format, profile) = probe.profile_of("treering.trg");
    assert_eq!(format, Format::Live);
    let mut found = [0; 4];
    for (path, calls) in calls(&profile) {
        let at = "abcd".find(path.rsplit(' ').next().unwrap()).unwrap();
        found[at] += calls;
    }
    for (at, (found, said)) in found.into_iter().zip(said).enumerate() {
        // The one that was being counted when the end came may be there or not.
        assert!(
            found == said || found == said + 1,
            "function {at}: {found} in the file, {said} had returned"
        );
    }
    said
}

fn kill_often(test: &str, times: u32) {
    let probe = Probe::new("robustness", test);
    let mut random = fastrand::Rng::with_seed(u64::from(times));
    let events: u64 = (0..times).map(|_| kill_once(&probe, &mut random).iter().sum::<u64>()).sum();
    assert!(events > u64::from(times) * 1000, "only {events} events in all: it was killed too early");
}

#[test]
fn calls_entered_before_a_kill_are_in_the_file() {
    kill_often("kill", 60);
}

#[test]
#[ignore = "takes half a minute; the shorter one runs always"]
fn calls_entered_before_a_kill_are_in_the_file_a_thousand_times() {
    kill_often("kill-1000", 1000);
}

#[test]
fn counts_of_64_threads_are_exact() {
    let probe = Probe::new("robustness", "threads");
    probe.run(&["threads", "64", "3000"]);
    let profile = probe.profile();
    assert_eq!(profile.threads.len(), 64);
    let each = 3000;
    let expected = expected(&[
        ("outer", 64 * each),
        ("outer > leaf", 64 * each),
        ("outer > short", 64 * each / 5),
        ("outer > short > leaf", 64 * each / 5),
    ]);
    assert_eq!(calls(&profile), expected);
}

#[test]
fn thousands_of_short_threads_share_records() {
    let probe = Probe::new("robustness", "short-threads");
    probe.run(&["short-threads", "4000"]);
    let profile = probe.profile();
    assert_eq!(calls(&profile), expected(&[("short", 4000), ("short > leaf", 4000)]));
    assert!(profile.threads.len() < 100, "{}", profile.threads.len());
}

#[test]
fn panics_leave_the_activations_that_they_unwind() {
    let probe = Probe::new("robustness", "panics");
    probe.run(&["panics", "400"]);
    let counted = calls(&probe.profile());
    assert_eq!(counted["catches"], 400);
    assert_eq!(counted["catches > leaf"], 400);
    let of = |name: &str| -> u64 {
        let ends = |path: &&String| path.rsplit(" > ").next() == Some(name) && path.contains("fails");
        counted.iter().filter(|(path, _)| ends(path)).map(|(_, calls)| calls).sum()
    };
    // Turn n nests n % 4 + 1 times: 1, 2, 3, 4, 1, ...
    assert_eq!((of("fails"), of("leaf"), of("between")), (1000, 1000, 600));
    let losses = probe.profile().metadata.losses;
    assert_eq!((losses.unbalanced_leaves, losses.unwound_activations), (0, 0));
}

#[test]
fn parent_and_child_of_a_fork_have_a_file_each() {
    let probe = Probe::new("robustness", "fork");
    let output = probe.run(&["fork", "50"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).matches("done").count(), 2);
    let files = probe.files();
    assert_eq!(files.len(), 2, "{files:?}");
    let parent = probe.profile();
    let child = files.iter().find(|file| *file != "treering.trg").unwrap();
    let (format, child) = probe.profile_of(child);
    assert_eq!(format, Format::Trg);
    let in_parent =
        [("before", 1), ("before > leaf", 50), ("before > in parent", 1), ("before > in parent > leaf", 150)];
    assert_eq!(calls(&parent), expected(&in_parent));
    // The activations that were open at the fork were called by the parent.
    let in_child = [("before", 0), ("before > in child", 1), ("before > in child > leaf", 100)];
    assert_eq!(calls(&child), expected(&in_child));
    assert!(child.metadata.notes.iter().any(|note| note.0.contains("forked from process")));
    assert_eq!(child.metadata.losses.unbalanced_leaves, 0);
}

#[test]
fn child_has_the_activations_open_at_the_fork_regardless_of_the_parent() {
    let probe = Probe::new("robustness", "fork-late");
    probe.run(&["fork-late", "60"]);
    let files = probe.files();
    let child = files.iter().find(|file| *file != "treering.trg").unwrap();
    let (_, child) = probe.profile_of(child);
    let in_child =
        [("before", 0), ("before > forks", 0), ("before > in child", 1), ("before > in child > leaf", 60)];
    assert_eq!(calls(&child), expected(&in_child));
    let losses = child.metadata.losses;
    assert_eq!((losses.unbalanced_leaves, losses.clock_steps_back), (0, 0));
    let wall = child.runs[0].duration_ns;
    let all = child.run_cost(child.metrics().next().unwrap().0);
    assert!(all <= wall, "{all} ns in all of {wall}");
}

#[test]
fn children_that_call_exec_leave_nothing_behind() {
    let probe = Probe::new("robustness", "fork-exec");
    probe.run(&["fork-exec", "20"]);
    assert_eq!(probe.files(), ["treering.trg"]);
    assert_eq!(calls(&probe.profile()), expected(&[("leaf", 40)]));
}

#[test]
fn a_program_that_calls_exec_keeps_both_profiles() {
    let probe = Probe::new("robustness", "exec");
    probe.run(&["exec", "30"]);
    let files = probe.files();
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(calls(&probe.profile())["outer"], 10);
    let before = files.iter().find(|file| *file != "treering.trg").unwrap();
    assert_eq!(calls(&probe.profile_of(before).1), expected(&[("leaf", 30)]));
}

#[test]
fn recursion_a_million_deep_is_counted() {
    let probe = Probe::new("robustness", "deep");
    probe.run(&["deep", "1000000"]);
    let profile = probe.profile();
    assert_eq!(calls(&profile), expected(&[("deep", 1_000_000), ("deep > leaf", 1), ("leaf", 1)]));
    assert_eq!(profile.metadata.losses.unbalanced_leaves, 0);
}

#[test]
fn contexts_a_hundred_thousand_deep_are_kept_apart() {
    let probe = Probe::new("robustness", "alternating");
    probe.run(&["alternating", "100000"]);
    let profile = probe.profile();
    assert_eq!(profile.tree.len(), 100_001);
    assert!(profile.tree.nodes().skip(1).all(|node| profile.tree.calls(node) == 1));
}

#[test]
fn depth_limits_hold_and_are_reported() {
    let probe = Probe::new("robustness", "depth-limit");
    let output = probe.command(&["alternating", "1000"]).env("TREERING_DEPTH", "10").output().unwrap();
    assert!(output.status.success());
    let profile = probe.profile();
    assert_eq!(profile.tree.len(), 11);
    assert!(profile.metadata.notes.iter().any(|note| note.0.starts_with("990 calls deeper than 10")));
    assert_eq!(profile.metadata.losses.unbalanced_leaves, 0);
}

#[test]
fn many_functions_below_one_caller_are_found_again() {
    let probe = Probe::new("robustness", "many-functions");
    probe.run(&["many-functions", "3000"]);
    let counted = calls(&probe.profile());
    assert_eq!(counted.len(), 6000);
    assert!(counted.values().all(|&calls| calls == 3));
    probe.run(&["children", "500"]);
    let counted = calls(&probe.profile());
    assert_eq!(
        counted.iter().filter(|(path, _)| path.contains("child")).map(|row| row.1).sum::<u64>(),
        50_000
    );
}

#[test]
fn a_file_that_vanishes_does_no_harm() {
    let probe = Probe::new("robustness", "unlink");
    probe.run(&["unlink", "treering.trg"]);
    let counted = calls(&probe.profile());
    assert_eq!((counted["leaf"], counted["f4999"], counted["f4999 > leaf"]), (1, 1, 1));
}

#[test]
fn paths_that_cannot_be_written_are_reported_and_do_no_harm() {
    let probe = Probe::new("robustness", "unwritable");
    for path in ["/nonexistent/profile.trg", "/dev/full", "."] {
        let output = probe.command(&["threads", "2", "10"]).env("TREERING_OUTPUT", path).output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.starts_with("treering: cannot write /"), "{path}: {said:?}");
        assert_eq!(said.lines().count(), 1, "{path}: {said:?}");
    }
    assert!(probe.files().is_empty());
}

#[test]
fn a_file_that_may_not_grow_ends_no_program() {
    let probe = Probe::new("robustness", "limit");
    let limited = "ulimit -f 300; exec \"$0\" many-functions 3000";
    let program = probe.command(&[]);
    let mut command = Command::new("bash");
    command.args(["-c", limited]).arg(program.get_program()).current_dir(&probe.folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let (format, profile) = probe.profile_of("treering.trg");
    // The finished profile is small enough for the limit, or else the beginning is kept.
    assert!(format == Format::Live || calls(&profile).len() == 6000);
    assert!(
        profile.metadata.notes.iter().any(|note| note.0.contains("could not grow")),
        "{:?}",
        profile.metadata.notes
    );
}

/// Runs the program in a shell that has set a limit.
fn run_limited(probe: &Probe, limit: &str, arguments: &[&str]) -> std::process::Output {
    let program = probe.command(&[]);
    let mut command = Command::new("bash");
    command.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]).arg(program.get_program());
    command.args(arguments).current_dir(&probe.folder).output().unwrap()
}

/// Each event tried again, with a line on standard error and an empty file.
#[test]
fn a_program_without_memory_for_a_profile_says_so_once_and_goes_on() {
    let probe = Probe::new("robustness", "no-memory");
    let output = run_limited(&probe, "-v 60000", &["many-functions", "100"]);
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "treering: there is no memory for a profile\n");
    assert!(probe.files().is_empty(), "{:?}", probe.files());
}

/// The allocation that failed when the profile was finished ended the program by SIGABRT.
#[test]
fn a_program_without_memory_at_its_end_leaves_the_recording() {
    let probe = Probe::new("robustness", "hungry");
    let output = run_limited(&probe, "-v 200000", &["hungry", "65536"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no memory to finish it; the recording so far is in the file"), "{said}");
    let (format, profile) = probe.profile_of("treering.trg");
    assert_eq!((format, calls(&profile).len()), (Format::Live, 4001));
}

/// It was called no profile, which it is: it could not be opened.
#[test]
fn a_profile_that_cannot_be_opened_at_the_end_is_not_called_something_else() {
    let probe = Probe::new("robustness", "no-descriptors");
    let output = run_limited(&probe, "-n 20", &["no-descriptors"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Too many open files") && !said.contains("no profile"), "{said}");
}

/// They were left out without a word, or with the one that they had not been asked for.
#[test]
fn calls_of_functions_that_had_no_room_are_counted_as_dropped() {
    let probe = Probe::new("robustness", "no-room");
    let output = run_limited(&probe, "-v 1000000", &["many-functions", "300000"]);
    assert!(output.status.success(), "{}", output.status);
    let (_, profile) = probe.profile_of("treering.trg");
    let recorded: u64 = calls(&profile).values().sum();
    assert_eq!(recorded + profile.metadata.losses.dropped_events, 3 * 2 * 300_000, "{recorded}");
    assert!(
        profile.metadata.notes.iter().all(|note| !note.0.contains("asked")),
        "{:?}",
        profile.metadata.notes
    );
}

#[test]
fn leaves_in_other_threads_and_twice_change_nothing() {
    let probe = Probe::new("robustness", "across-threads");
    probe.run(&["across-threads"]);
    let profile = probe.profile();
    assert_eq!(calls(&profile), expected(&[("passed on", 1), ("passed on > leaf", 1), ("leaf", 2)]));
    // One in the other thread, one a second time; a number that is no token belongs to no activation.
    assert_eq!(profile.metadata.losses.unbalanced_leaves, 2);
}

/// Self and total cost of all nodes of a function, in nanoseconds.
fn costs(profile: &Profile, name: &str) -> (u64, u64) {
    let (metric, _) = profile.metrics().next().unwrap();
    let is_it = |&node: &treering_profile::NodeId| {
        &profile.strings[profile.functions[profile.tree.function(node)].name] == name
    };
    let nodes = profile.tree.nodes().filter(|&node| profile.tree.parent(node).is_some()).filter(is_it);
    let totals = profile.tree.total_costs(metric);
    nodes.fold((0, 0), |(own, total), node| {
        (own + profile.tree.self_cost(metric, node), total + totals[node.index()])
    })
}

#[test]
fn leaves_are_counted_exactly_and_need_no_place_on_the_stack() {
    let probe = Probe::new("robustness", "leaves");
    let rows = |path: fn(&str) -> String| -> BTreeMap<String, u64> {
        let counts = [
            ("parent", 8),
            ("sampled", 80_000),
            ("never", 80_000),
            ("waits", 800),
            ("branches", 24),
            ("leaf", 24),
            ("panics", 8),
        ];
        counts.iter().map(|&(name, count)| (path(name), count)).collect()
    };
    for mode in ["graph", "count", "flat"] {
        let output = probe.command(&["leaves", "8", "10000"]).env("TREERING", mode).output().unwrap();
        assert!(output.status.success(), "{mode}: {output:?}");
        let profile = probe.profile();
        let expected = match mode {
            "flat" => rows(str::to_owned),
            _ => rows(|name| if name == "parent" { name.to_owned() } else { format!("parent > {name}") }),
        };
        assert_eq!(calls(&profile), expected, "{mode}");
        let losses = profile.metadata.losses;
        let branched = if mode == "count" { 0 } else { 24 };
        assert_eq!(
            (losses.branched_leaves, losses.unbalanced_leaves, losses.open_activations),
            (branched, 0, 0)
        );
        if mode != "count" {
            let ((own, total), parent) = (costs(&profile, "waits"), costs(&profile, "parent"));
            assert!(own == total && total >= 800 * 50_000, "{mode}: {own} {total}");
            // The caller's own time is what is left of its total.
            assert!(
                parent.0 < total && (mode == "flat" || parent.0 + total <= parent.1),
                "{mode}: {parent:?}"
            );
        }
    }
}

#[test]
fn starts_and_stops_that_do_not_balance_are_counted() {
    let probe = Probe::new("robustness", "unbalanced");
    probe.run(&["unbalanced"]);
    let profile = probe.profile();
    let expected = expected(&[
        ("never stopped", 1),
        ("never stopped > scope", 1),
        ("never stopped > scope > started inside", 1),
        ("never stopped > scope > started inside > leaf", 1),
        ("leaf", 1),
    ]);
    assert_eq!(calls(&profile), expected);
    let losses = profile.metadata.losses;
    assert_eq!((losses.unbalanced_leaves, losses.unwound_activations), (2, 1));
}

#[test]
fn a_stop_of_a_task_that_is_not_recorded_ends_no_other() {
    let probe = Probe::new("robustness", "ignored");
    let output = probe.command(&["alternating", "9"]).env("TREERING_IGNORE", "odd").output().unwrap();
    assert!(output.status.success());
    let profile = probe.profile();
    assert_eq!(calls(&profile), expected(&[("even", 5)]));
    let losses = profile.metadata.losses;
    assert_eq!((losses.unbalanced_leaves, losses.unwound_activations), (0, 0));
    assert!(profile.metadata.notes.iter().any(|note| note.0.starts_with("1 function was not recorded")));
}

#[test]
fn events_of_signal_handlers_are_counted_apart() {
    let probe = Probe::new("robustness", "signals");
    let output = probe.run(&["signals", "400"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = said.split_whitespace().map_while(|word| word.parse::<u64>().ok());
    let (handled, leaves) = (numbers.next().unwrap(), numbers.next().unwrap());
    assert!(handled > 50, "{handled}");
    let profile = probe.profile();
    let counted = calls(&profile);
    let of = |name: &str| -> u64 {
        counted
            .iter()
            .filter(|(path, _)| path.rsplit(" > ").next() == Some(name))
            .map(|(_, calls)| calls)
            .sum()
    };
    let dropped = profile.metadata.losses.dropped_events;
    assert_eq!((of("leaf"), of("interrupted")), (leaves, leaves - 1));
    assert!(
        of("handler") + dropped >= handled && of("handler") <= handled,
        "{} {dropped} {handled}",
        of("handler")
    );
}

#[test]
fn two_copies_of_the_runtime_write_a_file_each() {
    let probe = Probe::new("robustness", "two-copies");
    probe.run(&["two-copies", library("so").to_str().unwrap()]);
    let files = probe.files();
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(calls(&probe.profile()), expected(&[("leaf", 11)]));
    let other = files.iter().find(|file| *file != "treering.trg").unwrap();
    let (_, other) = probe.profile_of(other);
    assert_eq!(calls(&other), expected(&[("other copy", 10)]));
    assert!(other.metadata.notes.iter().any(|note| note.0.contains("other copy of the runtime is")));
}

#[test]
fn calls_are_not_recorded_while_recording_is_switched_off() {
    let probe = Probe::new("robustness", "switch");
    probe.run(&["switch"]);
    let profile = probe.profile();
    assert_eq!(calls(&profile), expected(&[("leaf", 3), ("open when switched off", 1)]));
    assert_eq!(profile.metadata.losses.unbalanced_leaves, 0);
}

#[test]
fn a_program_that_exits_inside_of_tasks_has_their_time() {
    let probe = Probe::new("robustness", "exit-inside");
    let output = probe.command(&["exit-inside"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let (format, profile) = probe.profile_of("treering.trg");
    assert_eq!(format, Format::Trg);
    assert_eq!(profile.metadata.losses.open_activations, 2);
    assert_eq!(calls(&profile)["outer > inner > leaf"], 1);
}

#[test]
fn off_leaves_no_file() {
    let probe = Probe::new("robustness", "off");
    let output = probe.command(&["threads", "2", "10"]).env("TREERING", "off").output().unwrap();
    assert!(output.status.success());
    assert!(probe.files().is_empty(), "{:?}", probe.files());
}
