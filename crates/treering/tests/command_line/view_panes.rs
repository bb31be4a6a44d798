//! Sentences of the panes of pages, read out of a browser.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use treering_profile::{Function, FunctionKind, Profile};

use crate::session::Session;
use crate::skip;
use crate::view::driver;

fn file(session: &Session, name: &str, text: &str) {
    std::fs::write(session.path(name), text).expect("the folder can be written");
}

fn trg(session: &Session, name: &str, profile: &Profile) {
    let mut to = File::create(session.path(name)).expect("the folder can be written");
    treering_formats::trg::write(profile, &mut to).expect("it is written");
}

/// Functions of several kinds, none of which has a line.
fn kinds() -> Profile {
    let mut profile = treering_testing::stacks("main 10");
    let metric = profile.metrics().next().expect("samples have a metric").0;
    let root = profile.threads[0].root;
    for (name, kind, file, cost) in [
        ("of_the_kernel", FunctionKind::Kernel, "", 50),
        ("made_at_run_time", FunctionKind::Jit, "", 40),
        ("a_task", FunctionKind::Task, "", 30),
        ("built_in", FunctionKind::Builtin, "", 20),
        ("without_debug_information", FunctionKind::Native, "", 10),
        ("with_a_file", FunctionKind::Native, "/src/with.c", 0),
    ] {
        let (name, file) = (profile.strings.intern(name), profile.strings.intern(file));
        let function = profile.functions.intern(Function { kind, file, ..Function::named(name) });
        let node = profile.tree.child(root, function, None);
        // A function without own cost calls one that has some.
        let node = match cost {
            0 => {
                let inner = profile.strings.intern("inner");
                let inner = profile.functions.intern(Function::named(inner));
                profile.tree.child(node, inner, None)
            }
            _ => node,
        };
        profile.tree.add_self_cost(metric, node, cost.max(5));
    }
    profile.metadata.collector = "treering record".to_owned();
    profile
}

fn lossy() -> Profile {
    let mut profile = treering_testing::stacks("main;work 993");
    profile.metadata.collector = "treering record".to_owned();
    profile.runs[0].command = vec![format!("./{}", "a_long_command/".repeat(20))];
    let losses = &mut profile.metadata.losses;
    (losses.samples, losses.lost_samples, losses.truncated_stacks) = (993, 7, 1);
    (losses.unresolved_samples, losses.throttled, losses.clock_steps_back) = (12, 2, 1);
    profile
}

/// Two functions that wait in the kernel.
fn waiting() -> Profile {
    let mut profile = treering_testing::stacks("main;locked 0\n main;light 0");
    let metric = profile.metrics().next().expect("samples have a metric").0;
    let name = profile.strings.intern("futex_wait");
    let function = Function { kind: FunctionKind::Kernel, ..Function::named(name) };
    let function = profile.functions.intern(function);
    let nodes: Vec<_> = profile.tree.nodes().collect();
    for node in nodes {
        let of = profile.functions[profile.tree.function(node)].name;
        let cost = match &profile.strings[of] {
            "locked" => 75,
            "light" => 25,
            _ => continue,
        };
        let below = profile.tree.child(node, function, None);
        profile.tree.add_self_cost(metric, below, cost * 1_000_000);
    }
    profile
}

/// Counts two versions of a program, of which the second has lines more, lines changed, and lines moved.
fn versions(session: &Session) {
    let base = "#include <stdio.h>\n\
                __attribute__((noinline)) unsigned hash(const char *s) {\n  unsigned h = 5381;\n  for (; *s; s++)\n\
                \x20   h = h * 33 + *s;\n  return h;\n}\n\
                __attribute__((noinline)) int work(int n) {\n  int s = 0;\n  for (int i = 0; i < n; i++)\n\
                \x20   s += hash(\"a name\") & 7;\n  return s;\n}\n\
                int main(void) { return work(500) == 1; }\n";
    let new = base
        .replace("__attribute__((noinline)) unsigned", "\n\n__attribute__((noinline)) unsigned")
        .replace("    h = h * 33 + *s;", "    h = h * 33 + *s,\n    h ^= h >> 7;\n  h ^= h >> 16;")
        .replace("& 7;", "& 15;");
    for (version, text) in [("base", base), ("new", &new)] {
        let folder = session.path(version);
        std::fs::create_dir(&folder).expect("the folder can be made");
        let (source, program) = (folder.join("a.c"), folder.join("program"));
        std::fs::write(&source, text).expect("it can be written");
        let mut compiler = Command::new("cc");
        compiler.args(["-g", "-O1", "-Wl,--build-id"]).arg(&source).arg("-o").arg(&program);
        assert!(compiler.status().is_ok_and(|made| made.success()), "the compiler is installed");
        for (kind, options) in [("flat", &[][..]), ("tree", &["--tree"])] {
            let counted = session.path(&format!("{kind}_{version}.trg"));
            let mut arguments: Vec<&Path> = ["count", "-q"].iter().chain(options).map(Path::new).collect();
            arguments.extend([Path::new("-o"), &counted, Path::new("--"), &program]);
            if !session.run(&arguments).status.success() {
                let _ = std::fs::remove_file(session.path("flat_base.trg"));
                return skip("no versions of lines and blocks: this machine refuses to trace");
            }
        }
    }
}

