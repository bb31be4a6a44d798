//! `treering record` next to files that other users may have prepared: they neither hang it nor flood it, nor are they
//! believed. Programs that the user may not watch are named.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use treering_testing::programs::{JIT, KNOWN_SHARES};

use crate::session::{Session, quoted, words};
use crate::skip;

/// The program that makes code, started after a shell has put something where its names would be.
fn after(prepare: &str) -> Vec<OsString> {
    let program = JIT.build().expect("the compiler is installed");
    let script = format!("{prepare}; exec \"$0\" none 100");
    words(&[Path::new("sh"), Path::new("-c"), Path::new(&script), &program])
}

/// Records it and returns the notes of the report; what was prepared is removed.
fn notes(prepare: &str) -> String {
    let session = Session::new();
    let flat = session.record(&[], &after(prepare));
    let faked =
        flat.rows().iter().any(|row| row["function"].as_str().is_some_and(|name| name.contains("faked")));
    assert!(!faked, "{:#}", flat.0);
    let report = session.output(&["report"]);
    let is_prepared = |word: &&str| {
        let digits = word.strip_prefix("/tmp/perf-").and_then(|rest| rest.strip_suffix(".map"));
        digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
    };
    if let Some(path) = report.split_whitespace().find(is_prepared) {
        std::fs::remove_file(path).expect("what was prepared is there");
    }
    report
}

#[test]
fn names_of_generated_code_are_not_read_from_pipes_links_and_devices() {
    let report = notes("mkfifo /tmp/perf-$$.map");
    assert!(report.contains("were ignored: it is not a regular file"), "{report}");
    let report = notes("ln -s /dev/zero /tmp/perf-$$.map");
    assert!(report.contains("were ignored: it is a symbolic link"), "{report}");
}

#[test]
fn names_of_generated_code_are_not_believed_of_files_that_are_older_than_the_process_or_too_large() {
    let fake = "echo '0 ffffffffffffffff faked' > /tmp/perf-$$.map";
    let report = notes(&format!("{fake}; touch -d 2001-01-01 /tmp/perf-$$.map"));
    assert!(report.contains("were ignored: it is older than the process"), "{report}");
    let report = notes(&format!("{fake}; truncate -s 1T /tmp/perf-$$.map"));
    assert!(report.contains("were ignored: it is larger than any such file"), "{report}");
}

#[test]
fn names_of_generated_code_are_not_believed_of_other_users() {
    if !is_root() {
        return skip("only root can give files away");
    }
    let fake = "echo '0 ffffffffffffffff faked' > /tmp/perf-$$.map";
    let report = notes(&format!("{fake}; chown 65534 /tmp/perf-$$.map"));
    assert!(report.contains("were ignored: it belongs to user 65534"), "{report}");
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

/// A copy of a program that is stripped, with a link to a debug file beside it.
fn linked(session: &Session) -> Option<PathBuf> {
    let original = KNOWN_SHARES.build().expect("the compiler is installed");
    let (copy, debug) = (session.path("known_shares"), session.path("known_shares.debug"));
    let run = |arguments: &[&OsString]| {
        std::process::Command::new("objcopy").args(arguments).status().is_ok_and(|status| status.success())
    };
    let text = |text: &str| OsString::from(text);
    let path = |path: &Path| path.as_os_str().to_owned();
    let link = text(&format!("--add-gnu-debuglink={}", debug.display()));
    let made = run(&[&text("--only-keep-debug"), &path(&original), &path(&debug)])
        && run(&[
            &text("--strip-all"),
            &text("--remove-section=.note.gnu.build-id"),
            &link,
            &path(&original),
            &path(&copy),
        ]);
    if !made {
        skip("objcopy is not installed");
    }
    made.then_some(copy)
}

#[test]
fn debug_links_to_pipes_and_to_files_of_others_are_not_followed() {
    let session = Session::new();
    let Some(program) = linked(&session) else { return };
    let debug = session.path("known_shares.debug");
    let flat = session.record(&[], &words(&[&program]));
    assert!(
        flat.self_share("forty") > 0.0 || flat.rows().iter().any(|row| row["function"] == "main"),
        "{:#}",
        flat.0
    );
    if is_root() {
        std::os::unix::fs::chown(&debug, Some(65534), None).expect("we are root");
        let flat = session.record(&[], &words(&[&program]));
        assert!(flat.total_share("main") == 0.0, "{:#}", flat.0);
        let report = session.output(&["report"]);
        assert!(report.contains("was not read: it belongs to user 65534"), "{report}");
    }
    std::fs::remove_file(&debug).expect("it is ours");
    let made = std::process::Command::new("mkfifo").arg(&debug).status().expect("mkfifo is installed");
    assert!(made.success());
    // It would wait for ever.
    session.record(&[], &words(&[&program]));
}

#[test]
fn a_program_with_other_rights_is_said_not_to_be_sampled() {
    if !is_root() {
        return skip("only root can make setuid programs");
    }
    let session = Session::new();
    let program = with_other_rights(&session);
    let outcome = session.record_any(&[], &words(&[&program]));
    let report = session.output(&["report"]);
    let told = "takes_rights was not sampled: it is setuid, has capabilities or must not be read";
    assert!(report.contains(told), "{outcome:#?} {report}");
    let run = &session.json("--flat", &[])["run"];
    let [wall, cpu] = ["wall_ns", "cpu_ns"].map(|key| run[key].as_u64().expect("a time"));
    assert!(wall > cpu / 2, "its one thread ran from the start to the end: {run:#}");
    let stat = session.run(&[std::ffi::OsStr::new("stat"), program.as_os_str()]);
    let told = "takes_rights was not counted for ";
    assert!(stat.stderr.contains(told) || stat.stdout.contains(told), "{stat:#?}");
}

#[test]
fn processor_time_without_counts_is_told_where_a_child_takes_other_rights() {
    if !is_root() {
        return skip("only root can make setuid programs");
    }
    let session = Session::new();
    let program = with_other_rights(&session);
    let script = format!("{}; true", quoted(&program));
    let told = "programs of this run were not counted for ";
    let stat = session.run(&["stat", "--", "sh", "-c", &script]);
    assert!(stat.stderr.contains(told) || stat.stdout.contains(told), "{stat:#?}");
    let known = KNOWN_SHARES.build().expect("the compiler is installed");
    let stat = session.run(&["stat", "--", "sh", "-c", &format!("{}; true", quoted(&known))]);
    assert!(!stat.stderr.contains("counted for") && !stat.stdout.contains("counted for"), "{stat:#?}");
}

/// A program that takes the rights of another user.
fn with_other_rights(session: &Session) -> PathBuf {
    let program = session.path("takes_rights");
    std::fs::copy(KNOWN_SHARES.build().expect("the compiler is installed"), &program).expect("a copy");
    std::os::unix::fs::chown(&program, Some(65534), None).expect("we are root");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    std::fs::set_permissions(&program, mode).expect("we are root");
    program
}
