//! `treering gprof` where the program is killed or goes on as a daemon: nothing that it counted is lost.

use std::io::Read as _;
use std::process::Command;

use crate::gprof::{FEW_CALLS, arc, call_graph, compile, gprof, graph_of, preloaded};
use crate::session::Session;

#[test]
fn counts_survive_every_end_of_the_program() {
    let session = Session::new();
    let source = "APART int leaf(int x) { KEPT; return x + 1; }\n\
        int main(int count, char **words) { (void)count; for (int i = 3; i < 1000; i++) close(i);\n\
        for (int i = 1; i < 32; i++) signal(i, SIG_DFL); int sum = 0; if (chroot(\".\")) sum--; for (int i = 0; i < 5000; i++) sum += leaf(i);\n\
        raise(atoi(words[1])); return sum; }\n";
    let Some(program) = compile(&session, source, "ends", &[]) else { return };
    for signal in [libc_number("SIGKILL"), libc_number("SIGSEGV"), libc_number("SIGTERM")] {
        let outcome = gprof(&session, &[], &program, &[&signal.to_string()]);
        assert_eq!(outcome.shell_status(), 128 + signal, "{outcome:#?}");
        assert_eq!(arc(&call_graph(&session), "main", "leaf"), Some(5000), "{outcome:#?}");
    }
    assert!(!session.path("treering.trg.arcs").exists());
}

fn libc_number(signal: &str) -> i32 {
    match signal {
        "SIGKILL" => 9,
        "SIGSEGV" => 11,
        _ => 15,
    }
}

/// The files of a killed run, partly damaged: the rest is used, and missing parts are named.
#[test]
fn damaged_files_of_a_killed_run_are_named_and_the_rest_is_used() {
    let session = Session::new();
    let Some(program) = compile(&session, FEW_CALLS, "left", &[]) else { return };
    let folder = session.path("treering.trg.arcs");
    let count = || {
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        let status = preloaded(&program).env("TREERING_PG", &folder).status();
        assert!(status.expect("it runs").success());
        let mut files = std::fs::read_dir(&folder).expect("it is there").flatten().map(|entry| entry.path());
        files.next().expect("a file")
    };
    // Alone, each of these is an error.
    let whole = std::fs::File::open(count()).expect("it is there");
    let mut bytes = vec![0; 1 << 16];
    whole.take(1 << 16).read_exact(&mut bytes).expect("it has gigabytes");
    let version = [&bytes[..8], &[9][..], &bytes[9..]].concat();
    let damaged: [(&[u8], &str); 4] = [
        (&bytes[..30], "the header is cut short: it needs 4096 bytes, 30 are left"),
        (&bytes[..5000], "it is cut short: "),
        (&version, "version 9 is not known"),
        (b"something else", "not a file of calls"),
    ];
    for (bytes, said) in damaged {
        std::fs::remove_dir_all(&folder).expect("it can be removed");
        std::fs::create_dir(&folder).expect("the folder can be made");
        std::fs::write(folder.join("1-0.arcs"), bytes).expect("it can be written");
        let outcome = session.run(&["gprof", "--recover"]);
        assert!(outcome.error().contains(said) && outcome.stderr.contains("1-0.arcs"), "{outcome:#?}");
    }
    // Beside one that is whole, they are warnings. The last two would never end, and hold nothing.
    count();
    let pipe = Command::new("mkfifo").arg(folder.join("2-0.arcs")).status();
    assert!(pipe.expect("coreutils are installed").success());
    std::fs::write(folder.join("3-0.arcs"), [0; 64]).expect("it can be written");
    let outcome = session.run(&["gprof", "--recover"]);
    assert!(outcome.status.success(), "{outcome:#?}");
    for said in ["1-0.arcs: not a file of calls", "2-0.arcs: it is no file", "counted nothing in it: 1"] {
        assert!(outcome.stderr.contains(said), "{said}: {outcome:#?}");
    }
    let graph = call_graph(&session);
    assert_eq!(arc(&graph, "main", "leaf"), Some(5000));
    assert!(graph["run"]["notes"].to_string().contains("what it counted is lost"), "{graph}");
    assert!(folder.exists() && outcome.stderr.contains("kept the damaged files"), "{outcome:#?}");
    // Another program in its place.
    std::fs::remove_dir_all(&folder).expect("it can be removed");
    count();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    let file = std::fs::File::options().append(true).open(&program).expect("it is there");
    file.set_modified(later).expect("it is ours");
    let outcome = session.run(&["gprof", "--recover"]);
    assert!(outcome.stderr.contains("left was changed or replaced since"), "{outcome:#?}");
    // One that was built earlier and moved there; its own calls are of an earlier time still.
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("it is ours");
    drop(file);
    let calls = std::fs::File::options().append(true).open(count()).expect("it was counted");
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    calls.set_modified(earlier).expect("it is ours");
    let outcome = session.run(&["gprof", "--recover"]);
    assert!(outcome.stderr.contains("left was changed or replaced since"), "{outcome:#?}");
}

