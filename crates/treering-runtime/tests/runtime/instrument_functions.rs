//! Programs that are compiled with `-finstrument-functions`, and libraries that come and go.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{library, succeeded};
use treering_formats::read_any;
use treering_profile::Profile;
use treering_testing::programs::preload;

/// A folder for one test; nothing without a compiler.
fn folder(test: &str) -> Option<PathBuf> {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("skipped: c++ is not installed");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("instrument-functions").join(test);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

/// Compiles, runs, and returns calls by address path: each function is named by what `nm` calls
/// the symbol at its address.
fn compile(folder: &Path, source: &str, text: &str, flags: &[&str], output: &str) {
    let path = folder.join(source);
    std::fs::write(&path, text).unwrap();
    let compiler = if source.ends_with(".c") { "cc" } else { "c++" };
    let mut command = Command::new(compiler);
    command.args(["-O1", "-g", "-fno-inline", "-finstrument-functions"]).args(flags);
    command.arg(&path).arg("-o").arg(folder.join(output));
    if !output.ends_with(".so") {
        let so = library("so");
        command.arg(format!("-Wl,-rpath,{}", so.parent().unwrap().display())).arg(&so).arg("-ldl");
    }
    succeeded(&mut command);
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Profile {
    succeeded(Command::new(folder.join(program)).args(arguments).current_dir(folder));
    let (_, profile, _) = read_any(&std::fs::read(folder.join("treering.trg")).unwrap()).unwrap();
    profile.validate().unwrap();
    profile
}

/// Symbols of a file by address.
fn symbols(file: &Path) -> BTreeMap<u64, String> {
    let output = Command::new("nm").args(["-C", "--defined-only"]).arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let symbol = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let kind = words.next()?;
        "tTwW".contains(kind).then(|| (address, words.next().unwrap_or_default().to_owned()))
    };
    text.lines().filter_map(symbol).collect()
}

/// Calls by caller and function.
fn arcs(profile: &Profile) -> BTreeMap<(String, String), u64> {
    let mut known: BTreeMap<String, BTreeMap<u64, String>> = BTreeMap::new();
    let mut name = |node| {
        let function = &profile.functions[profile.tree.function(node)];
        let Some(module) = function.module else { return "root".to_owned() };
        let path = profile.strings[profile.modules[module].path].to_owned();
        let symbols = known.entry(path.clone()).or_insert_with(|| symbols(Path::new(&path)));
        let name =
            symbols.get(&function.address.unwrap().0).cloned().unwrap_or_else(|| format!("? in {path}"));
        name.split('(').next().unwrap().to_owned()
    };
    let mut arcs = BTreeMap::new();
    for node in profile.tree.nodes() {
        if let Some(parent) = profile.tree.parent(node) {
            *arcs.entry((name(parent), name(node))).or_default() += profile.tree.calls(node);
        }
    }
    arcs
}

fn expect(arcs: &BTreeMap<(String, String), u64>, rows: &[(&str, &str, u64)]) {
    let rows: BTreeMap<_, _> =
        rows.iter().map(|&(from, to, calls)| ((from.to_owned(), to.to_owned()), calls)).collect();
    assert_eq!(*arcs, rows);
}

#[test]
fn exceptions_thrown_through_many_frames_leave_them() {
    let Some(folder) = folder("exceptions") else { return };
    let text = r#"
#include <stdexcept>
static volatile int sink;
void leaf() { sink = sink + 1; }
void thrower(int depth) { leaf(); if (depth == 0) throw std::runtime_error("x"); thrower(depth - 1); leaf(); }
void middle(int depth) { thrower(depth); }
void catcher(int depth) { try { middle(depth); } catch (const std::exception &) { leaf(); } }
int main() { for (int i = 0; i < 300; ++i) catcher(i % 5); return 0; }
"#;
    compile(&folder, "exceptions.cc", text, &[], "exceptions");
    let profile = run(&folder, "exceptions", &[]);
    let mut arcs = arcs(&profile);
    // Functions of the library that are compiled with the program, such as constructors.
    arcs.retain(|(from, to), _| !from.contains("::") && !to.contains("::"));
    // Depths 0 to 4 in turn: 1 to 5 activations of the thrower, 0 to 4 of them by itself.
    let rows = [
        ("root", "main", 1),
        ("main", "catcher", 300),
        ("catcher", "middle", 300),
        ("catcher", "leaf", 300),
        ("middle", "thrower", 900),
        ("thrower", "leaf", 900),
    ];
    expect(&arcs, &rows);
    assert_eq!(profile.metadata.losses.unbalanced_leaves, 0);
}

#[test]
fn functions_jumped_out_of_are_left() {
    let Some(folder) = folder("longjmp") else { return };
    let text = r#"
#include <setjmp.h>
static jmp_buf out;
static volatile int sink;
void after(void) { sink = sink + 1; }
void inner(int i) { if (i % 3 == 0) longjmp(out, 1); sink = sink + 1; }
void outer(int i) { inner(i); after(); }
void turn(int i) { if (setjmp(out) == 0) outer(i); after(); }
int main(void) { for (int i = 0; i < 900; ++i) turn(i); return 0; }
"#;
    compile(&folder, "longjmp.c", text, &[], "longjmp");
    let profile = run(&folder, "longjmp", &[]);
    let rows = [
        ("root", "main", 1),
        ("main", "turn", 900),
        ("turn", "outer", 900),
        ("turn", "after", 900),
        ("outer", "inner", 900),
        ("outer", "after", 600),
    ];
    expect(&arcs(&profile), &rows);
    let losses = profile.metadata.losses;
    assert_eq!((losses.unbalanced_leaves, losses.unwound_activations), (0, 600));
}

#[test]
fn libraries_that_follow_each_other_at_the_same_addresses_are_kept_apart() {
    let Some(folder) = folder("dlclose") else { return };
    for name in ["first", "second"] {
        let text = format!(
            "static volatile int sink;\nvoid work_{name}(void) {{ sink = sink + 1; }}\nvoid entry(void) {{ work_{name}(); }}\n"
        );
        compile(&folder, &format!("{name}.c"), &text, &["-shared", "-fPIC"], &format!("{name}.so"));
    }
    let text = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **paths) {
    for (int round = 0; round < 20; ++round) {
        void *library = dlopen(paths[1 + round % (count - 1)], RTLD_NOW);
        if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
        void (*entry)(void) = (void (*)(void))dlsym(library, "entry");
        for (int i = 0; i < 10; ++i) entry();
        dlclose(library);
    }
    return 0;
}
"#;
    compile(&folder, "loads.c", text, &[], "loads");
    let paths = ["first.so", "second.so"].map(|name| folder.join(name).display().to_string());
    let profile = run(&folder, "loads", &[&paths[0], &paths[1]]);
    let rows = [
        ("root", "main", 1),
        ("main", "entry", 200),
        ("entry", "work_first", 100),
        ("entry", "work_second", 100),
    ];
    expect(&arcs(&profile), &rows);
    assert_eq!(profile.modules.entries().len(), 3);
}

