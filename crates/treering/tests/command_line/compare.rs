//! `treering compare`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use treering_testing::programs::installed;

use crate::session::{Outcome, Session};
use crate::skip;

/// Compiles one of the programs of these tests.
fn compile(session: &Session, source: &str, path: &str, options: &[&str]) -> PathBuf {
    let source = format!("{}/tests/command_line/programs/{source}", env!("CARGO_MANIFEST_DIR"));
    let path = session.path(path);
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder can be made");
    let made = Command::new("cc").args(["-g", "-O1"]).args(options).arg(source).arg("-o").arg(&path).status();
    assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
    path
}

fn compare(session: &Session, options: &[&str], base: &[&str], head: &[&str]) -> Outcome {
    session.run(&[&["compare"], options, base, &["--"], head].concat())
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error} in {outcome:#?}"))
}

/// A command that takes some milliseconds of processor time for each round.
fn busy(rounds: u32) -> String {
    format!("i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done")
}

#[test]
fn the_call_that_was_added_is_named_and_limits_decide_the_status() {
    let session = Session::new();
    compile(&session, "changed.c", "old tree/prog-before", &[]);
    compile(&session, "changed.c", "new/prog", &["-DCHANGED"]);
    let run = |options: &[&str]| {
        compare(&session, &[&["--exact"], options].concat(), &["./old tree/prog-before"], &["new/prog"])
    };
    let outcome = run(&[]);
    assert_eq!(outcome.status.code(), Some(0), "{outcome:#?}");
    let first = outcome.stdout.lines().next().expect("a line");
    assert!(first.starts_with('+') && first.contains("% instructions: parse → intern, 1,000 → 2,000 calls"));
    assert!(outcome.stdout.contains("exact    base counted twice: 0 difference"), "{}", outcome.stdout);
    assert_eq!(run(&["--limit", "1%"]).status.code(), Some(1));
    assert_eq!(run(&["--limit", "100%"]).status.code(), Some(0));

    // The same by the commands that count and compare.
    for (program, file) in [("./old tree/prog-before", "a.trg"), ("new/prog", "b.trg")] {
        session.output(&["count", "--tree", "--fixed", "-o", file, "--", program]);
    }
    let diff: Value =
        serde_json::from_str(&session.output(&["diff", "a.trg", "b.trg", "--json"])).expect("JSON");
    let outcome = run(&["--json"]);
    let of_exact = &json(&outcome)["exact"];
    let change = |document: &Value, name: &str| {
        let rows = document["functions"].as_array().expect("functions").iter();
        rows.filter(|row| row["function"] == name).filter_map(|row| row["self_change"].as_i64()).sum::<i64>()
    };
    for name in ["main", "parse", "intern", "hash"] {
        assert_eq!(change(&of_exact["difference"], name), change(&diff, name), "{name}");
    }
    assert_eq!(of_exact["control"]["functions"], 0);
}

/// Paths of another length would move the stack and the variables on it, and with them the counts of functions that align
/// what they work on: the loader reads its own variable with such ones.
#[test]
fn a_longer_path_moves_no_stack_and_no_variable() {
    let session = Session::new();
    let program = compile(&session, "stack.c", "a/prog", &[]);
    let libraries =
        ["/usr/local/lib", "/opt/a longer path/lib", "/opt/the longest of all the paths/lib"].join(":");
    let folders = ["b".to_owned(), "a folder with a much longer name".to_owned(), "long".repeat(16)];
    let path = std::env::join_paths([session.path("a"), "/usr/bin".into()]).expect("paths without colons");
    // A name alone is searched, and the path that is found lies on the stack.
    for (folder, base) in folders.iter().flat_map(|folder| ["./a/prog", "prog"].map(|base| (folder, base))) {
        std::fs::create_dir_all(session.path(folder)).expect("the folder can be made");
        std::fs::copy(&program, session.path(folder).join("prog")).expect("it can be copied");
        let head = format!("./{folder}/prog");
        let mut command = session.command(&["compare", "--exact", "--json", base, "", "--", &head, ""]);
        command.env("LD_LIBRARY_PATH", &libraries).env("PATH", &path);
        let output = command.output().expect("treering runs");
        let document = json(&Outcome::of(output));
        let rows = document["exact"]["difference"]["functions"].as_array().expect("functions").iter();
        let changed: Vec<&Value> = rows.filter(|row| row["self_change"] != 0).collect();
        // The C library looks for the last slash of the program's name.
        let is_of_name = |row: &&Value| row["function"].as_str().is_some_and(|name| name.contains("strrchr"));
        assert!(changed.iter().all(is_of_name), "{folder}, {base}: {changed:?}");
        let is_as_long = folder == "b" && base == "./a/prog";
        assert_eq!(is_as_long, document["exact"]["paths_differ"] == false, "{document:#}");
    }
    let outcome = compare(&session, &["--exact"], &["./a/prog"], &["./b/prog"]);
    assert!(outcome.stdout.starts_with("no difference: "), "{outcome:#?}");
}

