//! `treering stat`: counts of events, compared with those of `perf stat`.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use treering_testing::programs::installed;

use crate::session::{Outcome, Session, words};
use crate::skip;

/// Runs `stat --json` and returns the document with the outcome.
fn stat(session: &Session, options: &[&str], program: &[&str]) -> (Value, Outcome) {
    let mut all = words(&["stat", "--json"]);
    all.extend(words(options));
    all.push("--".into());
    all.extend(words(program));
    let outcome = session.run(&all);
    let document = serde_json::from_str(&outcome.stderr);
    (document.unwrap_or_else(|error| panic!("not JSON: {error}\n{outcome:#?}")), outcome)
}

/// An event's row.
fn event<'a>(document: &'a Value, name: &str) -> &'a Value {
    let events = document["events"].as_array().expect("a list of events");
    events.iter().find(|event| event["event"] == name).unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

/// The mean of an event by the kernel's own count; nothing if this user may not count it.
fn counted(document: &Value, name: &str) -> Option<f64> {
    let event = event(document, name);
    (event["source"] == "perf").then(|| event["value"]["mean"].as_f64().expect("a number"))
}

/// The counts of `perf stat`, by event; nothing if it does not count here.
fn perf_stat(events: &str, program: &[&str]) -> Option<HashMap<String, f64>> {
    let perf = installed("perf")?;
    let run = Command::new(perf).args(["stat", "-x", ";", "-e", events, "--"]).args(program).output().ok()?;
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(';').collect();
        Some(((*cells.get(2)?).to_owned(), cells[0].parse().ok()?))
    });
    let counts: HashMap<String, f64> = rows.collect();
    (run.status.success() && !counts.is_empty()).then_some(counts)
}

/// Starts three programs and writes four lines: system calls of four processes, always the same number.
const SHELL: [&str; 3] = ["sh", "-c", "for word in a b c; do /bin/echo $word; done; echo d"];

#[test]
fn perf_stat_counts_the_same_events() {
    let session = Session::new();
    let events =
        "raw_syscalls:sys_enter,syscalls:sys_enter_write,syscalls:sys_enter_execve,page-faults,minor-faults";
    let Some(theirs) = perf_stat(events, &SHELL) else { return skip("perf counts no tracepoints here") };
    let (ours, _) = stat(&session, &["-e", events], &SHELL);
    // The program does these whatever the machine does: each word is written by a child, but for the last.
    for (name, least) in [("syscalls:sys_enter_write", 4.0), ("syscalls:sys_enter_execve", 3.0)] {
        assert_eq!(counted(&ours, name), Some(theirs[name]), "{name}: {ours:#}");
        assert!(theirs[name] >= least, "{name}: {theirs:?}");
    }
    // Signals of children come at any time, and have calls of their own.
    // Addresses are random, and so is the number of pages by a few.
    for name in ["raw_syscalls:sys_enter", "page-faults", "minor-faults"] {
        let count = counted(&ours, name).expect("perf counts it too");
        assert!((count - theirs[name]).abs() <= 0.1 * theirs[name], "{name}: {count}, perf {}", theirs[name]);
    }
}

#[test]
fn an_event_that_this_machine_lacks_has_no_number() {
    let session = Session::new();
    let (document, _) = stat(&session, &["-e", "page-faults,rffffffffffffffff"], &["true"]);
    let lacking = event(&document, "rffffffffffffffff");
    assert!(lacking["state"] == "not supported here" || lacking["state"] == "not permitted", "{lacking:#}");
    assert_eq!((&lacking["value"], &lacking["rate"]), (&Value::Null, &Value::Null));
    assert_ne!(event(&document, "page-faults")["value"], Value::Null);
}

#[test]
fn a_switch_that_occurs_in_the_kernel_only_is_not_0_in_user_mode() {
    let session = Session::new();
    let (document, _) = stat(&session, &["-e", "context-switches:u"], &["sleep", "0.01"]);
    assert_eq!(event(&document, "context-switches:u")["state"], "occurs in the kernel only");
}