/// Whether a program is installed; says so if it is not.
fn is_installed(name: &str) -> bool {
    let found = Command::new(name).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {name} is not installed");
    }
    found
}

fn frames_source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/c/tests/end_to_end/frames.cc")
}

/// How often each function was called, as gcov counts it without this library.
fn counted_by_gcov(folder: &Path) -> Option<BTreeMap<String, u64>> {
    if !is_installed("gcov") {
        return None;
    }
    let build = Command::new("g++")
        .args(["-O0", "--coverage", "-o", "covered"])
        .arg(frames_source())
        .current_dir(folder)
        .output();
    assert!(build.unwrap().status.success());
    succeeded(Command::new(folder.join("covered")).current_dir(folder));
    let notes = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let notes = notes.into_iter().find(|path| path.extension().is_some_and(|end| end == "gcda")).unwrap();
    let listing = Command::new("gcov")
        .args(["--json-format", "--stdout"])
        .arg(notes)
        .current_dir(folder)
        .output()
        .unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    // Each function is an object of simple values, in any order.
    let value = |object: &str, key: &str| {
        let rest = object.split(&format!("\"{key}\":")).nth(1).unwrap().trim_start();
        rest.split([',', '}']).next().unwrap().trim_matches(['"', ' ']).to_owned()
    };
    let mut counts = BTreeMap::new();
    for object in listing.split(['{', '}']).filter(|object| object.contains("\"demangled_name\"")) {
        let name = value(object, "demangled_name").split('(').next().unwrap().to_owned();
        counts.insert(name, value(object, "execution_count").parse().unwrap());
    }
    Some(counts)
}

