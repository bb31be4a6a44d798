//! `treering record` and `report` on what is not there, not allowed, or not a profile.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use treering_testing::programs::KNOWN_SHARES;

use crate::session::{Outcome, Session, program, words};

fn write(path: &Path, content: &[u8], mode: u32) {
    std::fs::write(path, content).expect("the directory can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the file is ours");
}

#[test]
fn a_program_that_is_not_there_ends_with_127() {
    let session = Session::new();
    let outcome = session.record_any(&[], &words(&["./no-such-program"]));
    assert!(outcome.error().contains("no-such-program"), "{outcome:#?}");
    assert_eq!(outcome.shell_status(), 127, "{outcome:#?}");
    assert!(!session.path("treering.trg").exists(), "nothing was recorded");
}

#[test]
fn a_file_that_is_not_executable_ends_with_126() {
    let session = Session::new();
    write(&session.path("notes"), b"just text\n", 0o644);
    let outcome = session.record_any(&[], &words(&["./notes"]));
    assert!(outcome.error().contains("notes") && outcome.stderr.contains("hint: "), "{outcome:#?}");
    assert_eq!(outcome.shell_status(), 126, "{outcome:#?}");
}

/// `/dev/zero` has no end, and was read until there was no memory.
#[test]
fn a_device_is_not_read_as_a_profile() {
    let session = Session::new();
    for command in [&["report", "/dev/zero"][..], &["merge", "-o", "all.trg", "/dev/zero", "/dev/zero"]] {
        let outcome = session.run(command);
        assert!(outcome.error().contains("cannot read /dev/zero: it is a device"), "{outcome:#?}");
    }
}

/// As in a shell, for each way to start a program.
#[test]
fn a_script_whose_interpreter_is_missing_ends_with_127() {
    let session = Session::new();
    write(&session.path("script"), b"#!/no/such/interpreter\n", 0o755);
    for collector in ["record", "stat", "count", "gprof"] {
        let outcome = session.run(&[collector, "--", "./script"]);
        assert_eq!(outcome.shell_status(), 127, "{collector}: {outcome:#?}");
    }
    write(&session.path("program.pl"), b"main.\n", 0o644);
    for (interpreter, status) in [("./script", 127), ("./program.pl", 126)] {
        for (language, option) in [("prolog", "--swipl"), ("octave", "--octave")] {
            let outcome = session.run(&[language, option, interpreter, "program.pl"]);
            assert_eq!(outcome.shell_status(), status, "{language} {interpreter}: {outcome:#?}");
        }
    }
}

/// The shell says the same of it.
#[test]
fn a_file_in_path_that_is_not_executable_is_named_whole() {
    let session = Session::new();
    let file = session.path("listed");
    write(&file, b"just text\n", 0o644);
    let folder = file.parent().expect("it is in a folder");
    for collector in ["record", "stat", "count", "gprof"] {
        let mut command = session.command(&[collector, "--", "listed"]);
        let outcome = Outcome::of(command.env("PATH", folder).output().expect("treering runs"));
        let error = outcome.error();
        assert!(error.contains("cannot run listed: permission denied"), "{collector}: {error}");
        let hint =
            outcome.stderr.lines().find(|line| line.starts_with("hint: if it is a program: chmod +x "));
        assert!(hint.is_some_and(|hint| hint.contains("listed")), "{collector}: {outcome:#?}");
        assert_eq!(outcome.shell_status(), 126, "{collector}: {outcome:#?}");
    }
}

#[test]
fn a_directory_is_no_program() {
    let session = Session::new();
    let outcome = session.record_any(&[], &words(&["/tmp"]));
    assert_eq!(outcome.shell_status(), 126, "{outcome:#?}");
    outcome.error();
}

#[test]
fn a_script_without_its_first_line_is_told_apart() {
    let session = Session::new();
    write(&session.path("script"), b"echo hello\n", 0o755);
    let outcome = session.record_any(&[], &words(&["./script"]));
    // Shells run such a file themselves, so either is right: running it, or saying what is wrong.
    if !outcome.status.success() {
        assert!(outcome.error().contains("script"), "{outcome:#?}");
    }
}

#[test]
fn a_script_whose_interpreter_is_missing_is_an_error() {
    let session = Session::new();
    write(&session.path("script"), b"#!/no/such/interpreter\n", 0o755);
    let outcome = session.record_any(&[], &words(&["./script"]));
    outcome.error();
}

