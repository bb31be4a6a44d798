//! `treering archive` and `treering query` on `s3://BUCKET/PREFIX`, with the stand-in for S3 of `moto`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use crate::archive::{costs, folded};
use crate::archive_query::{find_program, with_engines};
use crate::session::{Outcome, Session};
use crate::skip;

/// A store with a bucket, on this machine alone; it ends with the value.
struct Store {
    server: Child,
    port: u16,
}

impl Store {
    /// Starts one; nothing if a program is missing, which is said.
    fn start() -> Option<Self> {
        for program in ["moto_server", "treering-query"] {
            if find_program(program).is_none() {
                skip(&format!("{program} is not installed"));
                return None;
            }
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let mut server = Command::new(find_program("moto_server")?);
        server.args(["-H", "127.0.0.1", "-p", &port.to_string()]).stdin(Stdio::null());
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let store = Self { server, port };
        // It takes some seconds on a busy machine.
        for _ in 0..600 {
            if store.make_bucket().is_some() {
                return Some(store);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("moto_server does not answer on port {port}");
    }

    fn make_bucket(&self) -> Option<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let request =
            "PUT /bucket HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        response.starts_with("HTTP/1.1 200").then_some(())
    }

    fn command(&self, session: &Session, arguments: &[&str]) -> Command {
        let mut command = with_engines(session, arguments);
        command
            .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port))
            .env("AWS_ALLOW_HTTP", "true");
        command.envs([
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AWS_REGION", "us-east-1"),
        ]);
        command
    }

    fn run(&self, session: &Session, arguments: &[&str]) -> Outcome {
        Outcome::of(self.command(session, arguments).output().expect("treering runs"))
    }

    fn output(&self, session: &Session, arguments: &[&str]) -> Outcome {
        let outcome = self.run(session, arguments);
        assert!(outcome.status.success(), "{outcome:#?}");
        outcome
    }