#[test]
fn functions_whose_frames_vary_and_that_exceptions_leave_are_counted_at_their_callers() {
    let Some(folder) = folder("frames") else { return };
    let rows = [
        ("root", "main", 1),
        ("main", "array", 100),
        ("main", "stack", 100),
        ("main", "after", 214),
        ("array", "leaf", 100),
        ("stack", "leaf", 100),
        ("main", "catcher", 30),
        ("catcher", "middle", 30),
        ("catcher", "after", 60),
        ("middle", "thrower", 90),
        ("middle", "Guard::~Guard", 30),
        ("Guard::~Guard", "leaf", 30),
        ("thrower", "leaf", 100),
        ("main", "realigned", 7),
        ("realigned", "leaf", 7),
        ("main", "before_last", 7),
        ("before_last", "last", 7),
        ("last", "leaf", 7),
        ("main", "again", 1),
        ("again", "thrower", 10),
        ("again", "after", 1),
        ("main", "sorted", 1),
        ("sorted", "compare", 48),
        ("compare", "leaf", 48),
        ("sorted", "after", 1),
        ("main", "growing", 15),
        ("growing", "leaf", 30),
        ("main", "arguments", 1),
        ("arguments", "many", 5),
        ("arguments", "after", 5),
        ("many", "leaf", 5),
    ];
    if let Some(counted) = counted_by_gcov(&folder) {
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        rows.iter()
            .for_each(|(_, function, calls)| *expected.entry((*function).to_owned()).or_default() += calls);
        assert_eq!(counted, expected);
    }
    let so = library("so");
    let directory = so.parent().unwrap().display().to_string();
    for compiler in ["g++", "clang++"].into_iter().filter(|compiler| is_installed(compiler)) {
        for optimisation in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            let mut command = Command::new(compiler);
            command.args([optimisation, "-g", "-finstrument-functions"]).arg(frames_source());
            command.arg("-o").arg(folder.join("frames")).arg(&so).arg(format!("-Wl,-rpath,{directory}"));
            succeeded(&mut command);
            let profile = run(&folder, "frames", &[]);
            expect(&arcs(&profile), &rows);
            let losses = profile.metadata.losses;
            assert_eq!((losses.unbalanced_leaves, losses.open_activations, losses.dropped_events), (0, 0, 0));
        }
    }
}

#[test]
fn activations_open_while_a_library_is_unloaded_go_on() {
    let Some(folder) = folder("unloaded") else { return };
    let library = "static volatile int sink;\nvoid inner(void) { sink = sink + 1; }\nvoid entry(void) { inner(); }\n__attribute__((destructor)) static void leaving(void) { inner(); }\n";
    compile(&folder, "library.c", library, &["-shared", "-fPIC"], "library.so");
    let text = r#"
#include <dlfcn.h>
static volatile int sink;
void after(void) { sink = sink + 1; }
int loads(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) return 1;
    ((void (*)(void))dlsym(library, "entry"))();
    return dlclose(library);
}
int main(int count, char **paths) { int failed = loads(paths[count - 1]); after(); after(); return failed; }
"#;
    compile(&folder, "unloads.c", text, &[], "unloads");
    let path = folder.join("library.so").display().to_string();
    let profile = run(&folder, "unloads", &[&path]);
    let rows = [
        ("root", "main", 1),
        ("main", "loads", 1),
        ("main", "after", 2),
        ("loads", "entry", 1),
        ("loads", "leaving", 1),
        ("entry", "inner", 1),
        ("leaving", "inner", 1),
    ];
    expect(&arcs(&profile), &rows);
    let losses = profile.metadata.losses;
    assert_eq!((losses.unwound_activations, losses.open_activations), (0, 0));
}

