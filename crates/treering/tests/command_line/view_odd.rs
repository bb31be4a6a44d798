//! Pages of odd and hostile profiles, and what `treering view` says where there can be none.

use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;

use crate::session::{Outcome, Session};
use crate::view::driver;

/// A file in the session's folder.
fn file(session: &Session, name: &str, text: &str) -> PathBuf {
    let path = session.path(name);
    std::fs::write(&path, text).expect("the folder can be written");
    path
}

/// The page of a profile; it must be possible to make it.
fn page(session: &Session, profile: &str) -> PathBuf {
    let page = format!("{profile}.html");
    let outcome = session.run(&["view", "--no-open", "-o", &page, profile]);
    assert!(outcome.status.success(), "{profile}: {outcome:#?}");
    session.path(&page)
}

/// Names that would do harm where text is taken for markup, code or keys.
const NAMES: &[&str] = &[
    "</script><script>window.owned=1</script>",
    "<img src=x onerror=window.owned=1>",
    "\" onmouseover=\"window.owned=1",
    "<!--<script>",
    "]]>",
    "__proto__",
    "constructor",
    "toString",
    "line\u{2028}separator\u{2029}paragraph",
    "right\u{202e}to\u{2066}left",
    "control\u{1}\u{7f}\u{1b}[31m",
    "javascript:window.owned=1",
    "${window.owned=1}",
    "%3Cscript%3E&lt;b&gt;&amp;",
    "#fn=other&x=hide:f:main",
    "\u{feff}\u{200b}",
    "e\u{301}\u{301}\u{301}\u{301} 👨‍👩‍👧",
];

fn hostile_names(session: &Session) {
    let mut text = String::new();
    for (at, name) in NAMES.iter().enumerate() {
        // Semicolons part the frames.
        let name = name.replace(';', ",");
        writeln!(text, "main;{name};inner {}", at + 1).expect("texts grow");
        writeln!(text, "main;{name} {}", at + 1).expect("texts grow");
    }
    file(session, "names.folded", &text);
}

/// A callgrind file whose lines and paths are hostile.
fn hostile_sources(session: &Session) {
    let folder = "</script><b>\u{2028}";
    let nested = format!("{folder}/src\u{202e}");
    // A slash in the name makes two folders of it.
    std::fs::create_dir_all(session.path(&nested)).expect("a folder");
    let source = format!("{nested}/__proto__.c");
    let text = "int f() {\n  </script><script>window.owned=1</script>\n  <!-- \u{2028} \u{202e} \u{1} \t\u{0b}-->\n}\n";
    file(session, &source, text);
    let path = session.path(&source);
    let text = format!("events: Ir\n\nfl={}\nfn=f\n1 10\n2 500\n3 20\n", path.display());
    file(session, "sources.callgrind", &text);
}

/// A profile of 5,000 threads.
fn threads(session: &Session) {
    let text: String =
        (0..5000).map(|at| format!("@worker-{at} start;work-{} {}\n ", at % 7, at + 1)).collect();
    let profile = treering_testing::stacks(&text);
    assert!(profile.threads.len() >= 5000, "{} threads", profile.threads.len());
    let mut to = File::create(session.path("threads.trg")).expect("the folder can be written");
    treering_formats::trg::write(&profile, &mut to).expect("it is written");
}