#[test]
fn no_program_at_all_is_a_mistake_of_the_command_line() {
    let session = Session::new();
    let outcome = session.run(&["record"]);
    assert_eq!(outcome.shell_status(), 2, "{outcome:#?}");
    assert!(outcome.stderr.contains("Usage") || outcome.stderr.contains("usage"), "{outcome:#?}");
}

#[test]
fn an_unknown_option_of_record_is_a_mistake_of_the_command_line() {
    let session = Session::new();
    let outcome = session.run(&["record", "--no-such-option", "--", "true"]);
    assert_eq!(outcome.shell_status(), 2, "{outcome:#?}");
}

#[test]
fn arguments_after_the_program_are_its_own_with_and_without_two_dashes() {
    let session = Session::new();
    for subcommand in ["record", "count"] {
        for dashes in [&[][..], &["--"]] {
            let words = ["-q", "-o", "echo.trg", "echo", "-q", "--", "--tree"];
            let all = [&[subcommand][..], &words[..3], dashes, &words[3..]].concat();
            assert_eq!(session.output(&all), "-q -- --tree\n", "{all:?}");
        }
    }
}

#[test]
fn files_that_are_no_profiles_are_named_for_what_they_are() {
    let session = Session::new();
    for (name, content) in [
        ("perf.data", &b"PERFILE2................................"[..]),
        ("gmon.out", b"gmon\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        ("empty", b""),
        ("page.html", b"<!DOCTYPE html><html></html>"),
        ("random", b"\x93\x01\xff\xfe\x00\x17 nothing that anyone wrote"),
    ] {
        write(&session.path(name), content, 0o644);
        let outcome = session.run(&["report", name]);
        let said = outcome.error();
        assert!(said.contains(name), "the file is named: {said}");
    }
    assert!(session.run(&["report", "not-there"]).error().contains("not-there"));
    session.run(&["report", "."]).error();
}

#[test]
fn files_of_other_tools_are_named_with_what_to_do() {
    let session = Session::new();
    for (content, kind, hint) in [
        (&b"FLR\0\0\x02\0\x01"[..], "JFR", "jfrconv"),
        (b"\x0a\x20\x0a\x1e\x0a\x1c\x0a\x0cservice.name\x12\x0c\x0a\x0adashboard.", "OTLP", "pprof"),
        (b"{\"nodes\":[{\"id\":1,\"callFrame\":{},\"selfSize\":1}]}", ".heapprofile", "speedscope.app"),
        (b"{\"dhatFileVersion\":2}", "DHAT", "dh_view"),
        (b"desc: x\ncmd: y\ntime_unit: i\n", "Massif", "ms_print"),
        (b"--- contention:\ncycles/second=1\n", "gperftools", "go tool pprof -proto"),
        (b"\x28\xb5\x2f\xfd\x04\0", "zstd", "zstd -dk"),
        (b"\xff\xfem\x00a\x00 \x001\x00", "UTF-16", "iconv"),
    ] {
        write(&session.path("given"), content, 0o644);
        let outcome = session.run(&["report", "given"]);
        assert!(outcome.error().contains(kind), "{kind}: {outcome:#?}");
        let hints: Vec<_> = outcome.stderr.lines().filter(|line| line.starts_with("hint: ")).collect();
        assert!(hints.iter().any(|line| line.contains(hint)), "{kind}: {outcome:#?}");
    }
}

#[test]
fn arcs_that_contradict_the_costs_are_limited_and_said() {
    let session = Session::new();
    let content = b"events: Ir\nfn=main\n1 1\ncfn=foo\ncalls=1 1\n1 500\nfn=foo\n1 10\n";
    write(&session.path("callgrind.out"), content, 0o644);
    let outcome = session.run(&["report", "--flat", "callgrind.out"]);
    assert!(outcome.stderr.contains("the file gives 500 Ir to arcs into foo"), "{outcome:#?}");
    assert_eq!(session.flat(&["callgrind.out"]).cost("main").total, 11.0);
    // A reader of the result is told as well.
    session.output(&["import", "callgrind.out", "-o", "made.trg"]);
    assert!(session.run(&["report", "made.trg"]).stdout.contains("arcs contradict the costs"));
}

#[test]
fn a_profile_that_is_cut_short_or_damaged_is_read_as_far_as_it_goes() {
    let session = Session::new();
    session.record(&[], &program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["60"]));
    let whole = std::fs::read(session.path("treering.trg")).expect("it was just written");
    for length in [0, 3, 15, 16, 17, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        write(&session.path("cut.trg"), &whole[..length], 0o644);
        let outcome = session.run(&["report", "cut.trg"]);
        assert!(!outcome.stderr.contains("panicked"), "{outcome:#?}");
        assert!(tells_of_damage(&outcome), "{length} of {} bytes are left: {outcome:#?}", whole.len());
    }
    for place in (20..whole.len()).step_by(whole.len() / 12) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x5a;
        write(&session.path("damaged.trg"), &damaged, 0o644);
        let outcome = session.run(&["report", "damaged.trg"]);
        assert!(!outcome.stderr.contains("panicked"), "{outcome:#?}");
        assert!(tells_of_damage(&outcome), "byte {place} is damaged: {outcome:#?}");
    }
}