/// The host is not linked with this library, and loads its plug-ins by paths that are not from the root.
#[test]
fn plug_ins_of_a_program_that_is_not_instrumented_are_recorded_or_said_to_be_not() {
    let Some(folder) = folder("plug-ins") else { return };
    let so = library("so");
    let directory = so.parent().unwrap().display().to_string();
    for name in ["first", "second"] {
        let text = format!(
            "static volatile int sink;\nvoid work_{name}(void) {{ sink = sink + 1; }}\nvoid entry(void) {{ work_{name}(); }}\n"
        );
        let source = format!("{name}.c");
        std::fs::write(folder.join(&source), text).unwrap();
        let mut command = Command::new("cc");
        command.args([
            "-g",
            "-finstrument-functions",
            "-shared",
            "-fPIC",
            &source,
            "-o",
            &format!("{name}.so"),
        ]);
        succeeded(command.arg(&so).arg(format!("-Wl,-rpath,{directory}")).current_dir(&folder));
    }
    let text = r#"
#include <dlfcn.h>
int main(int count, char **paths) {
    for (int round = 0; round < 10; ++round) {
        void *library = dlopen(paths[1 + round % (count - 1)], RTLD_NOW);
        if (!library) return 1;
        ((void (*)(void))dlsym(library, "entry"))();
        dlclose(library);
    }
    return 0;
}
"#;
    std::fs::write(folder.join("host.c"), text).unwrap();
    succeeded(Command::new("cc").args(["host.c", "-o", "host", "-ldl"]).current_dir(&folder));
    std::fs::create_dir_all(folder.join("elsewhere")).unwrap();
    let mut host = Command::new("../host");
    host.args(["../first.so", "../second.so"]).current_dir(folder.join("elsewhere"));
    let output = host.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success());
    assert_eq!(said.matches("are not recorded").count(), 1, "{said}");
    assert!(said.contains("link it with -ltreering"), "{said}");
    let output = preload(&mut host, &so).output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    let bytes = std::fs::read(folder.join("elsewhere/treering.trg")).unwrap();
    let (_, profile, _) = read_any(&bytes).unwrap();
    let rows = [("root", "entry", 10), ("entry", "work_first", 5), ("entry", "work_second", 5)];
    expect(&arcs(&profile), &rows);
}

#[test]
fn many_threads_in_c_are_counted_exactly() {
    let Some(folder) = folder("threads") else { return };
    let text = r#"
#include <pthread.h>
static __thread volatile int sink;
void leaf(void) { sink = sink + 1; }
void branch(int i) { leaf(); if (i % 2) leaf(); }
void *body(void *unused) { for (int i = 0; i < 2000; ++i) branch(i); return unused; }
int main(void) {
    pthread_t threads[64];
    for (int i = 0; i < 64; ++i) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 64; ++i) pthread_join(threads[i], 0);
    return 0;
}
"#;
    compile(&folder, "threads.c", text, &["-pthread"], "threads");
    let profile = run(&folder, "threads", &[]);
    let rows =
        [("root", "main", 1), ("root", "body", 64), ("body", "branch", 128_000), ("branch", "leaf", 192_000)];
    expect(&arcs(&profile), &rows);
}

