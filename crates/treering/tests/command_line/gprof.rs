//! `treering gprof`: programs compiled with `-pg` that know themselves how often each function was called.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use treering_testing::programs::UNDER_FILTER;

use crate::session::{Outcome, Session, treering, words};
use crate::skip;

/// Puts the libraries for `treering gprof` and `-pg` beside the program.
fn library() {
    crate::libraries::beside("libtreering_pg.so");
}

/// The code of every program: functions that stay functions, and calls that no compiler leaves out.
const START: &str = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <pthread.h>\n#include <setjmp.h>\n\
    #include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/time.h>\n\
    #include <sys/wait.h>\n#include <unistd.h>\n#define APART __attribute__((noinline, noclone))\n\
    #define KEPT __asm__ volatile(\"\")\n";

/// Compiles with `-pg`; nothing if there is no such compiler, which is said.
pub(crate) fn compile(session: &Session, source: &str, name: &str, options: &[&str]) -> Option<PathBuf> {
    compile_by(session, "cc", &format!("{START}{source}"), name, options)
}

fn compile_by(
    session: &Session,
    compiler: &str,
    source: &str,
    name: &str,
    options: &[&str],
) -> Option<PathBuf> {
    library();
    let (file, program) = (session.path(&format!("{name}.source.c")), session.path(name));
    std::fs::write(&file, source).expect("the folder can be written");
    let mut compile = Command::new(compiler);
    compile
        .args(["-pg", "-g", "-O1"])
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(&file)
        .args(["-pthread", "-ldl"]);
    if options.iter().any(|option| option.starts_with("-static")) && !options.contains(&"-L.") {
        compile
            .arg("-L")
            .arg(treering().parent().expect("programs are in folders"))
            .arg("-l:libtreering_pg.a");
    }
    let output = compile.output();
    let Some(output) = output.ok().filter(|output| output.status.success() || !output.stderr.is_empty())
    else {
        skip(&format!("there is no {compiler} that builds programs with -pg"));
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// Runs a program under `treering gprof`, however it ends.
pub(crate) fn gprof(session: &Session, options: &[&str], program: &Path, arguments: &[&str]) -> Outcome {
    let mut all = words(&["gprof"]);
    all.extend(words(options));
    all.push("--".into());
    all.extend(words(&[program]));
    all.extend(words(arguments));
    session.run(&all)
}

/// A program before which the library is loaded, wherever that is.
pub(crate) fn preloaded(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", "libtreering_pg.so").env("LD_LIBRARY_PATH", treering().with_file_name(""));
    command
}

/// The call graph of `treering.trg`.
pub(crate) fn call_graph(session: &Session) -> Value {
    session.json("--callgraph", &["--min", "0"])
}

/// How often a function was called, in all processes and threads.
fn calls(graph: &Value, function: &str) -> Option<u64> {
    let functions = graph["functions"].as_array().expect("functions").iter();
    let mut named = functions.filter(|one| one["function"] == function);
    named.find_map(|one| one["calls"].as_u64())
}

/// How often one function called another.
pub(crate) fn arc(graph: &Value, caller: &str, callee: &str) -> Option<u64> {
    let arcs = graph["arcs"].as_array().expect("arcs").iter();
    let mut found = arcs.filter(|arc| arc["caller"] == caller && arc["callee"] == callee);
    found.find_map(|arc| arc["calls"].as_u64())
}

/// Runs it, and returns the call graph; the program must end with 0.
pub(crate) fn graph_of(session: &Session, program: &Path, arguments: &[&str]) -> Value {
    let outcome = gprof(session, &[], program, arguments);
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(outcome.stderr.contains("none lost"), "{outcome:#?}");
    call_graph(session)
}

const THREADS: &str = "APART int leaf(int x) { KEPT; return x + 1; }\n\
    static APART int twice(int x) { return leaf(x) + leaf(x); }\n\
    static void *work(void *calls) { int sum = 0; for (long i = 0; i < (long)calls; i++) sum += twice(sum); \
        return (void *)(long)(sum == 7); }\n\
    int main(void) { pthread_t all[8]; for (int i = 0; i < 8; i++) pthread_create(&all[i], 0, work, (void *)1250000L);\n\
        for (int i = 0; i < 8; i++) pthread_join(all[i], 0); return 0; }\n";

#[test]
fn calls_of_threads_are_counted_to_the_last_one() {
    for options in [&[][..], &["-mfentry"], &["-no-pie"]] {
        let session = Session::new();
        let Some(program) = compile(&session, THREADS, "threads", options) else { return };
        let graph = graph_of(&session, &program, &[]);
        assert_eq!(calls(&graph, "twice"), Some(10_000_000), "{options:?}");
        assert_eq!(arc(&graph, "work", "twice"), Some(10_000_000), "{options:?}");
        assert_eq!(arc(&graph, "twice", "leaf"), Some(20_000_000), "{options:?}");
        assert_eq!(calls(&graph, "work"), Some(8), "{options:?}");
    }
}

#[test]
fn an_exact_count_and_a_sampled_share_stand_side_by_side() {
    let session = Session::new();
    let source = "static APART void spin(long n) { for (volatile long i = 0; i < n; i++); }\n\
        APART void dear(void) { spin(3000000); }\n APART void cheap(void) { spin(1000); }\n\
        int main(void) { for (int i = 0; i < 100; i++) { dear(); cheap(); cheap(); } return 0; }\n";
    let Some(program) = compile(&session, source, "shares", &[]) else { return };
    let graph = graph_of(&session, &program, &[]);
    assert_eq!(["dear", "cheap", "spin"].map(|name| calls(&graph, name)), [Some(100), Some(200), Some(300)]);
    let run = graph["run"]["run_cost"].as_f64().expect("a cost");
    if graph["run"]["samples"].as_u64().is_none() {
        return skip("sampling is not permitted");
    }
    let arcs = graph["arcs"].as_array().expect("arcs");
    let found =
        arcs.iter().find(|arc| arc["caller"] == "dear" && arc["callee"] == "spin").expect("dear calls spin");
    assert_eq!(found["calls"], 100);
    // By calls, as gprof divides it, dear would have a third of it. On a loaded machine the kernel takes a part of such a
    // short run.
    let [cost, low, high] =
        ["total_cost", "total_low", "total_high"].map(|key| found[key].as_f64().expect("a cost"));
    let spin = graph["functions"].as_array().and_then(|all| all.iter().find(|row| row["function"] == "spin"));
    let all = spin.and_then(|spin| spin["total_cost"].as_f64()).expect("the cost of spin");
    assert!(cost > 0.97 * all && cost > 0.6 * run, "{found}, {all} of {run}");
    assert!(low < cost && cost <= high && found["apportioned"] == false, "{found}");
    let text = session.output(&["report", "--callgraph"]);
    let line = text.lines().find(|line| line.contains("100/300")).expect("the line of dear and spin");
    assert!(line.trim_start().starts_with('[') && !line.contains('~'), "{text}");
}

const PARTS: &str = "static APART void spin(long n) { for (volatile long i = 0; i < n; i++); }\n\
    APART void own(void) { spin(2000); }\n\
    APART void dear(void) { spin(1000000); for (int i = 0; i < 5; i++) own(); KEPT; }\n APART void cheap(void) { spin(1000); KEPT; }\n\
    int main(void) { for (int i = 0; i < 100; i++) { dear(); cheap(); cheap(); } return 0; }\n";

/// Calls were counted of the whole program; of a part they are known where all of them are in it.
#[test]
fn a_part_has_the_calls_that_are_known_to_be_in_it() {
    let session = Session::new();
    let Some(program) = compile(&session, PARTS, "parts", &[]) else { return };
    let graph = graph_of(&session, &program, &[]);
    if graph["run"]["samples"].as_u64().is_none() {
        return skip("sampling is not permitted");
    }
    let focused = session.json("--callgraph", &["--min", "0", "--focus", "dear"]);
    // `spin` works for others as well.
    assert_eq!(["dear", "own", "spin"].map(|name| calls(&focused, name)), [Some(100), Some(500), None]);
    assert_eq!(arc(&focused, "dear", "spin"), Some(100));
    assert_eq!(arc(&focused, "cheap", "spin"), None);
    let hidden = session.json("--callgraph", &["--min", "0", "--hide", "dear"]);
    assert_eq!(["dear", "cheap", "spin"].map(|name| calls(&hidden, name)), [None, Some(200), Some(800)]);
    let ignored = session.json("--callgraph", &["--min", "0", "--ignore", "own"]);
    assert_eq!(calls(&ignored, "spin"), None);
    assert!(
        ignored["run"]["notes"].to_string().contains("calls were counted of the whole program"),
        "{ignored}"
    );
}

/// Calls of one run beside the samples of another, in which nobody counted.
#[test]
fn counted_calls_join_a_recording_of_the_same_program() {
    let session = Session::new();
    let Some(program) = compile(&session, PARTS, "joined", &[]) else { return };
    let counted = gprof(&session, &["-o", "counted.trg"], &program, &[]);
    let sampled = session.record_any(&["-o", "sampled.trg"], &words(&[&program]));
    if !counted.status.success() || !sampled.status.success() {
        return skip("this machine refuses to count or to sample");
    }
    let outcome = session.run(&["merge", "--join", "counted.trg", "sampled.trg", "-o", "both.trg"]);
    assert!(outcome.status.success(), "{outcome:#?}");
    let view = |file: &str, view: &str| -> Value {
        let text = session.output(&["report", file, view, "--min", "0", "--json"]);
        serde_json::from_str(&text).expect("JSON")
    };
    // The program's own rule says how often; what gprof's profile says is compared with it elsewhere.
    let graph = view("both.trg", "--callgraph");
    let names = ["dear", "cheap", "own", "spin"];
    assert_eq!(names.map(|name| calls(&graph, name)), [Some(100), Some(200), Some(500), Some(800)]);
    let arcs = [("main", "dear"), ("main", "cheap"), ("dear", "own"), ("dear", "spin"), ("cheap", "spin")];
    let found = arcs.map(|(caller, callee)| arc(&graph, caller, callee));
    assert_eq!(found, [100, 200, 500, 100, 200].map(Some));
    assert_eq!(arc(&graph, "own", "spin"), Some(500));
    // Times are those of the recording alone, to the last sample.
    let (both, alone) = (view("both.trg", "--flat"), view("sampled.trg", "--flat"));
    assert_eq!(both["run"]["run_cost"], alone["run"]["run_cost"]);
    assert_eq!(both["run"]["samples"], alone["run"]["samples"]);
    let row = |document: &Value, name: &str| -> Value {
        let rows = document["functions"].as_array().expect("functions").iter();
        rows.into_iter().find(|row| row["function"] == name).cloned().unwrap_or_default()
    };
    let spin = row(&both, "spin");
    for key in ["self_cost", "total_cost", "self_low", "self_high"] {
        assert!(spin[key].as_u64().is_some(), "{spin}");
        assert_eq!(spin[key], row(&alone, "spin")[key], "{key}");
    }
    assert_eq!((spin["calls"].as_u64(), row(&alone, "spin")["calls"].as_u64()), (Some(800), None), "{spin}");
    let text = session.output(&["report", "both.trg", "--callgraph"]);
    assert!(text.contains("calls are exact"), "{text}");
}

#[test]
fn other_formats_carry_the_calls_or_say_that_they_are_lost() {
    let session = Session::new();
    let Some(program) = compile(&session, PARTS, "exported", &[]) else { return };
    let graph = graph_of(&session, &program, &[]);
    if graph["run"]["samples"].as_u64().is_none() {
        return skip("sampling is not permitted");
    }
    let outcome = session.run(&["export", "treering.trg", "--to", "callgrind", "-o", "out.cg"]);
    assert!(outcome.stderr.contains("calls were not counted"), "{outcome:#?}");
    let text = session.output(&["report", "out.cg", "--callgraph", "--json"]);
    let read: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(arc(&read, "dear", "spin"), Some(100));
    assert_eq!(arc(&read, "cheap", "spin"), Some(200));
    assert_eq!(arc(&read, "own", "spin"), Some(500));
    for format in ["pprof", "folded", "speedscope", "cpuprofile", "firefox"] {
        let outcome =
            session.run(&["export", "treering.trg", "--to", format, "-o", &format!("out.{format}")]);
        assert!(
            outcome.stderr.contains("dropped: how often functions were called"),
            "{format}: {outcome:#?}"
        );
    }
    let dot = session.run(&["export", "treering.trg", "--to", "dot", "-o", "out.dot", "--min", "0"]);
    assert!(dot.status.success(), "{dot:#?}");
    let text = std::fs::read_to_string(session.path("out.dot")).expect("it was written");
    assert!(text.contains("100 calls"), "{text}");
}

#[test]
fn profs_table_is_there_for_programs_too() {
    let session = Session::new();
    let Some(program) = compile(&session, PARTS, "tables", &[]) else { return };
    graph_of(&session, &program, &[]);
    let table = session.json("--prof", &[]);
    assert_eq!(table["view"], "prof");
    let rows = table["functions"].as_array().expect("functions");
    let spin = rows.iter().find(|row| row["function"] == "spin").expect("spin is there");
    assert_eq!(spin["calls"], 800);
    let (own, each) = (spin["self_cost"].as_f64(), spin["self_cost_per_call"].as_f64());
    assert_eq!(own.map(|own| own / 800.0), each);
    let sum: u64 = rows.iter().filter_map(|row| row["self_cost"].as_u64()).sum();
    assert_eq!(Some(sum), rows.last().and_then(|row| row["running_sum"].as_u64()));
}

#[test]
fn programs_linked_statically_have_the_library_in_them() {
    for options in [&["-static"][..], &["-static-pie"], &["-static", "-mfentry"]] {
        let session = Session::new();
        let Some(program) = compile(&session, THREADS, "static", options) else { return };
        let graph = graph_of(&session, &program, &[]);
        assert_eq!(arc(&graph, "work", "twice"), Some(10_000_000), "{options:?}");
        assert_eq!(arc(&graph, "twice", "leaf"), Some(20_000_000), "{options:?}");
        assert!(!session.path("gmon.out").exists());
        // By itself it counts for the profile that is to be made.
        let status = Command::new(&program).env("TREERING_OUTPUT", session.path("own.trg")).status();
        assert!(status.expect("it runs").success());
        let outcome = session.run(&["gprof", "--recover", "-o", "own.trg"]);
        assert!(outcome.stderr.contains("none lost"), "{outcome:#?}");
        let text = session.output(&["report", "own.trg", "--callgraph", "--json"]);
        let own: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(arc(&own, "twice", "leaf"), Some(20_000_000), "{options:?}");
        // As for the other libraries, each process can have a file of its own.
        let mut child = Command::new(&program)
            .env("TREERING_OUTPUT", session.path("of-%p.trg"))
            .spawn()
            .expect("it runs");
        assert!(child.wait().expect("it is our child").success());
        let file = format!("of-{}.trg", child.id());
        assert!(session.run(&["gprof", "--recover", "-q", "-o", &file]).status.success(), "{file}");
        assert_eq!(session.output(&["report", &file]), session.output(&["report", "own.trg"]));
    }
}

/// Resolvers of functions that have several versions run before threads have their variables, and were compiled with `-pg`
/// like the rest.
#[test]
fn calls_before_the_library_is_loaded_are_lost_and_reported() {
    let source = "__attribute__((target_clones(\"avx2\", \"default\"), noinline)) int cloned(int x) { KEPT; return x + 1; }\n\
        int main(void) { int sum = 0; for (int i = 0; i < 1000; i++) sum += cloned(sum); return sum == 1; }\n";
    for options in [&[][..], &["-static"], &["-static-pie"]] {
        let session = Session::new();
        let Some(program) = compile(&session, source, "cloned", options) else { return };
        let outcome = gprof(&session, &[], &program, &[]);
        assert!(outcome.status.success(), "{options:?}: {outcome:#?}");
        let graph = call_graph(&session);
        let named = graph["functions"].as_array().expect("functions").iter();
        let mut versions =
            named.filter(|one| one["function"].as_str().is_some_and(|name| name.starts_with("cloned")));
        assert!(versions.any(|one| one["calls"] == 1000), "{options:?}: {graph}");
        let lost =
            outcome.stderr.contains("1 lost") && graph["run"]["notes"].to_string().contains("had not begun");
        assert!(lost || outcome.stderr.contains("none lost"), "{options:?}: {outcome:#?}");
    }
}

#[test]
fn libraries_are_counted_also_where_another_was_before() {
    let session = Session::new();
    let shared = ["-shared", "-fPIC"];
    let one = "APART int inner(int x) { KEPT; return x + 1; }\nint outer(int x) { return inner(x) * 2; }\n";
    let two = "APART int other_inner(int x) { KEPT; return x + 3; }\nint outer(int x) { return other_inner(x) * 2; }\n";
    let Some(_) = compile(&session, one, "one.so", &shared) else { return };
    let _ = compile(&session, two, "two.so", &shared);
    // Both have the same size, so the second comes to where the first was.
    let source = "int main(void) { int sum = 0; for (int round = 0; round < 6; round++) {\n\
        void *library = dlopen(round % 2 ? \"./two.so\" : \"./one.so\", RTLD_NOW); if (!library) return 3;\n\
        int (*outer)(int) = (int (*)(int))dlsym(library, \"outer\");\n\
        for (int i = 0; i < 100 * (1 + round % 2); i++) sum += outer(i);\n\
        dlclose(library); } return sum == 1; }\n";
    let program = compile(&session, source, "loads", &[]).expect("it was compiled before");
    let graph = graph_of(&session, &program, &[]);
    assert_eq!(calls(&graph, "inner"), Some(300));
    assert_eq!(calls(&graph, "other_inner"), Some(600));
    let functions = graph["functions"].as_array().expect("functions").iter();
    let mut outer: Vec<_> =
        functions.filter(|one| one["function"] == "outer").map(|one| one["calls"].as_u64()).collect();
    outer.sort_unstable();
    assert_eq!(outer, [Some(300), Some(600)], "two functions of one name");
}

#[test]
fn forks_executed_programs_and_threads_of_children_are_counted() {
    let session = Session::new();
    let source = "APART int leaf(int x) { KEPT; return x + 1; }\n\
        static APART int some(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += leaf(sum); return sum; }\n\
        static void *work(void *p) { some(500); return p; }\n\
        int main(int count, char **words) { if (count > 1) { some(30); return 0; } some(100000);\n\
        for (int child = 0; child < 5; child++) if (!fork()) { some(10000); pthread_t t; pthread_create(&t, 0, work, 0);\n\
            pthread_join(t, 0); if (child == 4) execl(words[0], words[0], \"again\", (char *)0); _exit(0); }\n\
        some(1000); if (!vfork()) { leaf(1); _exit(0); } while (wait(0) > 0); some(7); return 0; }\n";
    let Some(program) = compile(&session, source, "forks", &[]) else { return };
    let graph = graph_of(&session, &program, &[]);
    assert_eq!(arc(&graph, "some", "leaf"), Some(100_000 + 5 * 10_500 + 1_000 + 7 + 30));
    assert_eq!(arc(&graph, "main", "leaf"), Some(1));
    assert_eq!(calls(&graph, "work"), Some(5));
}

/// They use each other's tables.
#[test]
fn threads_that_follow_each_other_share_tables_and_lose_nothing() {
    let session = Session::new();
    let source = "APART int leaf(int x) { KEPT; return x + 1; }\n\
        static void *work(void *p) { for (int i = 0; i < 10; i++) leaf(i); return p; }\n\
        int main(void) { for (int i = 0; i < 3000; i++) { pthread_t t; pthread_create(&t, 0, work, 0); \
        pthread_join(t, 0); } return 0; }\n";
    let Some(program) = compile(&session, source, "many", &[]) else { return };
    let graph = graph_of(&session, &program, &[]);
    assert_eq!((calls(&graph, "leaf"), calls(&graph, "work")), (Some(30_000), Some(3_000)));
    let folder = session.path("counts");
    std::fs::create_dir(&folder).expect("the folder can be made");
    let status = preloaded(&program).env("TREERING_PG", &folder).status();
    assert!(status.expect("it runs").success());
    let file = std::fs::read_dir(&folder).expect("it is there").flatten().next().expect("a file").path();
    let mut start = [0; 24];
    std::fs::File::open(file).expect("it can be read").read_exact(&mut start).expect("a header");
    let used = u64::from_ne_bytes(start[16..].try_into().expect("eight bytes"));
    assert!(used < 1 << 20, "3,000 threads took {used} bytes");
}

#[test]
fn signals_long_jumps_and_exceptions_lose_nothing() {
    let session = Session::new();
    let source = "static jmp_buf back; static volatile long handled;\n\
        APART void handle_inner(void) { handled++; }\n\
        static void handle(int signal) { (void)signal; for (int i = 0; i < 100; i++) handle_inner(); }\n\
        APART int leaf(int x) { KEPT; return x + 1; }\nAPART void jump(int i) { leaf(i); longjmp(back, 1); }\n\
        int main(void) { signal(SIGALRM, handle); struct itimerval every = {{0, 500}, {0, 500}}; \
        setitimer(ITIMER_REAL, &every, 0);\n\
        volatile int rounds = 0; while (handled < 20000) { for (int i = 0; i < 1000; i++) leaf(i); rounds++; }\n\
        signal(SIGALRM, SIG_IGN); for (volatile int i = 0; i < 1000; i++) if (!setjmp(back)) jump(i);\n\
        printf(\"%ld %ld\\n\", handled, rounds * 1000L + 1000); return 0; }\n";
    let Some(program) = compile(&session, source, "signals", &[]) else { return };
    let outcome = gprof(&session, &[], &program, &[]);
    assert!(outcome.status.success(), "{outcome:#?}");
    let told: Vec<u64> = outcome.stdout.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let graph = call_graph(&session);
    assert_eq!([calls(&graph, "handle_inner"), calls(&graph, "leaf")], [Some(told[0]), Some(told[1])]);
    assert_eq!(calls(&graph, "jump"), Some(1000));

    let session = Session::new();
    let source = "__attribute__((noinline)) void thrower(int i) { if (i % 2) throw i; }\n\
        int main() { int sum = 0; for (int i = 0; i < 1000; i++) try { thrower(i); } catch (int j) { sum += j; }\n\
        return sum != 250000; }\n";
    let Some(program) = compile_by(&session, "c++", source, "throws", &["-x", "c++"]) else { return };
    assert_eq!(calls(&graph_of(&session, &program, &[]), "thrower(int)"), Some(1000));
}

/// Arguments in vector registers, and what a nested function is told of its surroundings, survive the first
/// call along an arc, which is the slow one.
#[test]
fn no_register_is_changed() {
    let session = Session::new();
    let vectors = "typedef double vector __attribute__((vector_size(32)));\n\
        APART double add(vector a, vector b, double c, long d, long e, long f, long g, long h, long i) {\n\
            KEPT; return a[0] + a[3] + b[1] + b[2] + c + d + e + f + g + h + i; }\n\
        APART int nested(int x) { int inner(int y) { return x * y; } int (*volatile call)(int) = inner; return call(3); }\n\
        int main(void) { vector a = {1, 2, 4, 8}, b = {16, 32, 64, 128};\n\
        for (int i = 0; i < 3; i++) if (add(a, b, 256, 1, 2, 3, 4, 5, 6) != 1 + 8 + 32 + 64 + 256 + 21) return 4;\n\
        return nested(5) != 15; }\n";
    let avx = std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" avx "));
    let options: &[&[&str]] = if avx { &[&["-mavx"], &["-mavx", "-mfentry"]] } else { &[&[]] };
    for options in options {
        let Some(program) = compile(&session, vectors, "vectors", options) else { return };
        let graph = graph_of(&session, &program, &[]);
        assert_eq!(calls(&graph, "add"), Some(3), "{options:?}");
    }
}