#[test]
fn several_runs_have_a_mean_between_its_bounds() {
    let session = Session::new();
    let (document, _) = stat(&session, &["-r", "4", "-e", "task-clock"], &["true"]);
    let clock = event(&document, "task-clock");
    let samples: Vec<f64> =
        clock["samples"].as_array().expect("samples").iter().filter_map(Value::as_f64).collect();
    let mean = clock["value"]["mean"].as_f64().expect("a mean");
    assert_eq!(samples.len(), 4);
    assert!((samples.iter().sum::<f64>() / 4.0 - mean).abs() < 1.0, "{clock:#}");
    let [low, high] = ["low", "high"].map(|bound| clock["value"][bound].as_f64().expect("a bound"));
    assert!(low <= mean && mean <= high, "{clock:#}");
    assert_eq!((&document["runs"], &document["ends"][3]), (&Value::from(4), &Value::from("exit 0")));
}

#[test]
fn a_peak_of_memory_is_the_programs_own() {
    let session = Session::new();
    let large = "python3 -c 'import time; x = bytearray(200 << 20)'";
    let (document, _) = stat(&session, &[], &["sh", "-c", large]);
    let peak = document["peak_bytes"]["mean"].as_f64().expect("more memory than this program has");
    assert!((200e6..300e6).contains(&peak), "{peak}");
    // It has less memory than the process that becomes it.
    let (document, _) = stat(&session, &["-r", "2"], &["true"]);
    let notes = document["notes"].to_string();
    match document["peak_bytes"]["mean"].as_f64() {
        None => assert!(notes.contains("peak memory is at most"), "{notes}"),
        Some(peak) => assert!(peak < 2e6, "{peak}"),
    }
}

#[test]
fn an_interrupted_run_has_no_part_in_the_means_of_others() {
    let session = Session::new();
    // The second run asks for the end, as Ctrl-C does.
    let script = "echo >> runs; if [ $(wc -l < runs) = 2 ]; then kill -INT $PPID; exec sleep 60; fi";
    let (document, outcome) = stat(&session, &["-r", "5"], &["sh", "-c", script]);
    assert!(!outcome.status.success(), "{outcome:#?}");
    assert_eq!((&document["runs"], &document["ends"]), (&1.into(), &serde_json::json!(["exit 0"])));
    assert!(
        document["notes"].to_string().contains("interrupted in run 2 of 5, which is left out"),
        "{document:#}"
    );
}

#[test]
fn intervals_add_up_to_the_whole() {
    let session = Session::new();
    let script = "for word in a b c d; do /bin/true; sleep 0.06; done";
    let arguments = ["stat", "--json", "-I", "50", "-e", "page-faults,task-clock", "--", "sh", "-c", script];
    let outcome = session.run(&arguments);
    let lines: Vec<Value> =
        outcome.stderr.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    let (whole, parts) = lines.split_last().expect("a line for the whole run");
    if event(whole, "page-faults")["source"] != "perf" {
        return skip("the kernel lets this user count nothing");
    }
    assert!(parts.len() >= 2, "{outcome:#?}");
    for name in ["page-faults", "task-clock"] {
        let sum: f64 =
            parts.iter().map(|part| event(part, name)["value"]["mean"].as_f64().unwrap_or(0.0)).sum();
        let whole = event(whole, name)["value"]["mean"].as_f64().expect("counted");
        assert!((sum - whole).abs() < 0.5, "{name}: {sum} {whole}");
    }
    assert!(parts.windows(2).all(|pair| pair[0]["until_ns"] == pair[1]["from_ns"]), "{parts:#?}");
}

#[test]
fn the_programs_own_end_is_passed_on() {
    let session = Session::new();
    let (document, outcome) = stat(&session, &[], &["sh", "-c", "exit 3"]);
    assert_eq!((outcome.shell_status(), &document["ends"][0]), (3, &Value::from("exit 3")));
    let (document, outcome) = stat(&session, &["-r", "5"], &["sh", "-c", "kill -INT $$"]);
    assert_eq!((outcome.shell_status(), &document["ends"][0]), (130, &Value::from("SIGINT")));
    // An interrupt ends the runs that were still to come.
    assert_eq!(document["runs"], 1, "{document:#}");
}