#[test]
fn filters_and_flat_profiles_count_the_same() {
    let Some(folder) = folder("flat") else { return };
    let text = r#"
static volatile int sink;
int odd(int n);
int even(int n) { return n == 0 ? 1 : odd(n - 1); }
int odd(int n) { return n == 0 ? 0 : even(n - 1); }
void leaf(void) { sink = sink + 1; }
int main(void) { for (int i = 0; i < 100; ++i) { sink = even(i % 10); leaf(); } return 0; }
"#;
    compile(&folder, "flat.c", text, &[], "flat");
    succeeded(Command::new(folder.join("flat")).current_dir(&folder).env("TREERING", "flat"));
    let (_, profile, _) = read_any(&std::fs::read(folder.join("treering.trg")).unwrap()).unwrap();
    // Of 0 to 9 in turn, the even half and the odd half of n + 1 activations each.
    let rows = [("root", "main", 1), ("root", "even", 300), ("root", "odd", 250), ("root", "leaf", 100)];
    expect(&arcs(&profile), &rows);
    let metric = profile.find_metric("time").unwrap();
    let activations = profile.activations.as_ref().unwrap();
    let main = profile.tree.nodes().find(|&node| profile.tree.calls(node) == 1).unwrap();
    let total = activations.nodes.get(main).total;
    assert!(total >= profile.run_cost(metric) * 99 / 100, "{total} of {}", profile.run_cost(metric));
}

/// Calls by caller and function, where tasks have their own names.
fn named_arcs(profile: &Profile, program: &Path) -> BTreeMap<(String, String), u64> {
    let symbols = symbols(program);
    let name = |node| {
        let function = &profile.functions[profile.tree.function(node)];
        let address = function.address.filter(|_| function.module.is_some()).map(|address| address.0);
        let symbol = address.map(|address| symbols.get(&address).cloned().unwrap_or_default());
        symbol.map_or(profile.strings[function.name].to_owned(), |name| name.replace("()", ""))
    };
    let mut arcs = BTreeMap::new();
    for node in profile.tree.nodes() {
        if let Some(parent) =
            profile.tree.parent(node).filter(|parent| profile.tree.parent(*parent).is_some())
        {
            *arcs.entry((name(parent), name(node))).or_default() += profile.tree.calls(node);
        }
    }
    arcs
}

#[test]
fn functions_of_the_headers_are_not_among_those_of_the_program() {
    let Some(folder) = folder("headers") else { return };
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/c/include");
    let include = format!("-I{}", include.display());
    let text = "static volatile int sink;\nvoid work(void) { sink = sink + 1; }\n\
                void marked(void) { TREERING_SCOPE(\"scope\"); work(); { TREERING_LEAF(\"leaf\", 1); } work(); }\n\
                int main(void) { for (int i = 0; i < 9; ++i) marked(); return 0; }\n";
    for (source, header) in [("marked.c", "treering.h"), ("marked.cc", "treering.hpp")] {
        let text = format!("#include <treering/{header}>\n{text}");
        compile(&folder, source, &text, &[&include], "marked");
        let profile = run(&folder, "marked", &[]);
        expect(
            &named_arcs(&profile, &folder.join("marked")),
            &[("main", "marked", 9), ("marked", "scope", 9), ("scope", "work", 18), ("scope", "leaf", 9)],
        );
        let losses = &profile.metadata.losses;
        assert_eq!([losses.unbalanced_leaves, losses.unwound_activations, losses.branched_leaves], [0; 3]);
    }
}

#[test]
fn tasks_of_cbs_go_on_where_all_functions_are_reported() {
    let Some(folder) = folder("tasks") else { return };
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hooks/c/include");
    let include = format!("-I{}", include.display());
    let text = "#include <cbs/bench/bench_macros.hh>\nstatic volatile int sink;\n\
                void work() { sink = sink + 1; }\n\
                void run() { BENCH_TASK_SCOPED(\"outer\"); BENCH_TASK_START(\"inner\"); work(); BENCH_TASK_STOP(); work(); }\n\
                int main() { BENCH_START(\"name\", \"\"); for (int i = 0; i < 9; ++i) run(); BENCH_STOP(); return 0; }\n";
    compile(&folder, "tasks.cc", text, &[&include], "tasks");
    let profile = run(&folder, "tasks", &[]);
    let mut arcs = named_arcs(&profile, &folder.join("tasks"));
    // Functions of the C++ library are compiled with the program.
    arcs.retain(|(from, to), _| ["run", "outer", "inner"].contains(&&**from) && !to.contains("::"));
    expect(&arcs, &[("run", "outer", 9), ("outer", "inner", 9), ("inner", "work", 9), ("outer", "work", 9)]);
}
