//! `treering archive` where something is wrong: with the command, with a file, with a clock, with the disk.

use std::process::{Command, Stdio};

use crate::archive::{add, archive, folded, listed, of_kept, three_hosts};
use crate::session::{Outcome, Session, words};

#[test]
fn mistakes_are_named_with_what_helps() {
    let session = Session::new();
    three_hosts(&session);
    for (arguments, said) in [
        (&["flat", "--archive", "kept", "--where", "projekt = 'x'"][..], "no such column: projekt"),
        (&["flat", "--archive", "kept", "--where", "project = 'x'"], "no profile to show"),
        (&["flat", "--archive", "nowhere"], "there is no archive nowhere"),
        (&["list", "--archive", "."], "is no archive"),
        (&["sql", "--archive", "kept"], "treering archive compact"),
        (&["gc", "--archive", "kept", "--before", "tomorrow"], "\"tomorrow\" is no day"),
        (&["flat", "--archive", "kept", "--", "--no-such-option"], "--no-such-option"),
    ] {
        let outcome = archive(&session, arguments);
        assert!(!outcome.status.success() && outcome.stderr.contains(said), "{outcome:#?}");
    }
    let outcome = session.run(&words(&["query", "--named", "callers", "--archive", "kept"]));
    assert!(!outcome.status.success(), "{outcome:#?}");

    // A part without its end, as of a disk that lost it.
    of_kept(&session, "compact", &[]);
    let part = std::fs::read_dir(session.path("kept/tables/cost")).expect("a folder").next().expect("a file");
    let part = part.expect("it can be read").path();
    std::fs::write(&part, &std::fs::read(&part).expect("it is there")[..100]).expect("it can be written");
    for command in [&["sql"][..], &["verify"]] {
        let outcome = archive(&session, &[command, &["--archive", "kept"]].concat());
        let said = ["is damaged", "treering archive compact --anew"];
        assert!(
            !outcome.status.success() && said.iter().all(|said| outcome.stderr.contains(said)),
            "{outcome:#?}"
        );
    }
    of_kept(&session, "compact", &["--anew"]);
    of_kept(&session, "sql", &[]);
}

#[test]
fn a_question_about_a_name_that_no_run_has_is_noted() {
    let session = Session::new();
    folded(&session, "a.folded", 1);
    add(&session, &["--project", "solve", "--version-name", "1.0"], &["a.folded"]);
    of_kept(&session, "compact", &[]);
    let said = |named: &str, options: &[&str]| {
        let outcome = archive(&session, &[&["sql", "--archive", "kept", "--named", named], options].concat());
        assert!(outcome.status.success(), "{outcome:#?}");
        outcome.stderr
    };
    assert_eq!(
        said("outliers", &["--project", "slove"]),
        "note: no run is of the project slove; there are: solve\n"
    );
    let versions = said("versions", &["--base", "1.0", "--head", "1.1"]);
    assert_eq!(versions, "note: no run is of the version 1.1; there are: 1.0\n");
    assert_eq!(said("outliers", &["--project", "solve"]), "");
    assert_eq!(said("flat", &["--metric", "CPU"]), "note: no run has the metric CPU; there are: samples\n");
    let callers = said("callers", &["--function", "worker"]);
    assert!(callers.starts_with("note: no run has the function worker; there are: work, "), "{callers}");
    let later = said("flat", &["--since", "2199-01-01"]);
    assert!(later.starts_with("note: no run is of 2199-01-01 or later; the last one is of 20"), "{later}");
    assert_eq!(said("flat", &["--metric", "samples", "--since", "1980-01-01"]), "");

    // Nothing stood behind the colon.
    let session = Session::new();
    folded(&session, "a.folded", 1);
    add(&session, &["--project", "solve"], &["a.folded"]);
    of_kept(&session, "compact", &[]);
    let asked = ["sql", "--archive", "kept", "--named", "versions", "--base", "1.0", "--head", "1.0"];
    let outcome = archive(&session, &asked);
    assert_eq!(outcome.stderr, "note: no run is of the version 1.0; none states a version\n".repeat(2));
}