/// Processes in namespaces of their own have numbers that others have as well.
#[test]
fn programs_in_containers_are_counted() {
    let session = Session::new();
    let source = "APART int leaf(int x) { KEPT; return x + 1; }\n\
        int main(void) { int sum = 0; for (int i = 0; i < 5000; i++) sum += leaf(sum); return sum == 1; }\n";
    let Some(program) = compile(&session, source, "contained", &[]) else { return };
    for namespaces in [&["-pf"][..], &["-m"], &["-Urpfm", "--mount-proc"]] {
        let allowed = Command::new("unshare").args(namespaces).arg("true").output();
        if !allowed.is_ok_and(|output| output.status.success()) {
            skip(&format!("unshare {} is not permitted", namespaces.join(" ")));
            continue;
        }
        let mut arguments = namespaces.to_vec();
        let path = program.to_str().expect("paths of tests are text");
        arguments.push(path);
        let outcome = gprof(&session, &[], Path::new("unshare"), &arguments);
        assert!(outcome.stderr.contains("none lost"), "{namespaces:?}: {outcome:#?}");
        assert_eq!(arc(&call_graph(&session), "main", "leaf"), Some(5000), "{namespaces:?}");
    }
}

#[test]
fn old_tools_get_a_file_for_each_object() {
    let session = Session::new();
    let Some(_) = compile(
        &session,
        "APART int inner(int x) { KEPT; return x + 1; }\nint outer(int x) { return inner(x) + inner(x); }\n",
        "libouter.so",
        &["-shared", "-fPIC"],
    ) else {
        return;
    };
    let source = "int outer(int); static APART int own(int x) { return outer(x); }\n\
        int main(void) { int sum = 0; for (int i = 0; i < 1234; i++) sum += own(i); return sum == 1; }\n";
    let place = format!("-Wl,-rpath,{0},-L{0}", session.path("").display());
    let program = compile(&session, source, "uses", &[&place, "-Wl,--no-as-needed", "-l:libouter.so"]);
    let program = program.expect("it was compiled before");
    let outcome = gprof(&session, &["--gmon"], &program, &[]);
    assert!(outcome.status.success(), "{outcome:#?}");
    for (object, expected) in [("uses", "1234/1234        main"), ("libouter.so", "2468/2468        outer")] {
        let file = format!("treering.trg.{object}.gmon");
        let text =
            Command::new("gprof").args(["-b", "-q", object, &file]).current_dir(session.path("")).output();
        let Ok(text) = text else { return skip("there is no gprof; it is in binutils") };
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains(expected), "{text}\n{outcome:#?}");
    }
}