/// Whether a report says that the file is no whole profile: as an error, a warning or a note.
fn tells_of_damage(outcome: &crate::session::Outcome) -> bool {
    outcome.stderr.contains(".trg") || outcome.stdout.contains("could not be read")
}

#[test]
fn a_newer_major_version_is_refused_with_a_hint() {
    let session = Session::new();
    session.record(&[], &program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["60"]));
    let mut bytes = std::fs::read(session.path("treering.trg")).expect("it was just written");
    // The magic is followed by the major version; `docs/formats/trg.md` has the layout.
    let major =
        bytes.iter().skip(4).take(12).position(|&byte| byte == 1).expect("the major version is 1") + 4;
    bytes[major] = 9;
    write(&session.path("newer.trg"), &bytes, 0o644);
    let outcome = session.run(&["report", "newer.trg"]);
    assert!(outcome.error().contains("newer.trg") && outcome.stderr.contains("hint: "), "{outcome:#?}");
}

#[test]
fn no_name_in_a_file_reaches_the_terminal_as_it_is() {
    let session = Session::new();
    let content =
        b"events: I\x1b[31mr\nob=/lib/\x1b]0;evil\x07.so\nfl=\x1b[1mx.c\nfn=f\x1b[2J\n1 5\nob=b\nfn=g\n2 3\n\
                    cob=(8)\ncfn=h\x1b[0m\ncalls=1 1\n1 900\nfn=h\n1 1\n";
    let name = "\u{1b}[31mname";
    write(&session.path(name), content, 0o644);
    for arguments in [
        &["report", "--flat"][..],
        &["report", "--callgraph"],
        &["report", "--tree"],
        &["report", "--lines=g"],
        &["report", "--metric", "\u{1b}[1m"],
        &["dump"],
        &["report", "--focus", "\u{1b}["],
        &["export", "--to", "callgrind", "-o", "made"],
        &["export", "--to", "pprof", "-o", "/no/such/\u{1b}[1m"],
    ] {
        let outcome = session.run(&[arguments, &[name]].concat());
        let text = outcome.stdout + &outcome.stderr;
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{arguments:?}: {text:?}");
    }
    // Files keep the names as they are.
    session.output(&["export", "--to", "pprof", "-o", "made.pb.gz", name]);
    let json: serde_json::Value =
        serde_json::from_str(&session.output(&["report", "--flat", "--json", "made.pb.gz"]))
            .expect("it is JSON");
    assert!(json.to_string().contains("f\\u001b[2J"), "{json}");
}

#[test]
fn gzip_in_gzip_has_one_hint_that_works() {
    let session = Session::new();
    let packed = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).expect("memory has room");
        packed.finish().expect("memory has room")
    };
    write(&session.path("a.gz"), &packed(&packed(b"main;f 1\n")), 0o644);
    let outcome = session.run(&["report", "a.gz"]);
    outcome.error();
    let hints: Vec<_> = outcome.stderr.lines().filter(|line| line.starts_with("hint: ")).collect();
    assert_eq!(hints.len(), 1, "{outcome:#?}");
    assert!(hints[0].contains("gzip -dc a.gz | gzip -dc | treering report -"), "{hints:?}");
}