#[test]
fn programs_of_two_compilers_are_undecided() {
    if installed("clang").is_none() {
        return skip("clang is not installed");
    }
    let session = Session::new();
    compile(&session, "changed.c", "gcc/prog", &[]);
    let source = format!("{}/tests/command_line/programs/changed.c", env!("CARGO_MANIFEST_DIR"));
    std::fs::create_dir_all(session.path("two")).expect("the folder can be made");
    let mut clang = Command::new("clang");
    clang.args(["-g", "-O1", "-DCHANGED", &source, "-o"]).arg(session.path("two/prog"));
    assert!(clang.status().is_ok_and(|made| made.success()), "clang compiles it");
    let run = |options: &[&str], base: &str, head: &str| {
        compare(&session, &[&["--exact"], options].concat(), &[base], &[head])
    };
    let (gcc, clang) = ("./gcc/prog", "./two/prog");
    let outcome = run(&["--limit", "1%"], gcc, clang);
    assert_eq!(outcome.status.code(), Some(3), "{outcome:#?}");
    let first = outcome.stdout.lines().next().expect("a line");
    assert!(first.starts_with("undecided: other compiler (GCC ") && first.contains(" → clang "), "{first}");
    assert!(
        outcome.stdout.contains("so no row is a cause.\nBuild both with one compiler, or --force"),
        "{outcome:#?}"
    );
    assert!(!outcome.stdout.contains("more calls"), "{outcome:#?}");
    assert_eq!(run(&["--undecided=ok"], gcc, clang).status.code(), Some(0));
    let comment = run(&["--markdown"], gcc, clang).stdout;
    assert!(
        comment.contains("### ? undecided: other compiler") && !comment.contains("| more calls"),
        "{comment}"
    );
    assert_eq!(json(&run(&["--json"], gcc, clang))["exact"]["outcome"], "undecided");

    // With the rows, and of the same program.
    let forced = run(&["--force", "--limit", "1%"], gcc, clang);
    assert!(forced.stdout.contains("more calls") && forced.status.code() == Some(1), "{forced:#?}");
    let equal = run(&[], clang, clang);
    assert!(equal.stdout.starts_with("no difference: ") && equal.status.code() == Some(0), "{equal:#?}");
}

#[test]
fn functions_that_differ_by_chance_are_set_apart() {
    let session = Session::new();
    compile(&session, "noise.c", "noise", &[]);
    let outcome = compare(&session, &["--exact", "--limit", "0%"], &["./noise"], &["./noise"]);
    assert!(outcome.stdout.starts_with("no difference beyond what runs of base differ by"), "{outcome:#?}");
    assert!(outcome.stdout.contains("set apart 6 runs of base differ in"), "{outcome:#?}");
    assert_eq!(outcome.status.code(), Some(0));
    // The change is found all the same.
    let outcome = compare(&session, &["--exact", "--json"], &["./noise"], &["./noise", "40000000"]);
    let document = json(&outcome);
    assert_eq!(document["exact"]["outcome"], "more", "{document:#}");
    assert_eq!(document["exact"]["difference"]["verdict"]["cause"]["function"], "steady");
    // The head is usually another file.
    std::fs::copy(session.path("noise"), session.path("noisy")).expect("it can be copied");
    let outcome = compare(&session, &["--exact", "--limit", "0%"], &["./noise"], &["./noisy"]);
    assert!(outcome.stdout.starts_with("no difference beyond what runs of base differ by"), "{outcome:#?}");
    assert_eq!(outcome.status.code(), Some(0));
    let outcome = compare(&session, &["--exact"], &["./noise"], &["./noisy", "40000000"]);
    let much = outcome.stdout.split(": ").next().unwrap_or_default();
    assert!(much.starts_with('+') && much.contains(" instructions beyond what runs of base"), "{outcome:#?}");
}

