//! Files that `treering` writes: none is lost by mistake, none is for others to read, none leads elsewhere.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use treering_profile::{Function, Metric, Profile, RecursionRule, Unit};

use crate::session::Session;

const STACKS: &str = "main;a 3\nmain;b 2\n";

fn session() -> Session {
    let session = Session::new();
    std::fs::write(session.path("stacks.folded"), STACKS).expect("the directory can be written");
    session.output(&["import", "stacks.folded", "-o", "a.trg"]);
    session
}

#[test]
fn a_file_that_is_read_is_not_replaced_whatever_it_is_called() {
    let session = session();
    let before = std::fs::read(session.path("a.trg")).expect("it was written");
    symlink("a.trg", session.path("link")).expect("links can be made");
    std::fs::hard_link(session.path("a.trg"), session.path("hard")).expect("links can be made");
    std::fs::create_dir(session.path("folder")).expect("the directory can be written");
    for output in ["a.trg", "./folder/../a.trg", "link", "hard"] {
        for arguments in [
            &["export", "--to", "folded", "a.trg"][..],
            &["export", "--to", "folded", "--force", "a.trg"],
            &["import", "a.trg"],
            &["merge", "a.trg", "stacks.folded"],
        ] {
            let outcome = session.run(&[arguments, &["-o", output]].concat());
            assert!(outcome.error().contains("which would be lost"), "{arguments:?} {output}: {outcome:#?}");
        }
    }
    let mut command = session.command(&["export", "--to", "folded", "-", "-o", "a.trg"]);
    command.stdin(std::fs::File::open(session.path("a.trg")).expect("it was written"));
    assert!(!command.output().expect("treering runs").status.success());
    assert_eq!(std::fs::read(session.path("a.trg")).expect("it is still there"), before);
}

#[test]
fn foreign_files_are_replaced_only_if_forced() {
    let session = session();
    for arguments in [
        &["export", "--to", "folded", "a.trg", "-o", "notes"][..],
        &["export", "--to", "pprof", "a.trg", "-o", "notes"],
        &["import", "stacks.folded", "-o", "notes"],
        &["merge", "a.trg", "-o", "notes"],
    ] {
        std::fs::write(session.path("notes"), "mine").expect("the directory can be written");
        let outcome = session.run(arguments);
        assert!(outcome.stderr.contains("hint: ") && outcome.stderr.contains("--force"), "{outcome:#?}");
        assert_eq!(std::fs::read(session.path("notes")).expect("it is still there"), b"mine");
        session.output(&[arguments, &["--force"]].concat());
        assert_ne!(std::fs::read(session.path("notes")).expect("it is still there"), b"mine");
        // Our own file may be written again, and so may an empty one.
        session.output(arguments);
        std::fs::write(session.path("notes"), "").expect("the directory can be written");
        session.output(arguments);
    }
    for collector in ["record", "count"] {
        std::fs::write(session.path("notes"), "mine").expect("the directory can be written");
        let outcome = session.run(&[collector, "-o", "notes", "--", "touch", "ran"]);
        assert!(outcome.error().contains("notes"), "{outcome:#?}");
        assert!(!session.path("ran").exists(), "{collector} found out before the program ran");
        assert_eq!(std::fs::read(session.path("notes")).expect("it is still there"), b"mine");
    }
    // A pprof profile that another tool wrote is none of ours.
    let go = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/formats/pprof/cpu.pb.gz"));
    std::fs::write(session.path("cpu.pb.gz"), go.expect("the fixture is there")).expect("it can be written");
    session.run(&["export", "--to", "pprof", "a.trg", "-o", "cpu.pb.gz"]).error();
}