#[test]
fn a_running_process_is_counted_with_the_children_that_it_makes() {
    let session = Session::new();
    let script = "read go; for word in a b c; do /bin/true; done; read end";
    let mut child = Command::new("sh");
    let mut child = child.args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell");
    let pid = child.id().to_string();
    let mut input = child.stdin.take().expect("a pipe");
    let arguments = ["stat", "-p", &pid, "--json", "-I", "10", "-e", "page-faults,task-clock"];
    let mut counting = session.command(&arguments);
    let mut counting = counting.spawn().expect("treering runs");
    // Once an interval is there the counters are.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(counting.stderr.take().expect("a pipe")));
    let first = lines.next().expect("a line").expect("text");
    input.write_all(b"go\nend\n").expect("the shell reads");
    drop(input);
    assert!(child.wait().expect("our child").success());
    let last = lines.map_while(Result::ok).last().unwrap_or(first);
    assert!(counting.wait().expect("our child").success());
    let whole: Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!(whole["pid"].to_string(), pid, "{whole:#}");
    match counted(&whole, "page-faults") {
        // Each of the three programs has tens.
        Some(faults) => assert!(faults > 60.0, "{whole:#}"),
        None => skip("the kernel lets this user count nothing"),
    }
}

#[test]
fn bad_input_is_refused_with_a_hint() {
    let session = Session::new();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["-e", "page-faults2", "--", "true"], 1, "did you mean page-faults?"),
        (&["-e", "{cs", "--", "true"], 1, "no closing brace"),
        (&["-e", "cs,,faults", "--", "true"], 1, "empty name"),
        (&["-I", "0", "--", "true"], 2, "--interval"),
        (&["-r", "0", "--", "true"], 2, "--repeat"),
        (&["--", "/no/such/program"], 127, "check the path"),
        (&["-p", "4194304"], 1, "there is no process"),
        (&["-p", "0"], 1, "there is no process 0"),
        (&["-p", "4294967295"], 1, "there is no process"),
        (&["-o", "/no/such/folder/stat", "--", "true"], 1, "mkdir"),
    ];
    for (arguments, status, said) in cases {
        let all: Vec<&str> = ["stat"].iter().chain(*arguments).copied().collect();
        let outcome = session.run(&all);
        assert!(outcome.error().contains(said), "{arguments:?}: {outcome:#?}");
        assert_eq!(outcome.shell_status(), *status, "{arguments:?}");
    }
}

#[test]
fn a_file_of_something_else_is_not_replaced() {
    let session = Session::new();
    let run = |more: &[&str]| {
        session.run(&[&["stat", "-o", "out", "-e", "page-faults"], more, &["--", "true"]].concat())
    };
    std::fs::write(session.path("out"), "my letter").expect("a file");
    assert!(run(&[]).error().contains("--force"));
    assert_eq!(std::fs::read_to_string(session.path("out")).expect("a file"), "my letter");
    for form in [&["--force"][..], &["--csv"], &["--json"], &[]] {
        assert!(run(form).status.success(), "{form:?}");
    }
    let text = std::fs::read_to_string(session.path("out")).expect("a file");
    assert!(text.starts_with("treering stat: true") && text.contains("page-faults"), "{text}");
}

/// A table without a number, and status 0, were all that told of it.
#[test]
fn a_process_of_which_no_event_may_be_counted_is_an_error() {
    let target = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn();
    let mut target = target.expect("sleep is installed");
    // Where that user may run it.
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("its mode is set");
    let program = folder.path().join("treering");
    std::fs::copy(crate::session::treering(), &program).expect("it can be copied");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups"]).arg(program).args(["stat", "-d", "0.1", "-p"]);
    let output = command.arg(target.id().to_string()).current_dir("/").output();
    let _ = target.kill();
    let _ = target.wait();
    let outcome = match output {
        Ok(output) => Outcome::of(output),
        Err(_) => return skip("setpriv is not installed"),
    };
    if outcome.stderr.contains("setpriv:") {
        return skip("only root may become another user");
    }
    assert_eq!(outcome.shell_status(), 1, "{outcome:#?}");
    assert!(outcome.error().contains("cannot count events of process"), "{outcome:#?}");
}

/// The JSON of many functions names its view behind them.
#[test]
fn a_long_file_of_counts_is_replaced() {
    let session = Session::new();
    let run = || session.run(&["stat", "--exact", "--json", "-o", "out", "--", "ls"]);
    assert!(run().status.success());
    let length = std::fs::metadata(session.path("out")).expect("a file").len();
    assert!(length > 100_000, "it has {length} bytes only");
    let again = run();
    assert!(again.status.success(), "{again:#?}");
}

