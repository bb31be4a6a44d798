//! Where programs write their profiles, when that is a pipe, a disk that is full, or told by a path that leads
//! elsewhere by then.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use super::probe::{Probe, calls, expected};
use treering_formats::{Format, read_any};

/// Makes a named pipe in the folder of a test.
fn pipe(probe: &Probe) -> std::path::PathBuf {
    let path = probe.folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// The calls of two threads of the probe in three turns each.
fn of_threads() -> std::collections::BTreeMap<String, u64> {
    expected(&[("outer", 6), ("outer > leaf", 6), ("outer > short", 2), ("outer > short > leaf", 2)])
}

#[test]
fn the_reader_of_a_named_pipe_gets_the_whole_profile() {
    let probe = Probe::new("places", "pipe");
    let path = pipe(&probe);
    let reader = Command::new("cat").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
    // Opening a pipe for writing waits until `cat` has it open.
    let held = File::options().write(true).open(&path).unwrap();
    let output = probe.command(&["threads", "2", "3"]).env("TREERING_OUTPUT", &path).output().unwrap();
    drop(held);
    assert!(output.status.success(), "{output:?}");
    let read = reader.wait_with_output().unwrap();
    let (format, profile, _) = read_any(&read.stdout).unwrap();
    assert_eq!((format, calls(&profile)), (Format::Trg, of_threads()));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(probe.files(), ["pipe"]);
}

#[test]
fn a_pipe_without_a_reader_does_not_block_the_program() {
    let probe = Probe::new("places", "no-reader");
    let path = pipe(&probe);
    let output = probe.command(&["threads", "2", "3"]).env("TREERING_OUTPUT", &path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("it has no reader"), "{said}");
}

#[test]
fn standard_output_into_a_pipe_gets_the_profile_behind_the_output_of_the_program() {
    let probe = Probe::new("places", "standard-output");
    let output =
        probe.command(&["threads", "2", "3"]).env("TREERING_OUTPUT", "/dev/stdout").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let bytes = output.stdout.strip_prefix(b"done\n").unwrap();
    assert_eq!(calls(&read_any(bytes).unwrap().1), of_threads());
}

#[test]
fn a_child_that_goes_elsewhere_leaves_its_profile_beside_its_parents() {
    let probe = Probe::new("places", "elsewhere");
    let elsewhere = probe.folder.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for name in ["treering.trg", "named.trg"] {
        let environment = (name != "treering.trg").then_some(("TREERING_OUTPUT", name));
        let output = probe.command(&["fork-elsewhere", "elsewhere"]).envs(environment).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
        assert_eq!(calls(&probe.profile_of(name).1), expected(&[("before", 1), ("before > leaf", 1)]));
        let stem = name.strip_suffix(".trg").unwrap();
        let files = probe.files();
        let of_child = |file: &&String| *file != name && file.starts_with(stem);
        let child = files.iter().find(of_child).unwrap_or_else(|| panic!("none of the child in {files:?}"));
        let in_child = [("before", 0), ("before > in child", 1), ("before > in child > leaf", 1)];
        assert_eq!(calls(&probe.profile_of(child).1), expected(&in_child));
    }
}

/// A small disk that only this test uses, while it lives.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(place: &'a Path, kilobytes: u32) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "tmpfs"]).arg(place);
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then_some(Self(place))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.0).status());
    }
}

#[test]
fn larger_disks_that_become_full_keep_more_and_losses_are_reported() {
    const CALLS: u64 = 18_000;
    let probe = Probe::new("places", "full-disk");
    let place = probe.folder.join("disk");
    std::fs::create_dir(&place).unwrap();
    let mut kept_before = 0;
    let mut was_cut = false;
    for kilobytes in [16, 64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096] {
        let Some(_disk) = SmallDisk::mount(&place, kilobytes) else {
            return eprintln!("skipped: a full disk: no right to mount a small file system");
        };
        let mut command = probe.command(&["many-functions", "3000"]);
        let output = command.env("TREERING_OUTPUT", "disk/full.trg").output().unwrap();
        assert!(output.status.success(), "{kilobytes} KB: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !place.join("full.trg").exists() {
            assert!(said.contains("No space left on device") && kept_before == 0, "{kilobytes} KB: {said}");
            continue;
        }
        let profile = probe.profile_of("disk/full.trg").1;
        let kept: u64 = calls(&profile).values().sum();
        assert!(kept >= kept_before, "{kilobytes} KB hold {kept} calls, fewer held {kept_before}");
        let notes: Vec<_> = profile.metadata.notes.iter().map(|note| note.0.as_str()).collect();
        let is_told = notes.iter().any(|note| note.contains("could not grow"));
        assert!(is_told || kept == CALLS, "{kilobytes} KB hold {kept} calls; {notes:?}; {said}");
        assert_eq!(said.is_empty(), kept == CALLS, "{kilobytes} KB hold {kept} calls; {said}");
        was_cut |= kept < CALLS;
        kept_before = kept;
    }
    assert!(was_cut && kept_before == CALLS, "{kept_before}");
}

#[test]
fn functions_that_call_each_other_two_million_deep_are_read() {
    const DEPTH: u64 = 2_000_000;
    let probe = Probe::new("places", "deep");
    probe.run(&["alternating", &DEPTH.to_string()]);
    let (format, profile) = probe.profile_of("treering.trg");
    assert_eq!((format, profile.tree.len() as u64), (Format::Trg, DEPTH + 1));
    assert!(profile.tree.nodes().skip(1).all(|node| profile.tree.calls(node) == 1));
    assert!(profile.metadata.notes.is_empty(), "{:?}", profile.metadata.notes);
}