#[test]
fn files_are_readable_by_their_owner_only() {
    let session = session();
    session.output(&["export", "--to", "pprof", "a.trg"]);
    session.output(&["export", "--to", "folded", "a.trg", "-o", "b.folded"]);
    session.output(&["merge", "a.trg", "-o", "m.trg"]);
    let _ = session.run(&["record", "-o", "r.trg", "--", "true"]);
    let _ = session.run(&["count", "-o", "c.trg", "--", "true"]);
    for name in ["a.trg", "a.pb.gz", "b.folded", "m.trg", "r.trg", "c.trg"] {
        let Ok(known) = std::fs::metadata(session.path(name)) else {
            assert!(matches!(name, "r.trg" | "c.trg"), "{name} was not written");
            eprintln!("skipped: what makes {name} is not permitted here");
            continue;
        };
        assert_eq!(known.permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(leftovers(&session), [""; 0]);
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    let session = session();
    std::fs::write(session.path("victim"), "").expect("the directory can be written");
    let victim = std::fs::metadata(session.path("victim")).expect("it was written").ino();
    symlink("victim", session.path("out.trg")).expect("links can be made");
    symlink("nowhere", session.path("new.trg")).expect("links can be made");
    session.output(&["merge", "a.trg", "-o", "out.trg"]);
    session.output(&["merge", "a.trg", "-o", "new.trg"]);
    // The check before the run found that the file existed.
    symlink("nowhere", session.path("counted.trg")).expect("links can be made");
    session.output(&["count", "-q", "-o", "counted.trg", "--", "true"]);
    assert!(session.path("counted.trg").metadata().is_ok_and(|known| known.len() > 0));
    let known = std::fs::metadata(session.path("victim")).expect("it is still there");
    assert_eq!((known.ino(), known.len()), (victim, 0));
    assert!(!session.path("nowhere").exists());
}

/// Files in the session's directory that were to get another name.
fn leftovers(session: &Session) -> Vec<String> {
    let entries = std::fs::read_dir(session.path(".")).expect("the directory can be read");
    let names = entries.map(|entry| entry.expect("the directory can be read").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.contains(".part")).collect()
}

#[test]
fn a_signal_leaves_no_half_of_a_file() {
    let session = session();
    // Deep enough that writing it takes long: the stacks hold 450,000,000 functions.
    deep(&session, 30_000);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let output = format!("out-{signal}");
        let mut export = session.command(&["export", "--yes", "--to", "pprof", "deep.trg", "-o", &output]);
        let mut child = export.spawn().expect("treering runs");
        while leftovers(&session).is_empty() && child.try_wait().expect("it is ours").is_none() {
            std::thread::yield_now();
        }
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        let _ =
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::try_from(signal).expect("it is a signal"));
        let status = child.wait().expect("it is ours");
        // It may have been quicker than the signal.
        assert!(status.signal() == Some(signal) || Path::new(&session.path(&output)).exists(), "{status:?}");
        assert_eq!(leftovers(&session), [""; 0], "signal {signal}");
    }
}

/// Writes `deep.trg`: a recursion of that many levels, each of which costs 1.
fn deep(session: &Session, levels: usize) {
    let mut profile = Profile::new(RecursionRule::Full);
    let metric = profile.add_metric(Metric::exact("calls", Unit::Count));
    let thread = profile.add_single_thread("deep");
    let name = profile.strings.intern("f");
    let function = profile.functions.intern(Function::named(name));
    let mut node = profile.threads[thread.index()].root;
    for _ in 0..levels {
        node = profile.tree.child(node, function, None);
        profile.tree.add_self_cost(metric, node, 1);
    }
    let mut file = Vec::new();
    treering_formats::trg::write(&profile, &mut file).expect("it can be written");
    std::fs::write(session.path("deep.trg"), file).expect("the directory can be written");
}