#[test]
fn threads_and_processes_add_up_to_the_run() {
    let session = Session::new();
    let events = "syscalls:sys_enter_write,page-faults,task-clock";
    if perf_stat(events, &["true"]).is_none() {
        return skip("perf counts no tracepoints here");
    }
    let (document, _) = stat(&session, &["--per-process", "-e", events], &SHELL);
    let processes = document["parts"].as_array().expect("a list of processes");
    // The shell writes one line itself, and each echo one.
    let writes: Vec<(&str, u64)> = processes
        .iter()
        .map(|part| {
            (
                part["name"].as_str().unwrap_or(""),
                part["counts"]["syscalls:sys_enter_write"].as_u64().unwrap_or(0),
            )
        })
        .collect();
    assert_eq!(writes, [("sh", 1), ("echo", 1), ("echo", 1), ("echo", 1)], "{document:#}");
    let sum = |document: &Value, event: &str| -> f64 {
        let parts = document["parts"].as_array().expect("parts");
        parts.iter().map(|part| part["counts"][event].as_f64().expect("a count")).sum()
    };
    assert_eq!(Some(sum(&document, "page-faults")), counted(&document, "page-faults"), "{document:#}");
    let path = treering_testing::programs::MANY_THREADS.build().expect("the compiler is installed");
    let program = [path.to_str().expect("a path"), "8", "2", "1"];
    let (document, _) = stat(&session, &["--per-thread", "-e", "task-clock,page-faults"], &program);
    let parts = document["parts"].as_array().expect("a list of threads");
    let workers =
        parts.iter().filter(|part| part["name"].as_str().is_some_and(|name| name.starts_with("worker-")));
    assert_eq!((parts.len(), workers.count()), (17, 16), "{document:#}");
    assert_eq!(Some(sum(&document, "page-faults")), counted(&document, "page-faults"));
    // Two events that count the same time, one of them on each processor by itself.
    let (all, whole) = (sum(&document, "task-clock"), counted(&document, "task-clock").expect("a count"));
    assert!((all - whole).abs() < 0.25 * whole, "{all} {whole}");
}