#[test]
fn odd_and_hostile_profiles_are_shown() {
    let session = Session::new();
    // The first one is also printed, and the one with sources.
    file(&session, "printed.folded", "main;work 750\nmain;copy 250\n");
    hostile_names(&session);
    hostile_sources(&session);
    threads(&session);
    file(&session, "single.folded", "main 5\n");
    file(&session, "deep.folded", &format!("{} 5\nfunction0 1\n", deep(100_000)));
    file(
        &session,
        "long.folded",
        &format!("main;{} 5\nmain;{}::g<int>(char) 7\n", "x".repeat(1 << 20), "n::".repeat(1 << 18)),
    );
    file(&session, "zero.folded", "main;work 0\n");
    file(&session, "nameless.folded", ";; 3\n[unknown];0x0 4\nmain; 5\n");
    let profiles = [
        "printed.folded",
        "names.folded",
        "sources.callgrind",
        "threads.trg",
        "single.folded",
        "zero.folded",
        "deep.folded",
        "long.folded",
        "nameless.folded",
    ];
    let pages: Vec<PathBuf> = profiles.iter().map(|profile| page(&session, profile)).collect();
    for page in &pages {
        let text = std::fs::read_to_string(page).expect("it was written");
        assert!(!text.contains("window.owned=1</script>"), "{}", page.display());
    }
    let Some(mut command) = driver("odd.mjs") else { return };
    let shown = command.args(&pages).output().expect("node runs");
    let text = [shown.stdout, shown.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(shown.status.success(), "{text}");
}

/// A stack of so many functions.
fn deep(functions: usize) -> String {
    let names: Vec<String> = (0..functions).map(|at| format!("function{}", at % 100)).collect();
    names.join(";")
}

#[test]
fn profiles_without_anything_are_refused() {
    let session = Session::new();
    for (name, text) in [("empty.folded", ""), ("empty.trg", "")] {
        file(&session, name, text);
        let outcome = session.run(&["view", "--no-open", "-o", "page.html", name]);
        let error = outcome.error();
        assert!(!error.is_empty() && !session.path("page.html").exists(), "{name}: {outcome:#?}");
    }
}

#[test]
fn differences_of_different_metrics_are_refused() {
    let session = Session::new();
    file(&session, "a.folded", "main;work 750\n");
    let bytes = "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{\"frames\":[{\"name\":\"main\"}]},\"profiles\":[{\"type\":\"sampled\",\"name\":\"heap\",\"unit\":\"bytes\",\"startValue\":0,\"endValue\":9,\"samples\":[[0]],\"weights\":[9]}]}";
    file(&session, "b.speedscope.json", bytes);
    let outcome = session.run(&["view", "--no-open", "--diff", "a.folded", "b.speedscope.json"]);
    assert!(outcome.error().contains("cannot be compared"), "{outcome:#?}");
    assert!(outcome.stderr.contains("hint: record both in the same way"), "{outcome:#?}");
}

/// The page compared the sum of three runs with one run, and called each function three times as costly.
#[test]
fn differences_of_different_numbers_of_runs_are_refused() {
    let session = Session::new();
    file(&session, "one.folded", "main;work 750\n");
    let merged = session.run(&["merge", "-o", "three.trg", "one.folded", "one.folded", "one.folded"]);
    assert!(merged.status.success(), "{merged:#?}");
    for command in [&["view", "--no-open", "--diff"][..], &["diff"]] {
        let outcome = session.run(&[command, &["one.folded", "three.trg"]].concat());
        assert!(outcome.error().contains("base is the sum of 1 runs and head of 3"), "{outcome:#?}");
    }
    assert!(!session.path("three.html").exists());
}

#[test]
fn a_difference_of_files_without_commands_is_called_by_their_names() {
    let session = Session::new();
    for name in ["a.folded", "b.folded"] {
        file(&session, name, "main;work 750\n");
    }
    let outcome = session.run(&["view", "--no-open", "-o", "page.html", "--diff", "a.folded", "b.folded"]);
    assert!(outcome.status.success(), "{outcome:#?}");
    let page = std::fs::read_to_string(session.path("page.html")).expect("it was written");
    assert!(page.contains("<title>a.folded → b.folded – Treering</title>"));
}

#[test]
fn costs_that_scripts_have_no_numbers_for_are_said_to_be_rounded() {
    let session = Session::new();
    for (name, cost, rounds) in
        [("exact.folded", "9007199254740985", false), ("rounded.folded", "9007199254740986", true)]
    {
        file(&session, name, &format!("main;work {cost}\nmain 7\n"));
        let outcome = session.run(&["view", "--no-open", "-o", "page.html", "--force", name]);
        assert_eq!(outcome.stderr.contains("note: the page rounds"), rounds, "{outcome:#?}");
    }
}

#[test]
fn without_a_browser_the_path_is_printed() {
    let session = Session::new();
    file(&session, "a.folded", "main;work 750\n");
    let mut command = session.command(&["view", "a.folded"]);
    command.env("DISPLAY", ":99").env("PATH", session.path("nowhere")).env_remove("SSH_CONNECTION");
    let outcome = Outcome::of(command.output().expect("treering runs"));
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("a.html") && outcome.stderr.contains("cannot start a browser"),
        "{outcome:#?}"
    );
}