#[test]
fn stacks_that_would_fill_a_disk_are_written_only_if_asked_for() {
    let session = Session::new();
    // A small file, the stacks of which are 3,600,000,000 bytes as text.
    deep(&session, 60_000);
    let length = std::fs::metadata(session.path("deep.trg")).expect("it was written").len();
    assert!(length < 30_000, "{length}");
    for format in ["folded", "pprof"] {
        let outcome = session.run(&["export", "--to", format, "deep.trg", "-o", "out"]);
        assert!(outcome.error().contains("GiB"), "{outcome:#?}");
        assert!(outcome.stderr.contains("--yes") && outcome.stderr.contains("callgrind"), "{outcome:#?}");
        assert!(!session.path("out").exists());
    }
    session.output(&["export", "--to", "callgrind", "deep.trg", "-o", "out"]);
    deep(&session, 1_000);
    session.output(&["export", "--to", "folded", "deep.trg", "-o", "out.folded"]);
    session.output(&["export", "--to", "pprof", "deep.trg", "-o", "out.pb.gz"]);
}

#[test]
fn a_missing_folder_is_named_before_anything_is_done() {
    let session = session();
    for command in [
        &["export", "a.trg", "--to", "folded", "-o", "no/such dir/x"][..],
        &["export", "a.trg", "--to", "svg", "-o", "no/such dir/x"],
        &["import", "stacks.folded", "-o", "no/such dir/x"],
        &["merge", "a.trg", "-o", "no/such dir/x"],
        &["view", "a.trg", "-o", "no/such dir/x"],
        &["record", "-o", "no/such dir/x", "--", "touch", "ran"],
        &["count", "-o", "no/such dir/x", "--", "touch", "ran"],
        &["octave", "-o", "no/such dir/x", "--eval", "fclose (fopen ('ran', 'w'))"],
    ] {
        let outcome = session.run(command);
        let said = outcome.error();
        assert!(
            said.contains("cannot write no/such dir/x: there is no folder no/such dir\n"),
            "{outcome:#?}"
        );
        assert!(said.contains("hint: make it first: mkdir -p 'no/such dir'\n"), "{outcome:#?}");
        assert!(!said.contains(".part") && !said.contains("os error"), "{outcome:#?}");
        assert!(!session.path("ran").exists(), "{command:?}: the program ran");
    }
    // A file is no folder.
    let outcome = session.run(&["export", "a.trg", "--to", "folded", "-o", "stacks.folded/x"]);
    assert!(
        outcome.error().contains("cannot write stacks.folded/x: stacks.folded is no folder"),
        "{outcome:#?}"
    );
}

/// `-` became a file of that name, or was read from, or the profile stood behind what the program had printed.
#[test]
fn profiles_of_programs_that_share_standard_output_are_not_written_to_it() {
    let session = Session::new();
    std::fs::write(session.path("q.pl"), "main.\n").expect("written");
    for arguments in [
        &["count", "-o", "-", "--", "true"][..],
        &["record", "-o", "-", "--", "true"],
        &["gprof", "-o", "-", "--", "true"],
        &["octave", "-o", "-", "--eval", "1"],
        &["prolog", "-o", "-", "q.pl"],
    ] {
        let outcome = session.run(arguments);
        assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
        assert!(outcome.stderr.contains("cannot go to standard output"), "{outcome:#?}");
        assert!(outcome.stdout.is_empty() && !session.path("-").exists(), "{outcome:#?}");
    }
}

/// `gprof` said that a folder is no folder.
#[test]
fn folders_are_no_outputs() {
    let session = Session::new();
    std::fs::create_dir(session.path("folder")).expect("it can be made");
    for command in ["count", "record", "gprof"] {
        for output in ["folder", "folder/", "not-there/"] {
            let outcome = session.run(&[command, "-o", output, "--", "touch", "ran"]);
            let said = match output {
                "not-there/" => {
                    "error: cannot write not-there/: there is no such folder\nhint: name a file".to_owned()
                }
                _ => format!("error: {output} is a directory"),
            };
            assert!(outcome.stderr.starts_with(&said), "{command}: {outcome:#?}");
            assert!(!session.path("ran").exists(), "{command}: the program ran");
        }
    }
}

