//! `treering view --live`: the page of a running program, and the admission to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use treering_testing::programs::installed;

use crate::runtime::{Program, Running};
use crate::session::Session;
use crate::skip;
use crate::view::driver;
use crate::view_after::{on_desktop, told_by_browser};

/// `treering view --live`, ended with the test.
struct Server {
    child: Child,
    /// Open until the end, for it has things to say.
    _said: BufReader<ChildStderr>,
    address: String,
}

impl Server {
    fn start(session: &Session, target: &str) -> Self {
        Self::start_as(session.command(&["view", "--no-open", "--live", target]))
    }

    fn start_as(mut command: Command) -> Self {
        let mut child = command.spawn().expect("treering runs");
        let mut said = BufReader::new(child.stderr.take().expect("it is a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it writes text");
        let address = line.find("http://").map(|at| line[at..].trim().to_owned());
        Self { child, _said: said, address: address.unwrap_or_else(|| panic!("no address: {line}")) }
    }

    /// `127.0.0.1:PORT`, and the path behind it.
    fn place(&self) -> (&str, &str) {
        let rest = self.address.strip_prefix("http://").expect("it is not encrypted");
        rest.split_at(rest.find('/').expect("it has a path"))
    }

    /// The answer to a request line and a host.
    fn ask(&self, line: &str, host: &str, more: &str) -> String {
        let mut connection = TcpStream::connect(self.place().0).expect("it listens");
        write!(connection, "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n")
            .expect("it can be asked");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("it answers text");
        answer
    }

    /// How much memory it has.
    fn resident_kilobytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux says it");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    fn end(mut self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).expect("it runs");
        assert!(self.child.wait().expect("it is our child").success(), "Ctrl-C ends it without an error");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn running(arguments: &[&str]) -> Option<(Session, Running)> {
    let session = Session::new();
    let program = Program::Calls.compile(&session)?;
    let running = Running::start(&session, &program, arguments);
    Some((session, running))
}

#[test]
fn only_requests_with_the_address_get_the_page() {
    let Some((session, _running)) = running(&["10", "wait"]) else { return };
    let server = Server::start(&session, "treering.trg");
    let (host, path) = server.place();
    let port = host.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).expect("it has a port");
    let status = |answer: &str| answer.split(' ').nth(1).unwrap_or_default().to_owned();
    let page = server.ask(&format!("GET {path}"), host, "");
    assert_eq!(status(&page), "200", "{page}");
    assert!(page.contains("connect-src 'self'; ") && page.contains("default-src 'none'"));
    for header in
        ["Cache-Control: no-store", "X-Frame-Options: DENY", "Cross-Origin-Resource-Policy: same-origin"]
    {
        assert!(page.split("\r\n\r\n").next().is_some_and(|head| head.contains(header)), "{header}");
    }
    let by_name = server.ask(&format!("GET {path}"), &format!("localhost:{port}"), "");
    assert_eq!(status(&by_name), "200", "a forwarded port is reached by that name");
    let token = path.trim_matches('/');
    let other = format!("/{}{}/", if token.starts_with('0') { '1' } else { '0' }, &token[1..]);
    for (line, host, more, expected) in [
        ("GET /".to_owned(), host, "", "404"),
        (format!("GET {other}"), host, "", "404"),
        (format!("GET {other}data?after=0"), host, "", "404"),
        (format!("GET /{token}"), host, "", "404"),
        (format!("GET {path}../{token}/other"), host, "", "404"),
        (format!("GET {path}data?after=x"), host, "", "404"),
        (format!("GET {path}"), "evil.example", "", "403"),
        (format!("GET {path}data?after=0"), &format!("evil.example:{port}"), "", "403"),
        (format!("GET {path}data?after=0"), host, "Sec-Fetch-Site: cross-site\r\n", "403"),
        (format!("POST {path}"), host, "", "405"),
    ] {
        let answer = server.ask(&line, host, more);
        assert_eq!(status(&answer), expected, "{line} of {host}: {answer}");
        assert!(!answer.contains("solve"), "{answer}");
    }
    // It listens on this machine only: see proc_net_tcp(5), whose addresses are hexadecimal.
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
    let listening: Vec<&str> =
        table.lines().filter(|line| line.contains(&format!(":{port:04X} 00000000:0000 0A"))).collect();
    assert!(listening.len() == 1 && listening[0].contains(" 0100007F:"), "{listening:?}");
    server.end();
}

/// Anyone on this machine can find the port.
#[test]
fn requests_of_strangers_do_no_harm() {
    let Some((session, _running)) = running(&["10", "wait"]) else { return };
    let server = Server::start(&session, "treering.trg");
    let (host, path) = server.place();
    let status = |answer: &str| answer.split(' ').nth(1).unwrap_or_default().to_owned();
    let sent = |bytes: &[u8]| {
        let mut connection = TcpStream::connect(host).expect("it listens");
        // It may have answered, and closed the connection, before all is written.
        let _ = connection.write_all(bytes);
        connection
    };
    let answered = |mut connection: TcpStream| {
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer);
        status(&String::from_utf8_lossy(&answer))
    };
    let is_there = || assert_eq!(status(&server.ask(&format!("GET {path}"), host, "")), "200");
    let get = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n");
    for length in ["1", "18446744073709551615", "99999999999999999999999", "-1", "x"] {
        let head = format!("{get}Content-Length: {length}\r\n\r\n");
        assert_eq!(answered(sent(head.as_bytes())), "413", "{length}");
    }
    assert_eq!(answered(sent(format!("{get}Transfer-Encoding: chunked\r\n\r\nff\r\n").as_bytes())), "413");
    for line in [format!("X: {}\r\n", "a".repeat(1 << 20)), "X: a\r\n".repeat(200)] {
        assert_eq!(answered(sent(format!("{get}{line}\r\n").as_bytes())), "431");
    }
    assert_eq!(answered(sent(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")), "400");
    is_there();
    // One is answered, and nothing is kept of those behind it.
    let before = server.resident_kilobytes();
    let mut many = sent(format!("{get}\r\n").repeat(10_000).as_bytes());
    let mut answer = String::new();
    let _ = many.read_to_string(&mut answer);
    assert!(answer.matches("HTTP/1.1 200").count() <= 1);
    is_there();
    assert!(server.resident_kilobytes() < before + (64 << 10), "{before} KB before");
    // More connections than a process may have files, whose requests never end.
    let mut slow: Vec<TcpStream> = Vec::new();
    for _ in 0..900 {
        let Ok(mut connection) = TcpStream::connect(host) else { break };
        let _ = connection.write_all(b"GET / HT");
        slow.push(connection);
    }
    assert!(slow.len() > 500, "{} connections", slow.len());
    is_there();
    for connection in &slow {
        let _ = connection.shutdown(std::net::Shutdown::Write);
    }
    is_there();
    // Signals end it, whatever its connections wait for.
    let _waiting: Vec<TcpStream> = (0..40).map(|_| sent(get.as_bytes())).collect();
    drop(slow);
    server.end();
}

#[test]
fn the_browser_is_led_to_the_page_without_naming_it_in_an_argument() {
    let Some(perl) = installed("perl") else { return skip("perl stands for a browser; it is not installed") };
    let Some((session, _running)) = running(&["10", "wait"]) else { return };
    // The file that a browser is given, its mode, the signals that the browser ignores, and the file's contents. A
    // shell would choose its signals itself.
    let browser = format!(
        "#!{}\nprintf {{$to}} \"%s\\n%o\\n\", \"@ARGV\", (stat $ARGV[0])[2] & 0777;\n\
         open(my $status, '<', '/proc/self/status');\nprint {{$to}} grep {{ /^SigBlk/ }} <$status>;\n\
         open(my $page, '<', $ARGV[0]);\nprint {{$to}} <$page>;\n",
        perl.display()
    );
    let browser = browser.replacen('\n', "\nopen(my $to, '>', $ENV{TOLD});\n", 1) + "close $to;\n";
    let mut command = session.command(&["view", "--live", "treering.trg"]);
    on_desktop(&session, &browser, &mut command);
    let server = Server::start_as(command);
    let told = told_by_browser(&session, "the page</a>\n");
    let lines: Vec<&str> = told.lines().collect();
    assert!(Path::new(lines[0]).is_file() && lines[1] == "600", "{told}");
    assert!(lines[2].ends_with("0000000000000000"), "it hears every signal: {told}");
    assert!(lines[3].contains(&format!("url={}\"", server.address)), "{told}");
    let file = lines[0].to_owned();
    server.end();
    assert!(!Path::new(&file).exists(), "it is gone with the server");
}

#[test]
fn messages_are_sent_once_to_each_version() {
    let Some((session, running)) = running(&["10", "wait"]) else { return };
    let server = Server::start(&session, &running.pid().to_string());
    let (host, path) = server.place();
    let news = |after: u64| -> Value {
        let answer = server.ask(&format!("GET {path}data?after={after}"), host, "");
        let body = answer.split_once("\r\n\r\n").expect("it has a body").1;
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
    };
    let first = news(0);
    assert_eq!((&first["state"], &first["problem"]), (&"running".into(), &Value::Null));
    assert_eq!(first["page"]["head"]["shape"], "tree", "{first}");
    assert!(first["page"]["tree"].as_str().is_some_and(|tree| tree.len() > 100));
    let version = first["version"].as_u64().expect("it has a number");
    let second = news(version);
    assert!(second["version"].as_u64() >= Some(version), "{second}");
    assert_eq!(second["version"].as_u64() == Some(version), second["page"].is_null(), "{second}");
}

#[test]
fn a_profile_that_cannot_be_followed_is_refused() {
    let session = Session::new();
    std::fs::write(session.path("a.folded"), "main 5\n").expect("the folder can be written");
    session.output(&["import", "a.folded", "-o", "done.trg"]);
    for (target, said) in [
        ("4194304", "there is no process 4194304"),
        ("1", "process 1"),
        ("missing.trg", "no such file"),
        ("a.folded", "not the file of an instrumented program"),
        ("done.trg", "the program has ended"),
    ] {
        let outcome = session.run(&["view", "--live", target]);
        // The open files of process 1 are visible to its owner only.
        assert!(outcome.error().contains(said), "{target}: {outcome:#?}");
        assert!(outcome.stderr.contains("hint: "), "{target}: {outcome:#?}");
    }
    let outcome = session.run(&["view", "--live", "1", "-o", "page.html"]);
    assert_eq!(outcome.shell_status(), 2, "a page that follows is no file: {outcome:#?}");
}

#[test]
fn a_browser_follows_a_program_to_its_end() {
    let Some(mut command) = driver("live.mjs") else { return };
    let Some((session, mut running)) = running(&["1", "forever"]) else { return };
    let server = Server::start(&session, &running.pid().to_string());
    let mut browser = command
        .arg(&server.address)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node runs");
    let mut said = BufReader::new(browser.stdout.take().expect("it is a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it writes text");
    running.kill();
    let mut last = String::new();
    said.read_to_string(&mut last).expect("it writes text");
    let ended = browser.wait_with_output().expect("it is our child");
    let problems = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success() && line == "following\n", "{line}{last}{problems}");
    let last: Value = serde_json::from_str(&last).expect("it prints JSON");
    let report = session.json("--flat", &[]);
    let functions = report["functions"].as_array().expect("it lists functions");
    let solve = functions.iter().find(|one| one["function"] == "solve").expect("it was called");
    assert_eq!(last["calls"], solve["calls"], "the last picture has what the program left");
    server.end();
}

#[test]
fn versions_that_renumber_functions_keep_the_selection() {
    let Some(mut command) = driver("versions.mjs") else { return };
    let session = Session::new();
    // The second begins with functions that the first has last, or not at all.
    let versions = [
        ("first", "main;work;copy 500\nmain;log 300\nmain;idle 200\n"),
        (
            "next",
            "start;idle 70\nmain;idle 600\nmain;log;copy 33\nmain;work;copy;move 1500\nmain;work;copy 11\n",
        ),
    ];
    for (name, stacks) in versions {
        std::fs::write(session.path(&format!("{name}.folded")), stacks).expect("the folder can be written");
        session.output(&["view", "--no-open", &format!("{name}.folded")]);
    }
    let ended = command.args(["first.html", "next.html"]).current_dir(session.path("")).output();
    let ended = ended.expect("node runs");
    let problems = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{problems}");
    let shown: Value = serde_json::from_slice(&ended.stdout).expect("it prints JSON");
    let report = session.output(&["report", "next.folded", "--flat", "--json", "--ignore", "^idle$"]);
    let report: Value = serde_json::from_str(&report).expect("reports are JSON");
    let functions = report["functions"].as_array().expect("it lists functions");
    assert_eq!(functions.len(), 6, "{report}");
    for known in functions {
        let rows = shown.as_array().expect("it lists functions").iter();
        let row = rows.clone().find(|row| row["function"] == known["function"]).expect("the page has it");
        assert_eq!((&row["self"], &row["total"]), (&known["self_cost"], &known["total_cost"]), "{row}");
    }
}