    fn listed(&self, session: &Session) -> Vec<Value> {
        let outcome = self.output(session, &["archive", "list", "--json", "--archive", PLACE]);
        let listed: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
        listed["runs"].as_array().expect("runs").clone()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

const PLACE: &str = "s3://bucket/team/profiles";

/// Profiles of three hosts as files. The time of a file is part of its run.
fn profiles_of_three_hosts(session: &Session) {
    (0..3).for_each(|rank| folded(session, &format!("{rank}.folded"), 10 + rank));
}

fn add_three_hosts(store: &Store, session: &Session, place: &str) {
    for (rank, host) in ["a", "b", "it's c"].into_iter().enumerate() {
        let (name, rank) = (format!("{rank}.folded"), rank.to_string());
        store.output(
            session,
            &["archive", "add", place, "--host", host, "--rank", &rank, "--project", "solve", &name],
        );
    }
}

#[test]
fn an_archive_in_a_bucket_shows_what_one_in_a_folder_shows() {
    let Some(store) = Store::start() else { return };
    let session = Session::new();
    profiles_of_three_hosts(&session);
    add_three_hosts(&store, &session, PLACE);
    add_three_hosts(&store, &session, "kept");
    let again = store.output(
        &session,
        &["archive", "add", PLACE, "--host", "a", "--rank", "0", "--project", "solve", "0.folded"],
    );
    assert!(again.stderr.contains("0 of them new"), "{again:#?}");
    let first = store.output(&session, &["archive", "compact", "--archive", PLACE]);
    assert!(first.stderr.contains("wrote 3 runs; the tables have 3"), "{first:#?}");
    let again = store.output(&session, &["archive", "compact", "--archive", PLACE]);
    assert!(again.stderr.contains("wrote 0 runs; the tables have 3"), "{again:#?}");
    store.output(&session, &["archive", "compact", "--archive", "kept"]);
    // Another user, or another machine, has no copy yet.
    let other = Session::new();
    for session in [&session, &other] {
        for command in ["flat", "callgraph"] {
            let shown = |place| {
                let all = [
                    "archive",
                    command,
                    "--archive",
                    place,
                    "--where",
                    "rank < 2",
                    "--",
                    "--json",
                    "--min",
                    "0",
                ];
                store.output(session, &all).stdout
            };
            if command == "flat" {
                let in_bucket = costs(&shown(PLACE));
                assert_eq!(
                    in_bucket.iter().find(|(name, ..)| name == "work").map(|(_, own, _)| *own),
                    Some(21)
                );
            }
            if std::ptr::eq(session, &raw const other) {
                assert!(!shown(PLACE).is_empty());
            } else {
                assert_eq!(shown(PLACE), shown("kept"), "{command}");
            }
        }
        store.output(session, &["archive", "merge", "--archive", PLACE, "-o", "merged.trg"]);
        store.output(session, &["archive", "view", "--archive", PLACE, "--", "-o", "page.html"]);
        let whole = store.output(session, &["archive", "verify", "--archive", PLACE]);
        assert!(whole.stderr.contains("3 runs, 3 profiles and the tables of 3 runs"), "{whole:#?}");
        let flat = store.output(
            session,
            &["query", "--engine", "datafusion", "--archive", PLACE, "--named", "flat", "--csv"],
        );
        assert!(flat.stdout.contains("work,,33,36,3\n"), "{flat:#?}");
    }
}

#[test]
fn writers_and_compactors_of_a_bucket_at_once_lose_nothing_and_count_nothing_twice() {
    let Some(store) = Store::start() else { return };
    let session = Session::new();
    let mut children = Vec::new();
    for writer in 0..6_u64 {
        let names: Vec<String> = (0..3).map(|at| format!("{writer}-{at}.folded")).collect();
        names.iter().enumerate().for_each(|(at, name)| folded(&session, name, 100 * writer + at as u64 + 1));
        let mut all = vec!["archive", "add", PLACE, "--project", "p"];
        all.extend(names.iter().map(String::as_str));
        children.push(store.command(&session, &all).spawn().expect("it starts"));
    }
    for child in children {
        let outcome = Outcome::of(child.wait_with_output().expect("it ends"));
        assert!(outcome.status.success(), "{outcome:#?}");
    }
    let compact = ["archive", "compact", "--archive", PLACE];
    // Each has its own copy, as on as many machines.
    let compactors: Vec<_> = (0..4)
        .map(|at| {
            let mut command = store.command(&session, &compact);
            command.env("XDG_CACHE_HOME", session.path(&format!("cache-{at}")));
            command.spawn().expect("it starts")
        })
        .collect();
    for child in compactors {
        let outcome = Outcome::of(child.wait_with_output().expect("it ends"));
        assert!(outcome.status.success(), "{outcome:#?}");
    }
    assert_eq!(store.listed(&session).len(), 18);
    let sql = "SELECT COUNT(*) AS n, COUNT(DISTINCT run_id) AS different FROM run WHERE main";
    let counted =
        store.output(&session, &["query", "--engine", "datafusion", "--archive", PLACE, "--csv", sql]);
    assert_eq!(counted.stdout, "n,different\n18,18\n");
}

#[test]
fn a_writer_of_a_bucket_that_is_killed_leaves_nothing_half_listed() {
    let Some(store) = Store::start() else { return };
    let session = Session::new();
    let names: Vec<String> = (0..20).map(|at| format!("{at}.folded")).collect();
    names.iter().enumerate().for_each(|(at, name)| folded(&session, name, 1000 + at as u64));
    let mut all = vec!["archive", "add", PLACE];
    all.extend(names.iter().map(String::as_str));
    store.output(&session, &["archive", "add", PLACE, "0.folded"]);
    for delay in 0..6_u64 {
        let mut command = store.command(&session, &all);
        // With the program that it has started.
        let mut writer = command.process_group(0).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(60 * delay));
        let _ = killpg(Pid::from_raw(writer.id().cast_signed()), Signal::SIGKILL);
        writer.wait().expect("it is our child");
        store.output(&session, &["archive", "verify", "--archive", PLACE]);
    }
    store.output(&session, &all);
    assert_eq!(store.listed(&session).len(), 20);
    let whole = store.output(&session, &["archive", "verify", "--archive", PLACE]);
    assert!(whole.stderr.contains("20 runs, 20 profiles"), "{whole:#?}");
}

#[test]
fn old_runs_leave_a_bucket_and_files_that_may_be_of_new_ones_stay() {
    let Some(store) = Store::start() else { return };
    let session = Session::new();
    profiles_of_three_hosts(&session);
    add_three_hosts(&store, &session, PLACE);
    store.output(&session, &["archive", "compact", "--archive", PLACE]);
    let gc = ["archive", "gc", "--archive", PLACE, "--before", "2100-01-01"];
    let dry = store.output(&session, &[&gc[..], &["--dry-run"]].concat());
    assert!(dry.stderr.contains("would remove 3 runs, the tables of 0 days, 0 other files"), "{dry:#?}");
    assert_eq!(store.listed(&session).len(), 3);
    let done = store.output(&session, &[&gc[..], &["--tables"]].concat());
    assert!(done.stderr.contains("removed 3 runs, the tables of 1 day, 0 other files"), "{done:#?}");
    assert_eq!(store.listed(&session).len(), 0);
    let outcome = store.run(&session, &["query", "--archive", PLACE, "--named", "flat"]);
    assert!(!outcome.status.success() && outcome.stderr.contains("treering archive compact"), "{outcome:#?}");
    // The same profiles are listed again, whose objects were there.
    add_three_hosts(&store, &session, PLACE);
    store.output(&session, &["archive", "verify", "--archive", PLACE]);
    assert_eq!(store.listed(&session).len(), 3);
}

/// A server that answers every request in one way.
fn answering(status: &'static str, body: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nETag: \"1\"\r\nLast-Modified: \
                 Sat, 28 Nov 2026 12:00:00 GMT\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all((head + body).as_bytes());
        }
    });
    port
}

