//! `treering archive sql --engine ballista`, asked of a scheduler and two executors.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::archive::of_kept;
use crate::archive_query::{
    QUESTIONS, asked, engines, find_program, several_days, without_strings_of_digits,
};
use crate::session::{Outcome, Session};
use crate::skip;

/// A scheduler and two executors of this machine, which end with it.
struct Cluster {
    port: u16,
    running: Vec<Child>,
}

impl Cluster {
    fn start(session: &Session, scheduler: &Path, executor: &Path) -> Self {
        let port = free_port();
        let mut cluster = Self { port, running: Vec::new() };
        let own = ["--bind-host", "127.0.0.1", "--external-host", "127.0.0.1"];
        cluster.run(session, Command::new(scheduler).args(own).arg("-p").arg(port.to_string()));
        let end = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "the scheduler does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        for number in 1..=2 {
            let mut command = Command::new(executor);
            command.args(own).args(["--scheduler-host", "127.0.0.1", "-c", "1"]);
            command.arg("--scheduler-port").arg(port.to_string());
            for option in ["-p", "--bind-grpc-port", "--bind-health-port"] {
                command.arg(option).arg(free_port().to_string());
            }
            let work = session.path(&format!("work {number}"));
            std::fs::create_dir(&work).expect("the folder can be made");
            cluster.run(session, command.arg("--work-dir").arg(work));
        }
        cluster
    }

    fn run(&mut self, session: &Session, command: &mut Command) {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.running.push(quiet.current_dir(session.path("")).spawn().expect("it runs"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that nothing listens at.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a port");
    listener.local_addr().expect("it has an address").port()
}

/// The rows without what is nothing, which Ballista leaves out.
fn without_nothing(rows: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let known = |mut row: Value| {
        if let Some(row) = row.as_object_mut() {
            row.retain(|_, value| value != "null");
        }
        row
    };
    rows.into_iter().map(known).collect()
}

#[test]
#[ignore = "takes minutes; cargo xtask fleet runs it"]
fn ballista_gives_equal_rows() {
    let programs = ["ballista-scheduler", "ballista-executor", "ballista-cli"].map(find_program);
    let [Some(scheduler), Some(executor), Some(client)] = programs else {
        return skip("Ballista is not installed");
    };
    let Some(engine) = engines().first().copied() else { return };
    let session = Session::new();
    several_days(&session);
    let cluster = Cluster::start(&session, &scheduler, &executor);
    for question in QUESTIONS {
        let text = of_kept(&session, "sql", &[&["--engine", "ballista"], question].concat()).stdout;
        std::fs::write(session.path("question.sql"), text).expect("the folder can be written");
        let mut ask = Command::new("timeout");
        ask.arg("600").arg(&client).args(["--host", "127.0.0.1", "--port"]).arg(cluster.port.to_string());
        ask.args(["--format", "json", "-q", "-f", "question.sql"]).current_dir(session.path(""));
        let outcome = Outcome::of(ask.stdin(Stdio::null()).output().expect("timeout is there"));
        // The client ends with status 0 after an error too. The last answer is that of the question.
        let answer = outcome.stdout.lines().rfind(|line| line.starts_with('['));
        let answer = answer.unwrap_or_else(|| panic!("{question:?}: {outcome:#?}"));
        let answer: Vec<Value> = serde_json::from_str(answer).expect("it is JSON");
        let rows = answer.iter().map(without_strings_of_digits);
        assert_eq!(without_nothing(rows), without_nothing(asked(&session, engine, question)), "{question:?}");
    }
}