/// Threads that make threads, in a process and in a child of it: each but the first of a process sleeps five times.
const SLEEPERS: &str = "
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *sleeps(void *last) {
    pthread_t threads[3];
    for (int i = 0; !last && i < 3; i++) pthread_create(&threads[i], 0, sleeps, (void *)1);
    volatile long sum = 0;
    for (int i = 0; i < 5; i++) { for (long j = 0; j < 100000; j++) sum += j; usleep(200); }
    for (int i = 0; !last && i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
int main(void) {
    int child = fork();
    pthread_t thread;
    pthread_create(&thread, 0, sleeps, 0);
    pthread_join(thread, 0);
    if (child) wait(0);
    return 0;
}
";

/// The kernel exchanges the events of threads that follow each other on a processor, and mixed up their counts.
#[test]
fn threads_keep_their_own_counts() {
    let session = Session::new();
    let events = "syscalls:sys_enter_clock_nanosleep,task-clock,page-faults,context-switches";
    if perf_stat(events, &["true"]).is_none() {
        return skip("perf counts no tracepoints here");
    }
    let (file, built) = (session.path("sleepers.c"), session.path("sleepers"));
    std::fs::write(&file, SLEEPERS).expect("a file");
    let made = Command::new("cc").args(["-pthread", "-o"]).arg(&built).arg(&file).status();
    assert!(made.expect("the compiler is installed").success());
    let (document, _) =
        stat(&session, &["--per-thread", "-e", events], &[built.to_str().expect("a path of letters")]);
    let parts = document["parts"].as_array().expect("a list of threads");
    let sleeps = parts.iter().map(|part| part["counts"]["syscalls:sys_enter_clock_nanosleep"].as_u64());
    let mut sleeps: Vec<u64> = sleeps.map(|count| count.expect("a count")).collect();
    sleeps.sort_unstable();
    // Two first threads wait, and four threads of each process sleep.
    assert_eq!(sleeps, [0, 0, 5, 5, 5, 5, 5, 5, 5, 5], "{document:#}");
    for name in ["page-faults", "context-switches"] {
        let sum: f64 = parts.iter().filter_map(|part| part["counts"][name].as_f64()).sum();
        assert_eq!(Some(sum), counted(&document, name), "{name}: {document:#}");
    }
}

#[test]
fn metrics_have_numbers_only_where_their_events_do() {
    let session = Session::new();
    let mut all = words(&["stat", "--json", "--top-down=2", "-e", "page-faults", "--"]);
    all.extend(words(&["true"]));
    let outcome = session.run(&all);
    let Ok(document) = serde_json::from_str::<Value>(&outcome.stderr) else {
        assert!(outcome.error().contains("no table of top-down metrics"), "{outcome:#?}");
        return skip("there is no table of metrics for this processor");
    };
    let metrics = document["metrics"].as_array().expect("a list of metrics");
    assert!(metrics.len() >= 10, "{document:#}");
    let values: Vec<Option<f64>> = metrics.iter().map(|metric| metric["value"]["mean"].as_f64()).collect();
    // The four of level 1 are all slots.
    let first = metrics.iter().zip(&values).filter(|(metric, _)| metric["level"] == 1);
    match first.map(|(_, value)| *value).collect::<Option<Vec<f64>>>() {
        Some(parts) => assert!((parts.iter().sum::<f64>() - 100.0).abs() < 5.0, "{document:#}"),
        None => skip("this machine has no counters for top-down metrics"),
    }
}

/// The instructions that Valgrind sees, and its loads and stores with their bytes.
fn lackey(program: &[std::ffi::OsString]) -> Option<[u64; 5]> {
    let run = Command::new(installed("valgrind")?)
        .args(["--tool=lackey", "--trace-mem=yes"])
        .args(program)
        .output();
    let text = String::from_utf8_lossy(&run.ok()?.stderr).into_owned();
    let [mut instructions, mut loads, mut loaded, mut stores, mut stored] = [0; 5];
    for line in text.lines() {
        let bytes = || line.rsplit(',').next().and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0);
        match line.get(..2) {
            Some("I ") => instructions += 1,
            Some(" L") => (loads, loaded) = (loads + 1, loaded + bytes()),
            Some(" S") => (stores, stored) = (stores + 1, stored + bytes()),
            Some(" M") => {
                (loads, loaded) = (loads + 1, loaded + bytes());
                (stores, stored) = (stores + 1, stored + bytes());
            }
            _ => {}
        }
    }
    (instructions > 0).then_some([instructions, loads, loaded, stores, stored])
}

/// A program without a C library, which would choose other code under Valgrind: 1000 rounds of loads and stores of several
/// sizes, a call, a branch and floating-point numbers.
const ROUNDS: &str = "
        .globl _start
        .bss
        .balign 64
cell:   .skip 64
        .text
twice:  add %rax, %rax
        ret
_start: mov $1000, %ecx
        lea cell(%rip), %rdi
1:      mov (%rdi), %rax
        mov %eax, 8(%rdi)
        mov %al, 12(%rdi)
        addl $1, 16(%rdi)
        movups 32(%rdi), %xmm1
        movups %xmm1, 48(%rdi)
        push %rax
        pop %rdx
        call twice
        addsd %xmm1, %xmm0
        test $1, %cl
        jz 2f
        movzwl (%rdi), %eax
2:      dec %ecx
        jnz 1b
        mov $60, %eax
        xor %edi, %edi
        syscall
";

/// Sorting and floating-point numbers as a compiler translates them, without a C library as well.
const SORTS: &str = "
static unsigned long numbers[256]; static double sums[256]; static char bytes[256];
void _start(void) {
    unsigned long seed = 1; double sum = 0;
    for (int i = 0; i < 256; i++) { seed = seed * 6364136223846793005u + 1; numbers[i] = seed >> 33; }
    for (int i = 1; i < 256; i++)
        for (int j = i; j > 0 && numbers[j - 1] > numbers[j]; j--) {
            unsigned long other = numbers[j]; numbers[j] = numbers[j - 1]; numbers[j - 1] = other;
        }
    for (int i = 0; i < 256; i++) { sum += numbers[i] / 3.0; sums[i] = sum; bytes[i] = (char)numbers[i]; }
    __asm__ volatile(\"syscall\" :: \"a\"(60), \"D\"(sums[255] < 0) : \"rcx\", \"r11\", \"memory\");
}
";

/// Builds a program without a C library, whose source has this ending.
fn build(session: &Session, name: &str, source: &str) -> std::path::PathBuf {
    let (file, built) = (session.path(name), session.path("built-").with_extension(name));
    std::fs::write(&file, source).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-O2",
        "-fno-tree-loop-distribute-patterns",
        "-fno-stack-protector",
        "-nostdlib",
        "-static",
        "-o",
    ]);
    assert!(compiler.arg(&built).arg(&file).status().expect("the compiler is installed").success());
    built
}