#[test]
fn stores_that_refuse_or_are_busy_or_none_are_named_with_what_helps() {
    if find_program("treering-query").is_none() {
        skip("treering-query is not installed");
        return;
    }
    let session = Session::new();
    folded(&session, "0.folded", 1);
    for (status, body, said, hint) in [
        (
            "403 Forbidden",
            "<Error><Code>InvalidAccessKeyId</Code></Error>",
            "403 Forbidden",
            "AWS_ACCESS_KEY_ID",
        ),
        (
            "503 Service Unavailable",
            "<Error><Code>SlowDown</Code></Error>",
            "after 5 retries",
            "try again later",
        ),
        ("200 OK", "<html>a portal</html>", "what answers is no store", "AWS_ENDPOINT_URL"),
    ] {
        let port = answering(status, body);
        for arguments in
            [&["archive", "list", "--archive", PLACE][..], &["archive", "add", PLACE, "0.folded"]]
        {
            let mut command = with_engines(&session, arguments);
            command
                .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))
                .envs([("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1")])
                .envs([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]);
            let outcome = Outcome::of(command.output().expect("treering runs"));
            let hints = outcome.stderr.lines().filter(|line| line.starts_with("hint: ")).collect::<String>();
            assert!(
                outcome.status.code() == Some(1) && outcome.stderr.contains(said) && hints.contains(hint),
                "{outcome:#?}"
            );
        }
    }
}

#[test]
fn buckets_that_refuse_are_named_with_what_helps() {
    let session = Session::new();
    folded(&session, "0.folded", 1);
    let mut alone = session.command(&["archive", "add", PLACE, "0.folded"]);
    if find_program("treering-query").is_none() {
        let outcome = Outcome::of(alone.env("PATH", session.path("empty")).output().expect("treering runs"));
        assert!(outcome.status.code() == Some(1) && outcome.stderr.contains("cargo install"), "{outcome:#?}");
    }
    let bench = session.run(&["bench", "list", "--archive", PLACE]);
    assert!(!bench.status.success() && bench.stderr.contains("not in S3"), "{bench:#?}");
    let Some(store) = Store::start() else { return };
    for (arguments, said) in [
        (&["archive", "list", "--archive", PLACE][..], "there is no archive s3://bucket/team/profiles"),
        (&["archive", "add", "s3://missing/x", "0.folded"], "there is no bucket of that name"),
        (&["archive", "list", "--archive", "s3://missing/x"], "there is no bucket of that name"),
        (&["archive", "add", "s3://", "0.folded"], "s3://BUCKET/PREFIX"),
    ] {
        let outcome = store.run(&session, arguments);
        assert!(outcome.status.code() == Some(1) && outcome.stderr.contains(said), "{outcome:#?}");
    }
}
