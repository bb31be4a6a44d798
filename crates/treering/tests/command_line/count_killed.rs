//! The files of a count that remain when the program or `treering` itself is killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_testing::programs::{LINES, NESTED, Program, SITES};
use treering_translator::{ContextTree, salvage};

use crate::session::{Outcome, Session, program, quoted, words};

/// Calls of `leaf` for each line.
const CALLS: u64 = 10_000;

/// `treering count` of a program that writes lines.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(session: &Session, arguments: &[&str]) -> Self {
        Self::of(session, LINES, &[], arguments)
    }

    fn of(session: &Session, counted: Program, options: &[&str], arguments: &[&str]) -> Self {
        let path = counted.build().expect("the compiler is installed");
        let mut all = words(&["count"]);
        all.extend(words(options));
        all.push("--".into());
        all.extend(program(&path, arguments));
        let child = session.command(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("treering runs");
        let lines = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Self { child, lines }
    }

    /// Reads lines up to the one with a number.
    fn read_to(&mut self, wanted: u64) {
        self.read_to_line(&format!("{wanted} "));
    }

    /// Reads lines up to one that begins so.
    fn read_to_line(&mut self, wanted: &str) {
        let mut line = String::new();
        while !line.starts_with(wanted) {
            line.clear();
            assert!(self.lines.read_line(&mut line).expect("it can be read") > 0, "line {wanted} comes");
        }
    }

    /// How many lines the last of those that begin so says, when all have been written.
    fn last_line(&mut self, who: &str) -> u64 {
        let mut text = String::new();
        self.lines.read_to_string(&mut text).expect("it can be read");
        let last =
            text.lines().rev().find_map(|line| line.strip_prefix(who)?.strip_prefix(' ')?.parse().ok());
        last.unwrap_or(0)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// The number of the program's process.
    fn program(&self) -> Pid {
        let children = format!("/proc/{0}/task/{0}/children", self.pid());
        let text = std::fs::read_to_string(children).expect("it runs");
        Pid::from_raw(text.trim().parse().expect("it has one child"))
    }

    /// Kills `treering`, and waits until the program is gone as well.
    fn kill_treering(&mut self) {
        let program = self.program();
        kill(self.pid(), Signal::SIGKILL).expect("it runs");
        self.child.wait().expect("it is our child");
        let deadline = Instant::now() + Duration::from_secs(20);
        while kill(program, None).is_ok() && !is_zombie(program) {
            assert!(Instant::now() < deadline, "the program dies with its tracer");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A process whose parent has not waited for it yet, as where no `init` runs.
fn is_zombie(pid: Pid) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// The executions of the only block of `leaf`.
fn calls_of_leaf(session: &Session, file: &str) -> u64 {
    let report = session.json("--flat", &[file]);
    let rows = report["functions"].as_array().expect("there are functions");
    let leaf = rows.iter().find(|row| row["function"] == "leaf").expect("leaf was called");
    leaf["calls"].as_u64().expect("calls are a number")
}

#[test]
fn a_killed_treering_leaves_the_counts_until_then() {
    let session = Session::new();
    let mut running = Running::start(&session, &[]);
    running.read_to(30);
    running.kill_treering();
    let calls = calls_of_leaf(&session, "treering.trg.counting");
    assert!(calls >= 30 * CALLS, "{calls}");
    let outcome = session.run(&words(&["report", "treering.trg.counting"]));
    assert!(outcome.stderr.contains("cut short"), "{outcome:#?}");
    let missing = session.run(&words(&["report"]));
    assert!(missing.error().contains("treering report treering.trg.counting"), "{missing:#?}");
}

#[test]
fn threads_that_had_ended_and_those_that_wait_are_left_exactly() {
    let session = Session::new();
    let mut running = Running::start(&session, &["5", "thread"]);
    running.read_to(5);
    // Each of its calls was made before the line was written.
    let live = session.run(&words(&["report", "treering.trg.counting"]));
    assert!(live.stderr.contains("still runs"), "{live:#?}");
    assert_eq!(calls_of_leaf(&session, "treering.trg.counting"), 6 * CALLS);
    running.kill_treering();
    assert_eq!(calls_of_leaf(&session, "treering.trg.counting"), 6 * CALLS);
    // The next count keeps what this one has left.
    let outcome = session.run(&words(&["count", "-q", "--", "true"]));
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(!session.path("treering.trg.counting").exists());
    assert_eq!(calls_of_leaf(&session, "treering.trg.counting.old"), 6 * CALLS);
}

#[test]
fn calls_through_pointers_are_left_exactly() {
    let session = Session::new();
    let mut running = Running::of(&session, SITES, &[], &["3", "0", "wait"]);
    running.read_to_line("- rounds");
    running.kill_treering();
    let calls = session.json("--callgraph", &["treering.trg.counting"]);
    let rows = calls["functions"].as_array().expect("there are functions");
    for function in ["first", "second", "third"] {
        let row = rows.iter().find(|row| row["function"] == function).expect("it was called");
        let callers = row["callers"].as_array().expect("it has callers");
        let calls: Vec<_> = callers.iter().map(|caller| caller["calls"].as_u64()).collect();
        assert_eq!(calls, [Some(1); 40], "{function}");
    }
}

/// Calls `leaf` once more in each child than in the one before, and then waits.
const CHILDREN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static void leaf(void) { __asm__ volatile(""); }
int main(int count, char **arguments)
{
    for (int child = 1; child <= atoi(arguments[1]); child++) {
        if (fork() == 0) {
            for (int call = 0; call < child; call++)
                leaf();
            _exit(0);
        }
        wait(NULL);
    }
    puts("- all");
    fflush(stdout);
    pause();
}
"#;

#[test]
fn processes_that_had_ended_are_left_exactly_each_on_its_own() {
    const COUNT: u64 = 60;
    let session = Session::new();
    std::fs::write(session.path("children.c"), CHILDREN).expect("it can be written");
    let path = session.path("children");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-o"]).arg(&path).arg(session.path("children.c"));
    assert!(compiler.status().expect("the compiler is installed").success());
    let mut all = words(&["count", "--"]);
    all.extend(program(&path, &[&COUNT.to_string()]));
    let child = session.command(&all).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("treering runs");
    let lines = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let mut running = Running { child, lines };
    running.read_to_line("- all");
    // Once while it is written, once when it is as it stays.
    for is_killed in [false, true] {
        if is_killed {
            running.kill_treering();
        }
        assert_eq!(calls_of_leaf(&session, KEPT), COUNT * (COUNT + 1) / 2);
        let kept = salvage(&session.path(KEPT)).expect("it can be read");
        let pids: std::collections::BTreeSet<i32> = kept.programs.iter().map(|program| program.pid).collect();
        assert_eq!(pids.len() as u64, COUNT + 1);
    }
}

#[test]
fn a_killed_program_is_counted_to_its_end() {
    let session = Session::new();
    let mut running = Running::start(&session, &["5"]);
    running.read_to(5);
    kill(running.program(), Signal::SIGKILL).expect("it runs");
    let outcome = Outcome::of(running.child.wait_with_output().expect("it is our child"));
    assert_eq!(outcome.shell_status(), 128 + 9, "{outcome:#?}");
    assert!(outcome.stderr.contains("ended by SIGKILL"), "{outcome:#?}");
    assert_eq!(calls_of_leaf(&session, "treering.trg"), 5 * CALLS);
    assert!(!session.path("treering.trg.counting").exists(), "the result is in the file");
}

/// The directory that holds what is counted.
const KEPT: &str = "treering.trg.counting";

/// The trees that can be read, of which each has the instructions that its thread's blocks have.
fn kept_trees(session: &Session) -> Vec<ContextTree> {
    let salvaged = salvage(&session.path(KEPT)).expect("it can be read");
    let mut trees = Vec::new();
    for counts in &salvaged.programs {
        for thread in &counts.threads {
            let mut alone = counts.clone();
            alone.threads = vec![thread.clone()];
            let tree = thread.tree.clone().expect("trees are kept");
            assert_eq!(tree.instructions(), alone.instructions(), "thread {}", thread.tid);
            assert!(tree.nodes.iter().all(|node| node.instructions.cast_signed() >= 0), "{tree:?}");
            trees.push(tree);
        }
    }
    let wrong = salvaged.not_counted.iter().find(|note| !note.detail.starts_with("it had not ended"));
    assert_eq!(wrong, None);
    trees
}

/// The calls of `leaf` by the chain of the program's own functions above it, with how often the chain is
/// there, as `report --tree` shows them.
fn chains_of_leaf(session: &Session) -> Vec<(String, u64)> {
    let report = session.json("--tree", &["--min", "0", "--depth", "200", KEPT]);
    let mut chain: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for row in report["nodes"].as_array().expect("there are nodes") {
        let (Some(depth), Some(function)) = (row["depth"].as_u64(), row["function"].as_str()) else {
            continue;
        };
        chain.truncate(depth as usize);
        chain.push(function);
        if function == "leaf" {
            let own = ["main", "work", "down", "bottom", "leaf"];
            let names: Vec<_> = chain.iter().copied().filter(|name| own.contains(name)).collect();
            found.push((names.join(" "), row["calls"].as_u64().unwrap_or(0)));
        }
    }
    found
}

#[test]
fn a_killed_treering_leaves_the_tree() {
    let session = Session::new();
    let mut running = Running::of(&session, NESTED, &["--tree"], &["3", "0"]);
    running.read_to_line("parent 30");
    assert_eq!(kept_trees(&session).len(), 1, "while it runs");
    running.kill_treering();
    let most = (running.last_line("parent").max(30) + 1) * CALLS + 1;
    kept_trees(&session);
    let chains = chains_of_leaf(&session);
    let [(chain, calls)] = &chains[..] else { panic!("{chains:?}") };
    assert_eq!(chain, "main down down down bottom leaf");
    assert!((30 * CALLS..=most).contains(calls), "{calls} {most}");
    let outcome = session.run(&words(&["report", KEPT]));
    assert!(outcome.stderr.contains("in the trees"), "{outcome:#?}");
}

#[test]
fn a_killed_treering_leaves_the_trees_of_threads_that_had_ended() {
    let session = Session::new();
    let mut running = Running::of(&session, NESTED, &["--tree"], &["4", "0", "thread"]);
    running.read_to_line("parent 10");
    running.kill_treering();
    assert_eq!(kept_trees(&session).len(), 3);
    let chains = chains_of_leaf(&session);
    let of_threads: Vec<_> = chains.iter().filter(|(chain, _)| chain.starts_with("work")).collect();
    let calls: u64 = of_threads.iter().map(|(_, calls)| calls).sum();
    assert_eq!(calls, 2 * CALLS, "{chains:?}");
    assert!(
        of_threads.iter().all(|(chain, _)| chain == "work down down down down bottom leaf"),
        "{chains:?}"
    );
    assert!(
        chains.iter().any(|(chain, calls)| chain.starts_with("main") && *calls >= 10 * CALLS),
        "{chains:?}"
    );
}

#[test]
fn a_killed_treering_leaves_the_trees_of_parent_and_child() {
    let session = Session::new();
    let mut running = Running::of(&session, NESTED, &["--tree"], &["2", "0", "fork"]);
    running.read_to_line("child 10");
    running.read_to_line("parent 1");
    running.kill_treering();
    let trees = kept_trees(&session);
    let chains = chains_of_leaf(&session);
    assert_eq!(trees.len(), 2);
    assert!(chains.iter().all(|(chain, _)| chain == "main down down bottom leaf"), "{chains:?}");
    assert!(chains.iter().map(|(_, calls)| calls).sum::<u64>() > 11 * CALLS, "{chains:?}");
}

#[test]
fn a_killed_treering_leaves_a_tree_that_is_deeper_than_its_first_frames() {
    const DEPTH: usize = 100_000;
    let session = Session::new();
    let mut running = Running::of(&session, NESTED, &["--tree"], &[&DEPTH.to_string(), "0"]);
    running.read_to_line("parent 3");
    running.kill_treering();
    let trees = kept_trees(&session);
    let mut calls = std::collections::HashMap::new();
    for node in &trees[0].nodes {
        let (nodes, sum) = calls.entry(node.address).or_insert((0, 0));
        *nodes += 1;
        *sum += node.calls;
    }
    assert!(
        calls.values().any(|&found| found == (DEPTH, DEPTH as u64)),
        "`down` was called once at each depth"
    );
}

#[test]
fn trees_can_be_read_at_any_moment() {
    let session = Session::new();
    let mut running = Running::of(&session, NESTED, &["--tree"], &["20", "0", "fork"]);
    running.read_to_line("child 1");
    let mut before = 0;
    for _ in 0..50 {
        let trees = kept_trees(&session);
        let calls = trees.iter().flat_map(|tree| &tree.nodes).map(|node| node.calls).max();
        assert!(calls >= Some(before), "{calls:?} {before}");
        before = calls.unwrap_or(0);
    }
    assert!(before > CALLS, "{before}");
    running.kill_treering();
}

#[test]
fn a_disk_that_gets_full_harms_no_program_whose_tree_is_kept() {
    let nested = NESTED.build().expect("the compiler is installed");
    // Trees leave 64 MB of it to others: too little room when the tree has grown, and from the start on.
    for filled in ["224M", "290M"] {
        let session = Session::new();
        let script = format!(
            "mount -t tmpfs -o size=300m tmpfs . 2>/dev/null && cd \"$PWD\" || exit 99
             {} count --tree -- sh -c 'head -c {filled} /dev/zero > filler; exec \"$0\" 200000 1 thread' {}
             exit $(($? + $(ls -d *.counting 2>/dev/null | wc -l)))",
            quoted(env!("CARGO_BIN_EXE_treering")),
            quoted(&nested)
        );
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script]);
        let output = command.current_dir(session.path("")).output().map(Outcome::of);
        let Some(outcome) =
            output.ok().filter(|outcome| !outcome.stderr.contains("unshare") && outcome.shell_status() != 99)
        else {
            crate::skip("file systems cannot be mounted here");
            return;
        };
        assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
        assert!(outcome.stdout.contains("parent 1"), "{outcome:#?}");
        assert!(outcome.stderr.contains("all instructions were counted"), "{outcome:#?}");
    }
}