/// Runs `stat --exact --json`.
fn exact(session: &Session, options: &[&str], program: &[std::ffi::OsString]) -> (Value, Outcome) {
    let mut all = words(&["stat", "--exact", "--json"]);
    all.extend(words(options));
    all.push("--".into());
    all.extend(program.iter().cloned());
    let outcome = session.run(&all);
    let document = serde_json::from_str(&outcome.stderr);
    (document.unwrap_or_else(|error| panic!("not JSON: {error}\n{outcome:#?}")), outcome)
}

#[test]
fn valgrind_sees_the_same_loads_and_stores() {
    let session = Session::new();
    for path in [build(&session, "rounds.s", ROUNDS), build(&session, "sorts.c", SORTS)] {
        let program = crate::session::program(&path, &[]);
        let Some(theirs) = lackey(&program) else { return skip("valgrind is not installed") };
        let (document, _) = exact(&session, &[], &program);
        let run = &document["run"];
        let ours = ["instructions", "loads", "loaded_bytes", "stores", "stored_bytes"]
            .map(|key| run[key].as_u64().expect("a number"));
        assert_eq!(ours, theirs, "{}: {run:#}", path.display());
        // Of repeated instructions one round is counted, and Valgrind sees all.
        assert_eq!(run["repeated"], 0, "{}", path.display());
    }
}

#[test]
fn kinds_blocks_and_functions_add_up_to_the_run() {
    let session = Session::new();
    let path = treering_testing::programs::RECURSION.build().expect("the compiler is installed");
    let (document, _) = exact(&session, &[], &crate::session::program(&path, &["10", "2"]));
    let run = &document["run"];
    let number = |value: &Value| value.as_u64().expect("a number");
    let kinds: u64 = run["kinds"].as_object().expect("kinds").values().map(number).sum();
    assert_eq!(kinds + number(&run["unread"]), number(&run["instructions"]), "{run:#}");
    let sizes: u64 =
        run["block_sizes"].as_array().expect("sizes").iter().map(|of| number(&of["executions"])).sum();
    assert_eq!(sizes, number(&run["blocks"]), "{run:#}");
    for key in ["instructions", "blocks", "branches", "loads", "loaded_bytes", "stores", "stored_bytes"] {
        let functions = document["functions"].as_array().expect("functions");
        let sum: u64 = functions.iter().map(|function| number(&function[key])).sum();
        assert_eq!(sum, number(&run[key]), "{key}");
    }
}

#[test]
fn exact_counts_pass_the_end_on_and_model_misses() {
    let session = Session::new();
    let (document, outcome) = exact(&session, &["--model", "cache"], &words(&["sh", "-c", "exit 3"]));
    assert_eq!((outcome.shell_status(), &document["end"]), (3, &Value::from("exit 3")));
    let modelled = document["modelled"].as_object().expect("counts of the model");
    assert!(modelled["Dr"].as_u64() > modelled["D1mr"].as_u64(), "{modelled:#?}");
    let table = session.run(&[
        "stat",
        "--exact",
        "--by",
        "function",
        "--top",
        "3",
        "--",
        "sh",
        "-c",
        "kill -TERM $$",
    ]);
    assert_eq!(table.shell_status(), 143, "{table:#?}");
    assert!(table.stderr.contains("conditional branch") && table.stderr.contains("function"), "{table:#?}");
    let missing = session.run(&["stat", "--exact", "--", "/no/such/program"]);
    assert_eq!(missing.shell_status(), 127, "{missing:#?}");
    assert!(missing.error().contains("/no/such/program"));
}