#[test]
fn an_earlier_profile_is_kept_whatever_collected_it() {
    let session = Session::new();
    let read = |name: &str| std::fs::read(session.path(name)).expect("it was written");
    for collector in ["record", "count"] {
        session.output(&[collector, "-q", "--", "true"]);
        let earlier = read("treering.trg");
        session.output(&[collector, "-q", "--", "true"]);
        assert_eq!(read("treering.trg.old"), earlier, "{collector}");
        // A file that stands in the way is named before anything runs.
        std::fs::write(session.path("treering.trg.old"), "mine").expect("the folder can be written");
        let outcome = session.run(&[collector, "-q", "--", "touch", "ran"]);
        assert!(outcome.error().contains("treering.trg.old exists"), "{outcome:#?}");
        assert!(!session.path("ran").exists() && read("treering.trg.old") == b"mine", "{collector}");
        session.output(&[collector, "-q", "--force", "--", "true"]);
        session.output(&[collector, "-q", "--", "true"]);
    }
}

#[test]
fn a_forced_file_stands_in_the_way_of_no_later_run() {
    // The first forced run moved it to `.old`, which every later one refused to replace, forced or not.
    for collector in ["record", "count"] {
        let session = Session::new();
        std::fs::write(session.path("treering.trg"), "mine").expect("the folder can be written");
        for _ in 0..3 {
            session.output(&[collector, "-q", "--force", "--", "true"]);
        }
    }
}

#[test]
fn counts_of_a_running_program_are_for_no_other_user() {
    let session = Session::new();
    let look = "stat -c '%a %n' a.trg.counting a.trg.counting/*";
    let run = format!(
        "umask 000; exec {} count -q -o a.trg -- sh -c \"{look}\"",
        crate::session::quoted(crate::session::treering())
    );
    let output = std::process::Command::new("sh").args(["-c", &run]).current_dir(session.path(".")).output();
    let seen = String::from_utf8(output.expect("a shell is there").stdout).expect("it is text");
    assert!(seen.contains("a.trg.counting/run\n"), "{seen}");
    let is_private = |line: &str| line.starts_with("600 ") || line.starts_with("700 ");
    assert!(seen.lines().all(is_private), "{seen}");
}

#[test]
fn files_for_ci_replace_their_kind_alone() {
    let session = session();
    std::fs::write(session.path("notes"), "mine").expect("the folder can be written");
    for option in ["--junit", "--benchmark-action", "--bencher"] {
        for command in
            [&["diff", "a.trg", "a.trg"][..], &["compare", "--exact", "touch", "ran", "--", "touch", "ran"]]
        {
            let all = [&command[..1], &[option, "notes"], &command[1..]].concat();
            let outcome = session.run(&all);
            assert!(outcome.stderr.contains("error: notes exists and is nothing"), "{all:?}: {outcome:#?}");
            assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        }
        let file = option.trim_start_matches('-');
        session.output(&["diff", "a.trg", "a.trg", option, file]);
        session.output(&["diff", "a.trg", "a.trg", option, file]);
        let missing = session.run(&["diff", "a.trg", "a.trg", option, "nowhere/file"]);
        assert!(missing.stderr.contains("hint: make it first: mkdir -p nowhere"), "{missing:#?}");
    }
    assert!(!session.path("ran").exists(), "that is found out before anything runs");
    assert_eq!(std::fs::read(session.path("notes")).expect("it is there"), b"mine");
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let session = Session::new();
    for arguments in [&["--help"][..], &["--version"], &["report", "--help"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("there is such a device");
        let output = session.command(arguments).stdout(full).output().expect("treering runs");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    }
}

#[test]
fn the_next_command_can_be_typed_as_it_is_shown() {
    let session = Session::new();
    for arguments in
        [&["record", "-o", "a b.trg", "--", "true"][..], &["count", "-o", "a b.trg", "--", "true"]]
    {
        let outcome = session.run(arguments);
        assert!(outcome.stderr.contains("next: treering report 'a b.trg' "), "{outcome:#?}");
    }
}

#[test]
fn counts_of_events_are_named_by_the_marks_of_every_output() {
    let session = Session::new();
    session.output(&["stat", "-o", "%r-100%%.txt", "--", "true"]);
    assert!(session.path("0-100%.txt").exists());
}