#[test]
fn commands_that_fail_differ_or_never_end_are_errors() {
    let session = Session::new();
    let error = |options: &[&str], base: &str, head: &str| {
        let outcome = compare(&session, options, &["sh", "-c", base], &["sh", "-c", head]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        outcome.error().to_owned()
    };
    for mode in ["--exact", "--time"] {
        let failed = error(&[mode], "exit 0", "echo this is why >&2; exit 3");
        assert!(failed.contains("error: head failed in "), "{failed}");
        assert!(failed.contains(" with status 3, so nothing is compared"), "{failed}");
        assert!(failed.contains("hint: its last line: this is why"), "{failed}");
        let late = error(&[mode, "--timeout", "0.3"], "exit 0", "sleep 1000");
        assert!(late.contains("not done after 0.3 s, and killed"), "{late}");
    }
    let killed = error(&["--time"], "exit 0", "kill -SEGV $$");
    assert!(killed.contains("head failed in warm-up 1 by SIGSEGV"), "{killed}");
    let differ = error(&["--exact"], "echo one", "echo three");
    assert!(differ.contains("outputs differ: 4 against 6 bytes"), "{differ}");
    let work = busy(30_000);
    let differ = error(&["--time", "-n", "2"], &format!("{work}; echo one"), &format!("{work}; echo two"));
    assert!(differ.contains("outputs differ from round 1 on: both of 4 bytes"), "{differ}");
    let short = error(&["--time"], "exit 0", "exit 0");
    assert!(short.contains("of processor time a run is start-up alone: true takes "), "{short}");
    let unknown = compare(&session, &["--time"], &["no-such-program"], &["true"]);
    assert!(unknown.error().contains("cannot run no-such-program: it is not in PATH"), "{unknown:#?}");
    let one = session.run(&["compare", "true", "1"]);
    assert!(one.error().contains("there is one command and not two"), "{one:#?}");
}

/// Random numbers and the time are held, and the environment is passed, as it is the same for both.
#[test]
fn held_random_numbers_are_no_difference_and_variables_are_passed() {
    let session = Session::new();
    let script = "test \"$ONLY_HERE\" = 7 && head -c 4000 /dev/urandom | od | sort | uniq -c | wc";
    let mut command = session.command(&[
        "compare",
        "--exact",
        "--cpu",
        "x86-64-v2",
        "sh",
        "-c",
        script,
        "--",
        "sh",
        "-c",
        script,
    ]);
    let outcome = Outcome::of(command.env("ONLY_HERE", "7").output().expect("it runs"));
    assert_eq!(outcome.status.code(), Some(0), "{outcome:#?}");
    assert!(outcome.stdout.starts_with("no difference"), "{outcome:#?}");
    assert!(outcome.stdout.contains("keys made in this run are no secret"), "{outcome:#?}");
    let unknown = compare(&session, &["--exact", "--cpu", "z80"], &["true"], &["true"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:#?}");
}

#[test]
fn outputs_that_vary_are_not_compared_and_others_only_if_wanted() {
    let session = Session::new();
    let exact = |options: &[&str], base: &str, head: &str| {
        compare(
            &session,
            &[&["--exact", "--json"], options].concat(),
            &["sh", "-c", base],
            &["sh", "-c", head],
        )
    };
    let random = "echo $$";
    let document = json(&exact(&[], random, random));
    assert_eq!(document["exact"]["control"]["output_varies"], true, "{document:#}");
    assert_eq!(exact(&["--ignore-output"], "echo one", "echo two").status.code(), Some(0));
}

#[test]
fn times_are_those_of_the_samples_and_decide_the_status() {
    let session = Session::new();
    let (base, head) = (busy(5_000), busy(100_000));
    let options = ["--time", "-n", "8", "--json"];
    let run = |more: &[&str], base: &str, head: &str| {
        compare(&session, &[&options, more].concat(), &["sh", "-c", base], &["sh", "-c", head])
    };
    // Twenty times the work.
    let outcome = run(&["--limit", "50%"], &base, &head);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    let document = json(&outcome);
    let time = &document["time"];
    assert_eq!((&time["outcome"], &time["rounds"]), (&"more".into(), &8.into()));
    assert!(time["change"].as_f64().is_some_and(|change| change > 3.0), "{document:#}");
    assert!(time["change_low"].as_f64() <= time["change"].as_f64());
    let times = |sides: &[&str]| {
        let samples = sides.iter().flat_map(|side| time["samples"][side].as_array().expect("samples"));
        let cpu = |sample: &Value| {
            sample["user_ns"].as_u64().unwrap_or(0) + sample["system_ns"].as_u64().unwrap_or(0)
        };
        let mut cpu: Vec<u64> = samples.map(cpu).collect();
        assert_eq!(cpu.len(), 8 * sides.len());
        cpu.sort_unstable();
        cpu
    };
    let median = |side: &str| {
        let cpu = times(&[side]);
        cpu[3].midpoint(cpu[4])
    };
    for side in ["base", "head"] {
        let stated = time["cpu_ns"][side]["median"].as_u64().expect("a time");
        assert!(stated.abs_diff(median(side)) <= 1, "{side} {document:#}");
    }
    // Of eight times the slowest two are left out, and of sixteen the slowest five.
    let mean = |times: &[u64], kept: usize| times[..kept].iter().sum::<u64>() as f64 / kept as f64;
    let change = mean(&times(&["head"]), 6) / mean(&times(&["base", "base_again"]), 11) - 1.0;
    assert!((time["change"].as_f64().expect("a change") - change).abs() < 1e-6);
    // It is faster the other way round, and within any limit.
    assert_eq!(run(&["--limit", "1%"], &head, &base).status.code(), Some(0));
}

#[test]
fn few_rounds_are_undecided() {
    let session = Session::new();
    let (base, head) = (busy(20_000), busy(200_000));
    let run = |options: &[&str]| {
        let all = [&["--time", "-n", "3"], options].concat();
        compare(&session, &all, &["sh", "-c", &base], &["sh", "-c", &head])
    };
    let outcome = run(&[]);
    assert_eq!(outcome.status.code(), Some(3), "{outcome:#?}");
    assert!(outcome.stdout.starts_with("undecided: CPU time +"), "{outcome:#?}");
    assert!(outcome.stdout.contains("about 30 rounds should settle it"), "{outcome:#?}");
    for part in
        ["median", "mean ± SD", "least – greatest", "base again", "3 shuffled rounds", "wall ", "memory "]
    {
        assert!(outcome.stdout.contains(part), "{part} in {outcome:#?}");
    }
    assert_eq!(run(&["--undecided=ok"]).status.code(), Some(0));
}

#[test]
fn each_timed_run_is_prepared_and_reads_its_input() {
    let session = Session::new();
    std::fs::write(session.path("in"), "some words\n").expect("it can be written");
    let work = format!("{}; rm made; cat", busy(30_000));
    let options =
        ["--time", "-n", "2", "--warmup", "1", "--input", "in", "--prepare", "echo >> log; touch made"];
    let outcome = compare(&session, &options, &["sh", "-c", &work], &["sh", "-c", &work]);
    assert!(matches!(outcome.status.code(), Some(0 | 3)), "{outcome:#?}");
    // Two of the warm-up, and three of each round.
    assert_eq!(std::fs::read_to_string(session.path("log")).expect("a log").lines().count(), 8);
    for how in ["--exact", "--time"] {
        let missing = compare(&session, &[how, "--input", "nosuch"], &["cat"], &["cat"]);
        assert!(missing.error().contains("cannot read nosuch: no such file"), "{missing:#?}");
    }
}

#[test]
fn both_are_compared_without_an_option() {
    let session = Session::new();
    compile(&session, "noise.c", "noise", &[]);
    let outcome =
        compare(&session, &["-n", "8", "--json"], &["./noise", "5000000"], &["./noise", "20000000"]);
    let document = json(&outcome);
    assert_eq!(
        (&document["exact"]["outcome"], &document["time"]["outcome"]),
        (&"more".into(), &"more".into())
    );
    assert_eq!((&document["verdict"]["disagreement"], &document["exit"]), (&false.into(), &0.into()));
    let markdown =
        compare(&session, &["-n", "8", "--markdown"], &["./noise", "5000000"], &["./noise", "20000000"])
            .stdout;
    assert!(markdown.starts_with("<!-- treering:compare -->\n### ▲ +"), "{markdown}");
    assert!(markdown.contains("| CPU time | change, 99 % | base again |"), "{markdown}");
}

/// Instructions and time contradict each other: neither is the verdict.
#[test]
fn fewer_instructions_that_take_longer_disagree() {
    let session = Session::new();
    compile(&session, "disagree.c", "prog", &[]);
    let run = |options: &[&str]| {
        compare(&session, &[&["-n", "8"], options].concat(), &["./prog"], &["./prog", "divide"])
    };
    let outcome = run(&[]);
    assert_eq!(outcome.status.code(), Some(3), "{outcome:#?}");
    let first = outcome.stdout.lines().next().expect("a line");
    assert!(first.starts_with('−') && first.ends_with(": they disagree"), "{outcome:#?}");
    assert!(outcome.stdout.contains("No verdict on time"), "{outcome:#?}");
    let document = json(&run(&["--json"]));
    assert_eq!((&document["verdict"]["disagreement"], &document["exit"]), (&true.into(), &3.into()));
    assert_eq!(
        (&document["exact"]["outcome"], &document["time"]["outcome"]),
        (&"less".into(), &"undecided".into())
    );
    let markdown = run(&["--markdown"]).stdout;
    assert!(markdown.starts_with("<!-- treering:compare -->\n### ? −"), "{markdown}");
    assert!(markdown.contains("they disagree\n"), "{markdown}");
}

#[test]
fn files_for_ci_have_the_verdict() {
    let session = Session::new();
    compile(&session, "changed.c", "before", &[]);
    compile(&session, "changed.c", "after", &["-DCHANGED"]);
    let options = ["--exact", "--limit", "1%", "--name", "prog", "--junit", "junit.xml"];
    let options =
        [&options[..], &["--benchmark-action", "b.json", "--bencher", "bmf.json", "--step-summary"]].concat();
    let words = [&["compare"], &options[..], &["./before", "--", "./after"]].concat();
    let refused = session.run(&words);
    assert!(refused.error().contains("GITHUB_STEP_SUMMARY is not set"), "{refused:#?}");
    let mut command = session.command(&words);
    let output = command.env("GITHUB_STEP_SUMMARY", "summary.md").output().expect("it runs");
    let outcome = Outcome::of(output);
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    let read = |name: &str| std::fs::read_to_string(session.path(name)).expect("the file was written");
    let junit = read("junit.xml");
    assert!(
        junit.contains(r#"<testcase classname="prog" name="instructions"><failure message="+"#),
        "{junit}"
    );
    let list: Value = serde_json::from_str(&read("b.json")).expect("it is JSON");
    let bmf: Value = serde_json::from_str(&read("bmf.json")).expect("it is JSON");
    assert_eq!(list[0]["name"], "prog: instructions");
    assert_eq!(list[0]["value"], bmf["prog"]["instructions"]["value"]);
    assert!(read("summary.md").starts_with("<!-- treering:compare -->\n### ▲ +"));
    let diff_options = ["--limit", "1%", "--junit", "diff.xml"];
    for (program, file) in [("./before", "a.trg"), ("./after", "b.trg")] {
        session.output(&["count", "--tree", "-o", file, "--", program]);
    }
    let diff = session.run(&[&["diff", "a.trg", "b.trg"], &diff_options[..]].concat());
    assert_eq!(diff.status.code(), Some(1), "{diff:#?}");
    assert!(read("diff.xml").contains("<failure message=\"+"));
}

/// A repository with two commits: the program before its change and after it.
fn repository(session: &Session) -> PathBuf {
    let path = session.path("repository");
    std::fs::create_dir_all(path.join("src")).expect("the folder can be made");
    git(&path, &["init", "--quiet"]);
    let source = include_str!("programs/changed.c");
    std::fs::write(path.join("src/changed.c"), source).expect("it can be written");
    git(&path, &["add", "."]);
    git(&path, &["commit", "--quiet", "-m", "before"]);
    path
}

fn git(directory: &Path, words: &[&str]) -> String {
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(identity).args(words).current_dir(directory).output();
    let output = output.expect("git is installed");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("git writes UTF-8")
}

/// Treering in the folder `src` of a repository.
fn in_repository(session: &Session, path: &Path, words: &[&str]) -> Command {
    let mut command = session.command(words);
    command.current_dir(path.join("src")).env("TMPDIR", session.path("tmp"));
    std::fs::create_dir_all(session.path("tmp")).expect("the folder can be made");
    command
}

fn is_clean(session: &Session, path: &Path) {
    assert_eq!(git(path, &["worktree", "list"]).lines().count(), 1);
    let left = std::fs::read_dir(session.path("tmp")).expect("a folder").count();
    assert_eq!(left, 0, "folders are left");
}

#[test]
fn revisions_are_built_and_compared_in_trees_of_their_own() {
    let session = Session::new();
    let path = repository(&session);
    let changed = include_str!("programs/changed.c").replace("#ifdef CHANGED", "#if 1");
    std::fs::write(path.join("src/changed.c"), changed).expect("it can be written");
    // The build is told where it is: in the folder that corresponds to the one of the command.
    let words =
        ["compare", "--exact", "--git", "HEAD", "--build", "cc -g -O1 changed.c -o prog", "--", "./prog"];
    let outcome = Outcome::of(in_repository(&session, &path, &words).output().expect("it runs"));
    assert_eq!(outcome.status.code(), Some(0), "{outcome:#?}");
    assert!(outcome.stdout.contains("parse → intern, 1,000 → 2,000 calls"), "{outcome:#?}");
    is_clean(&session, &path);
    assert!(!path.join("src/prog").exists());
    git(&path, &["commit", "--quiet", "-a", "-m", "after"]);
    let words =
        ["compare", "--exact", "--git", "HEAD..HEAD~1", "--build", "cc -g -O1 changed.c -o prog", "./prog"];
    let outcome = Outcome::of(in_repository(&session, &path, &words).output().expect("it runs"));
    assert!(outcome.stdout.contains("parse → intern, 2,000 → 1,000 calls"), "{outcome:#?}");
    for (words, said) in [
        (&["compare", "--git", "no-such", "./prog"][..], "git knows no revision no-such"),
        (&["compare", "--git", "HEAD", "--build", "echo wrong >&2; exit 1", "./prog"], "base's build failed"),
    ] {
        let outcome = Outcome::of(in_repository(&session, &path, words).output().expect("it runs"));
        assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        assert!(outcome.error().contains(said), "{outcome:#?}");
        is_clean(&session, &path);
    }
}

#[test]
fn an_interrupted_comparison_leaves_nothing() {
    let session = Session::new();
    let path = repository(&session);
    let words = ["compare", "--git", "HEAD", "--build", "touch ../../started; exec sleep 1000", "./prog"];
    let mut command = in_repository(&session, &path, &words);
    let child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let started = || {
        let folders = std::fs::read_dir(session.path("tmp")).expect("a folder");
        folders.flatten().any(|folder| folder.path().join("started").exists())
    };
    while !started() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|killed| killed.success()));
    let outcome = Outcome::of(child.wait_with_output().expect("it ends"));
    assert_eq!(outcome.shell_status(), 130, "{outcome:#?}");
    assert!(outcome.stderr.contains("interrupted"), "{outcome:#?}");
    is_clean(&session, &path);
}

/// Git sets these variables for hooks, aliases and `rebase --exec`.
#[test]
fn variables_of_git_lead_no_search_into_the_work_tree_of_the_user() {
    let session = Session::new();
    let path = repository(&session);
    let before = include_str!("programs/changed.c");
    let after = before.replace("#ifdef CHANGED", "#if 1");
    for text in [format!("{before}// one\n"), after.clone(), format!("{after}// three\n")] {
        std::fs::write(path.join("src/changed.c"), text).expect("it can be written");
        git(&path, &["commit", "--quiet", "-a", "-m", "next"]);
    }
    let culprit = git(&path, &["rev-parse", "HEAD~1"]);
    let head = git(&path, &["symbolic-ref", "HEAD"]);
    std::fs::write(path.join("src/changed.c"), format!("{after}// staged\n")).expect("it can be written");
    git(&path, &["add", "."]);
    // Its folder may be on a disk that is not there now.
    let [other, away] = ["other", "away"].map(|name| session.path(name));
    git(&path, &["worktree", "add", "--quiet", "--detach", &other.to_string_lossy()]);
    std::fs::rename(&other, &away).expect("it can be moved");
    let build =
        "cc -g -O1 changed.c -o prog && test \"$(git rev-parse --show-toplevel)\" = \"$(realpath ..)\"";
    let run = |words: &[&str]| {
        let mut command =
            in_repository(&session, &path, &[words, &["--build", build, "--", "./prog"]].concat());
        command.env("GIT_DIR", path.join(".git")).env("GIT_WORK_TREE", &path);
        command.env("GIT_INDEX_FILE", path.join(".git/index"));
        Outcome::of(command.output().expect("it runs"))
    };
    let outcome = run(&["bench", "bisect", "HEAD~3", "HEAD"]);
    assert!(outcome.stdout.starts_with(&format!("first bad commit: {} ", &culprit[..8])), "{outcome:#?}");
    let outcome = run(&["compare", "--exact", "--git", "HEAD~3"]);
    assert!(outcome.stdout.contains("parse → intern, 1,000 → 2,000 calls"), "{outcome:#?}");
    assert_eq!(git(&path, &["symbolic-ref", "HEAD"]), head);
    assert_eq!(git(&path, &["status", "--porcelain", "-uno"]), "M  src/changed.c\n");
    std::fs::rename(&away, &other).expect("it can be moved");
    git(&other, &["status"]);
    assert_eq!(git(&path, &["worktree", "list"]).lines().count(), 2);
}

/// Five commits: two that change nothing, one that does not compile, the change, and another that changes nothing.
#[test]
fn the_first_bad_commit_is_found_between_two() {
    let session = Session::new();
    let path = repository(&session);
    let before = include_str!("programs/changed.c");
    let after = before.replace("#ifdef CHANGED", "#if 1");
    let commit = |text: &str, title: &str| {
        std::fs::write(path.join("src/changed.c"), text).expect("it can be written");
        git(&path, &["commit", "--quiet", "-a", "-m", title]);
        git(&path, &["rev-parse", "HEAD"]).trim().to_owned()
    };
    let good = git(&path, &["rev-parse", "HEAD"]).trim().to_owned();
    commit(&format!("{before}// one\n"), "one");
    commit("not C", "broken");
    commit(&format!("{before}// two\n"), "two");
    let culprit = commit(&after, "interns twice");
    let bad = commit(&format!("{after}// three\n"), "three");
    let run = |options: &[&str], ends: [&str; 2]| {
        let words = [
            &["bench", "bisect"],
            &ends[..],
            &["--build", "cc -g -O1 changed.c -o prog"],
            options,
            &["--", "./prog"],
        ];
        Outcome::of(in_repository(&session, &path, &words.concat()).output().expect("it runs"))
    };
    let outcome = run(&[], [&good, &bad]);
    assert_eq!(outcome.status.code(), Some(0), "{outcome:#?}");
    let mut lines = outcome.stdout.lines();
    let first = lines.next().expect("a line");
    assert!(first.starts_with(&format!("first bad commit: {} ", &culprit[..8])), "{outcome:#?}");
    assert!(first.ends_with(" interns twice"), "{first}");
    assert!(lines.next().is_some_and(|line| line.contains("% instructions: parse → intern")), "{outcome:#?}");
    is_clean(&session, &path);
    assert_eq!(git(&path, &["status", "--porcelain", "-uno"]), "");

    // The tests of git agree: each that it was told is good costs nothing more.
    let document = json(&run(&["--json"], [&good, &bad]));
    assert_eq!(document["first_bad"], culprit.as_str());
    for tested in document["tested"].as_array().expect("commits") {
        let title = tested["title"].as_str().expect("a title");
        let expected = match title {
            title if title.ends_with("broken") => "skip",
            title if title.ends_with("twice") || title.ends_with("three") => "bad",
            _ => "good",
        };
        assert_eq!(tested["result"], expected, "{document:#}");
    }
    // With only a commit between that cannot be built, it is one of two.
    let broken = commit("not C", "broken again");
    let late = commit(&after.replace("steps = 25", "steps = 99"), "slow");
    let outcome = run(&[], [&bad, &late]);
    assert_eq!(outcome.status.code(), Some(3), "{outcome:#?}");
    assert!(outcome.stdout.contains(&broken[..8]) && outcome.stdout.contains(&late[..8]), "{outcome:#?}");
    // A limit that nothing exceeds.
    let none = run(&["--limit", "99%"], [&good, &bad]);
    assert_eq!(none.status.code(), Some(2), "{none:#?}");
    assert!(none.error().contains("is not bad, compared with "), "{none:#?}");
    is_clean(&session, &path);
}
