//! Programs have the signals and the limit of open files that Treering was called with.

use std::process::{Command, Stdio};

use crate::session::{Outcome, Session, quoted, treering};
use crate::skip;

/// Calls a command with signals that are ignored and blocked, and a low limit of open files. Returns its exit status.
fn call(session: &Session, ignored: &str, command: &str) -> Option<i32> {
    // Shells unblock signals.
    let env = format!("exec env --ignore-signal={ignored} --block-signal=USR1");
    let shell = format!("ulimit -Sn 200; {env} {command}");
    let status = Command::new("sh")
        .args(["-c", &shell])
        .current_dir(session.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.expect("a shell").code()
}

/// A program that writes what it has inherited to a file, and ends with status 3.
fn teller(session: &Session) -> String {
    let (source, program) = (session.path("tell.c"), session.path("tell"));
    let text = r#"
        #include <signal.h>
        #include <stdio.h>
        #include <sys/resource.h>
        static int is_ignored(int signal) {
            struct sigaction action;
            return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
        }
        int main(void) {
            sigset_t blocked;
            struct rlimit files;
            FILE *told = fopen("told", "w");
            sigprocmask(SIG_BLOCK, NULL, &blocked);
            getrlimit(RLIMIT_NOFILE, &files);
            fprintf(told, "pipe %d child %d blocked %d %d files %d\n", is_ignored(SIGPIPE), is_ignored(SIGCHLD),
                    sigismember(&blocked, SIGUSR1), sigismember(&blocked, SIGINT), (int)files.rlim_cur);
            return fclose(told) == 0 ? 3 : 1;
        }
    "#;
    std::fs::write(&source, text).expect("written");
    let built = Command::new("cc").arg("-o").arg(&program).arg(source).status();
    assert!(built.expect("a compiler").success());
    quoted(program)
}

fn take(session: &Session) -> String {
    let path = session.path("told");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    text
}

/// They ended by a signal.
#[test]
fn a_stack_that_is_too_small_is_an_error() {
    let session = Session::new();
    for command in ["record -- true", "report", "--help"] {
        let shell = format!("ulimit -s 64; exec {} {command}", quoted(treering()));
        let outcome = Command::new("sh").args(["-c", &shell]).current_dir(session.path("")).output();
        let outcome = Outcome::of(outcome.expect("a shell"));
        assert_eq!(outcome.shell_status(), 1, "{outcome:#?}");
        assert!(outcome.error().contains("the stack may only grow to 64 KiB"), "{outcome:#?}");
    }
}

#[test]
fn programs_inherit_what_treering_was_called_with() {
    for how in
        ["record -q -o x.trg", "record -q --runs 2 -o y.trg", "stat", "stat --exact", "count -q -o z.trg"]
    {
        check("PIPE,CHLD", &format!("{how} --"), true);
    }
    check("PIPE,CHLD", "octave --eval 1 --octave", false);
    check("PIPE,CHLD", "prolog x.pl --swipl", false);
    // The programs that are compared are children of one that waits for them.
    check("PIPE", "compare --time -n 2 --warmup 0 true --", false);
}

fn check(ignored: &str, how: &str, tells_status: bool) {
    let session = Session::new();
    let teller = teller(&session);
    if call(&session, ignored, &teller) != Some(3) {
        return skip("env cannot block signals here");
    }
    std::fs::write(session.path("x.pl"), "main.\n").expect("written");
    let alone = take(&session);
    assert!(alone.starts_with("pipe 1") && alone.ends_with("blocked 1 0 files 200\n"), "{alone}");
    let status = call(&session, ignored, &format!("{} {how} {teller}", quoted(treering())));
    assert_eq!(take(&session), alone, "{how}");
    assert!(!tells_status || status == Some(3), "{how}: {status:?}");
}

/// SIGXFSZ ended Treering without a word, before the program was started.
#[test]
fn files_that_may_not_grow_are_an_error_and_no_signal() {
    let session = Session::new();
    let run = |line: &str| {
        let line = format!("ulimit -f 0; exec {} {line}", quoted(treering()));
        let output = Command::new("sh").args(["-c", &line]).current_dir(session.path("")).output();
        Outcome::of(output.expect("a shell"))
    };
    for line in ["record -o x.trg -- true", "stat -o counts -- true", "gprof -o y.trg -- true"] {
        let outcome = run(line);
        assert_eq!(outcome.shell_status(), 1, "{line}: {outcome:#?}");
        assert!(outcome.error().to_lowercase().contains("file too large"), "{line}: {outcome:#?}");
    }
    // The program meets its limit as it would alone.
    let writes = run("stat -- sh -c 'echo x > written'");
    assert_ne!(writes.shell_status(), 0, "{writes:#?}");
}