#[test]
fn panes_state_the_facts_of_each_profile() {
    let Some(mut command) = driver("panes.mjs") else { return };
    let session = Session::new();
    file(&session, "recursion.folded", "main;idle 0\nmain;fact;fact 5\nmain;even;odd;even 4\nmain;work 9\n");
    // `inner` has a cost of its own in the longer run alone, and `outer` in the shorter one; both run in both.
    let common = "main;inner;x 3\n";
    file(
        &session,
        "shorter.folded",
        &format!("{common}main;a 100\nmain;b 50\nmain;vanishes;x 20\nmain;outer 5\n"),
    );
    file(
        &session,
        "longer.folded",
        &format!("{common}main;a 10\nmain;b 170\nmain;appears;x 20\nmain;outer;x 5\nmain;inner 8\n"),
    );
    file(&session, "few_base.folded", "main;f 100\nmain;g 5\nmain;h 7\n");
    file(&session, "few_new.folded", "main;f 103\nmain;g 8\nmain;h 4\n");
    let both =
        "main;grown GROWN\n main;shrunk SHRUNK\n main;little_more MORE\n main;little_less LESS\n main;same 5";
    for (name, [grown, shrunk, more, less]) in
        [("base.trg", ["10", "510", "10", "10"]), ("new.trg", ["510", "10", "11", "9"])]
    {
        let stacks = both.replace("GROWN", grown).replace("SHRUNK", shrunk);
        let stacks = stacks.replace("MORE", more).replace("LESS", less);
        trg(&session, name, &treering_testing::stacks(&stacks));
    }
    let calls = |parse: u64, hash: u64| {
        let mut events = "0 enter main\n".to_owned();
        let mut at = 0;
        for (name, each, times) in [("parse", 10_000_000, parse), ("hash", hash, 2)] {
            for _ in 0..times {
                events += &format!("{at} enter {name}\n{} leave\n", at + each);
                at += each;
            }
        }
        treering_testing::trace(&(events + &format!("{at} leave main")))
    };
    trg(&session, "calls_base.trg", &calls(4, 5_000_000));
    trg(&session, "calls_new.trg", &calls(8, 15_000_000));
    file(
        &session,
        "unseen.folded",
        "main;safe_\u{202e}gnirts_live\u{202c}_end 10\nmain;user\u{200b}admin 5\nmain;user\u{2066}admin\u{2069} 4\n\
         main;\u{1b}[31mred 3\nmain;\u{5e9}\u{5dc}::\u{5d5}\u{5dd} 2\n",
    );
    versions(&session);
    let callers = |at: u32| format!("main;caller_{at};shared;callee_{} {}\n", at % 3, at + 1);
    file(&session, "callers.folded", &(0..60).map(callers).collect::<String>());
    file(&session, "endless.folded", &format!("main;{}! 10\nmain;b (build 1f2e3d4c) 3\n", "a".repeat(60)));
    trg(&session, "kinds.trg", &kinds());
    trg(&session, "lossy.trg", &lossy());
    trg(&session, "waiting.trg", &waiting());
    let stacks = "@worker-1 main@3;work@9 50\n @worker-2 main@4;copy@21 30\n @worker-2 main@5;work@9 10\n \
                  @worker-3 main@6;idle@30 10";
    trg(&session, "threads.trg", &treering_testing::stacks(stacks));
    trg(&session, "zero.trg", &treering_testing::stacks("main;work 0"));
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let shown = command.arg(env!("CARGO_BIN_EXE_treering")).arg(fixtures).arg(session.path("")).output();
    let shown = shown.expect("node runs");
    let text = [shown.stdout, shown.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(shown.status.success(), "{text}");
}

#[test]
fn a_browser_selects_parts_of_runs_whose_course_is_known() {
    let Some(mut command) = driver("time.mjs") else { return };
    let shown = command.output().expect("node runs");
    let text = [shown.stdout, shown.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(shown.status.success(), "{text}");
}