/// By itself a program counts beside the profile that `TREERING_OUTPUT` names.
#[test]
fn the_number_of_the_process_stands_for_each_mark_in_the_name() {
    let session = Session::new();
    let Some(program) = compile(&session, "int main(void) { return 0; }\n", "named", &[]) else { return };
    for name in ["a-%p.trg", "%p-%p%", "%%p.trg%", "plain", "%q%"] {
        let mut child =
            preloaded(&program).env("TREERING_OUTPUT", session.path(name)).spawn().expect("it runs");
        assert!(child.wait().expect("it is our child").success());
        let folder =
            name.replace("%%p", "%\0").replace("%p", &child.id().to_string()).replace("%\0", "%p") + ".arcs";
        assert!(session.path(&folder).is_dir(), "{folder}");
    }
    // A name that gets too long is none.
    let name = session.path(&"%p/".repeat(1000));
    let status = preloaded(&program).env("TREERING_OUTPUT", name).status();
    assert!(status.expect("it runs").success());
}

#[test]
fn programs_that_report_no_calls_are_refused_with_a_hint() {
    let session = Session::new();
    library();
    let outcome = session.run(&["gprof", "--", "true"]);
    assert!(outcome.error().contains("no calls were counted: true does not report them"), "{outcome:#?}");
    assert!(outcome.stderr.contains("hint: compile it with -pg"), "{outcome:#?}");
    assert!(!session.path("treering.trg.arcs").exists());
    let outcome = session.run(&["gprof", "--", "./not-there"]);
    assert!(outcome.error().contains("not-there"), "{outcome:#?}");
    // With another folder for libraries, the program gets none of ours.
    let Some(program) = compile(&session, "int main(void) { return 0; }\n", "static", &["-static", "-L."])
    else {
        return;
    };
    let outcome = gprof(&session, &[], &program, &[]);
    assert!(outcome.error().contains("is linked statically"), "{outcome:#?}");
    assert!(outcome.stderr.contains("-ltreering_pg"), "{outcome:#?}");
    std::fs::create_dir(session.path("treering.trg.arcs")).expect("the folder can be made");
    let outcome = session.run(&["gprof", "--", "true"]);
    assert!(
        outcome.error().contains("an earlier run was killed") && outcome.stderr.contains("--recover"),
        "{outcome:#?}"
    );
}