/// A host a year ahead of the others, and one whose clock begins at 0.
#[test]
fn days_that_no_right_clock_shows_are_named() {
    let session = Session::new();
    for (at, seconds) in [0_u64, 1_800_000_000, 7_000_000_000].into_iter().enumerate() {
        let name = format!("{at}.folded");
        folded(&session, &name, at as u64);
        let file = std::fs::File::options().write(true).open(session.path(&name)).expect("it is there");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        file.set_modified(time).expect("its time can be set");
        add(&session, &["--project", "solve"], &[&name]);
    }
    let said = of_kept(&session, "compact", &[]).stderr;
    for part in
        ["to come, up to 2191-10-27", "1 day before 2000-01-01", "list --where \"day < '2000-01-01'\""]
    {
        assert!(said.contains(part), "{said}");
    }
    let listed = of_kept(&session, "list", &["--where", "day < '2000-01-01'"]).stdout;
    assert!(listed.contains("1970-01-01 00:00"), "{listed}");
    assert!(of_kept(&session, "sql", &[]).stderr.contains("up to 2191-10-27"));
    let gc = of_kept(&session, "gc", &["--before", "2020-01-01", "--dry-run"]).stderr;
    assert!(gc.contains("would remove 1 run") && gc.contains("before 2000-01-01"), "{gc}");
}

/// The hint for tables whose list is damaged is one that helps.
#[test]
fn a_damaged_list_of_tables_is_written_anew() {
    let session = Session::new();
    three_hosts(&session);
    of_kept(&session, "compact", &[]);
    std::fs::write(session.path("kept/tables/current.json"), "{\"treering_tables\": 1, \"parts\": [")
        .expect("it can be written");
    for command in ["compact", "sql", "verify"] {
        let outcome = archive(&session, &[command, "--archive", "kept"]);
        let said = ["current.json is damaged", "treering archive compact --anew"];
        assert!(
            outcome.status.code() == Some(1) && said.iter().all(|said| outcome.stderr.contains(said)),
            "{outcome:#?}"
        );
    }
    let anew = of_kept(&session, "compact", &["--anew"]);
    assert!(anew.stderr.contains("wrote 3 runs; the tables have 3"), "{anew:#?}");
    of_kept(&session, "verify", &[]);
}

/// A run whose description is damaged is in no list, so the tables are not whole.
#[test]
fn a_compaction_without_a_damaged_run_fails() {
    let session = Session::new();
    three_hosts(&session);
    let run = listed(&session, "rank = 1")[0]["run"].as_str().expect("a name").to_owned();
    let path = session.path(&format!("kept/runs/{}/{run}.json", &run[..2]));
    std::fs::remove_file(&path).expect("it is there");
    std::fs::write(&path, "{\"treering_run\": 1").expect("the folder can be written");
    std::fs::remove_file(session.path("kept/index.sqlite")).expect("it is there");
    let outcome = archive(&session, &["compact", "--archive", "kept"]);
    let said = [&run, "wrote 2 runs; the tables have 2", "1 run left out"];
    assert!(
        outcome.status.code() == Some(1) && said.iter().all(|said| outcome.stderr.contains(said)),
        "{outcome:#?}"
    );
}

/// With a limit on files' sizes, as on a disk that is full: nothing is half there, and later everything works.
#[test]
fn an_archive_without_room_stays_whole() {
    let session = Session::new();
    three_hosts(&session);
    let limited = |arguments: &str| {
        let treering = crate::session::quoted(crate::session::treering());
        let line = format!("ulimit -f 0; exec {treering} archive {arguments}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(session.path(".")).stdin(Stdio::null());
        Outcome::of(shell.output().expect("sh runs"))
    };
    folded(&session, "new.folded", 70);
    folded(&session, "newer.folded", 71);
    for arguments in ["add kept new.folded newer.folded", "compact --archive kept"] {
        let outcome = limited(arguments);
        let said = ["cannot write kept/", "nothing that was kept is lost; make room there"];
        assert!(
            outcome.status.code() == Some(1) && said.iter().all(|said| outcome.stderr.contains(said)),
            "{outcome:#?}"
        );
    }
    assert_eq!(listed(&session, "true").len(), 3);
    let whole = of_kept(&session, "verify", &[]);
    assert!(whole.stderr.contains("3 runs, 3 profiles and the tables of 0 runs"), "{whole:#?}");
    add(&session, &[], &["new.folded", "newer.folded"]);
    let whole = of_kept(&session, "compact", &[]);
    assert!(whole.stderr.contains("wrote 5 runs; the tables have 5"), "{whole:#?}");
}