/// A daemon has left its session, its folder and its terminal, and its parent has ended.
#[test]
fn daemons_and_programs_that_become_another_user_are_counted() {
    let session = Session::new();
    let source = "APART int leaf(int x) { KEPT; return x + 1; }\n\
        static APART void some(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += leaf(sum); if (sum == 1) abort(); }\n\
        int main(void) { some(10); int ends[2]; if (pipe(ends)) return 3;\n\
        if (fork()) { char end; close(ends[1]); while (read(ends[0], &end, 1) > 0); _exit(0); }\n\
        setsid(); if (fork()) _exit(0); if (chdir(\"/\")) abort(); close(0); close(1); close(2); some(1000);\n\
        if (!getuid() && (setgid(65534) || setuid(65534))) abort(); some(300); if (!fork()) { some(7); _exit(0); }\n\
        while (wait(0) > 0); _exit(0); }\n";
    let Some(program) = compile(&session, source, "daemon", &[]) else { return };
    let graph = graph_of(&session, &program, &[]);
    assert_eq!(arc(&graph, "some", "leaf"), Some(10 + 1000 + 300 + 7));
    assert_eq!(arc(&graph, "main", "some"), Some(4));
}

#[test]
fn calls_of_a_daemon_after_the_programs_end_are_announced_and_recovered() {
    let session = Session::new();
    let source = "APART int leaf(int x) { KEPT; return x + 1; }\n\
        static APART void some(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += leaf(sum); if (sum == 1) abort(); }\n\
        int main(int argc, char **argv) { some(10); if (fork()) _exit(0); setsid(); close(0); close(1); close(2);\n\
        some(100); while (access(argv[argc - 1], F_OK)) usleep(1000); some(1000); _exit(0); }\n";
    let Some(program) = compile(&session, source, "serves", &[]) else { return };
    let go = session.path("go");
    let outcome = gprof(&session, &[], &program, &[go.to_str().expect("paths of tests are text")]);
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(outcome.stderr.contains("warning: a process of the program goes on ("), "{outcome:#?}");
    assert!(!outcome.stderr.contains("none lost\n"), "{outcome:#?}");
    let early = arc(&call_graph(&session), "some", "leaf").expect("the program has called it");
    assert!((10..=110).contains(&early), "{early}");
    assert!(session.output(&["report"]).contains("goes on ("), "the profile says so as well");
    let again = gprof(&session, &[], &program, &["/"]);
    assert!(again.error().contains("still counts there"), "{again:#?}");
    std::fs::write(&go, "").expect("the folder can be written");
    let folder = session.path("treering.trg.arcs");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let outcome = session.run(&["gprof", "--recover"]);
        assert!(outcome.status.success(), "{outcome:#?}");
        if !outcome.stderr.contains("goes on (") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "it ends");
    }
    assert_eq!(arc(&call_graph(&session), "some", "leaf"), Some(1110));
    assert!(!folder.exists());
}