pub(crate) const FEW_CALLS: &str = "APART int leaf(int x) { KEPT; return x + 1; }\n\
    int main(void) { int sum = 0; for (int i = 0; i < 5000; i++) sum += leaf(sum); return sum == 1; }\n";

/// An earlier profile of the same name was once taken for a sign that the program had run.
#[test]
fn a_program_that_cannot_be_sampled_is_run_each_time() {
    let session = Session::new();
    let Some(program) = compile(&session, FEW_CALLS, "unsampled", &[]) else { return };
    let filter = UNDER_FILTER.build().expect("the compiler is installed");
    for run in 0..3 {
        let mut command = Command::new(&filter);
        command.args(["perf_event_open", "refuse"]).arg(treering()).args(["gprof", "--"]).arg(&program);
        let outcome = Outcome::of(command.current_dir(session.path("")).output().expect("it runs"));
        assert!(outcome.status.success(), "run {run}: {outcome:#?}");
        assert!(outcome.stderr.contains("without sampling where time goes"), "run {run}: {outcome:#?}");
        assert_eq!(arc(&call_graph(&session), "main", "leaf"), Some(5000), "run {run}");
    }
}

/// The loader takes a space or a colon for the end of a library's name.
#[test]
fn a_library_in_a_folder_of_any_name_is_loaded() {
    let session = Session::new();
    let Some(program) = compile(&session, FEW_CALLS, "anywhere", &[]) else { return };
    for name in ["a tree ring", "x:y", "ü", "treering", "$LIB"] {
        let folder = session.path(name);
        std::fs::create_dir(&folder).expect("the folder can be made");
        for file in ["treering", "libtreering_pg.so"] {
            std::fs::copy(treering().with_file_name(file), folder.join(file)).expect("it can be copied");
        }
        let mut command = Command::new(folder.join("treering"));
        command.args(["gprof", "--"]).arg(&program).current_dir(session.path(""));
        let outcome = Outcome::of(command.output().expect("it runs"));
        assert!(outcome.status.success(), "{name}: {outcome:#?}");
        assert_eq!(arc(&call_graph(&session), "main", "leaf"), Some(5000), "{name}");
    }
}

#[test]
fn the_page_of_a_program_is_made_when_it_is_asked_for() {
    let session = Session::new();
    let Some(program) = compile(&session, THREADS, "threads", &["-O1"]) else { return };
    let mut all = words(&["gprof", "--view", "-o", "a.trg", "--"]);
    all.extend(words(&[&program]));
    let mut command = session.command(&all);
    let output = command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().expect("treering runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(session.path("a.html")).expect("the page was written");
    assert!(page.starts_with("<!doctype html>") && page.contains("– Treering</title>"));
}
