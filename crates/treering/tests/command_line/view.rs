//! `treering view`: pages, and what a real browser shows of them.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use treering_testing::programs::{KNOWN_SHARES, RECURSION, installed};

use crate::octave::octave;
use crate::runtime::{Program, run_in};
use crate::session::{Session, program, treering, words};
use crate::skip;

/// A profile of folded stacks in the session's folder.
fn folded(session: &Session, name: &str, stacks: &str) -> PathBuf {
    let path = session.path(name);
    std::fs::write(&path, stacks).expect("the folder can be written");
    path
}

fn page(session: &Session, arguments: &[&str]) -> String {
    let mut all = vec!["view", "--no-open", "-o", "page.html"];
    all.extend(arguments);
    session.output(&all);
    std::fs::read_to_string(session.path("page.html")).expect("the page was written")
}

#[test]
fn a_page_is_one_file_that_can_ask_for_nothing() {
    let session = Session::new();
    folded(&session, "a.folded", "main;work 750\nmain;copy 250\n");
    let page = page(&session, &["a.folded"]);
    assert!(page.starts_with("<!doctype html>"), "{}", &page[..200]);
    let policy = page.lines().find(|line| line.contains("Content-Security-Policy")).expect("it has a policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'sha256-"), "{policy}");
    // Nothing is loaded from elsewhere: every script and style stands in the file.
    for loads in ["<script src", "<link", "@import", "<img", "<iframe"] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn hostile_names_are_data() {
    let session = Session::new();
    let name = "</script><script>document.title='owned'</script>";
    folded(&session, "a.folded", &format!("main;{name} 5\n"));
    let page = page(&session, &["a.folded", "--title", &format!("<b>{name}")]);
    assert!(!page.contains("document.title='owned'</script>"));
    assert!(page.contains("<title>&lt;b&gt;"));
}

#[test]
fn a_page_goes_to_standard_output() {
    let session = Session::new();
    folded(&session, "a.folded", "main;work 750\n");
    let page = session.output(&["view", "a.folded", "-o", "-"]);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
}

#[test]
fn only_pages_of_ours_are_replaced() {
    let session = Session::new();
    folded(&session, "a.folded", "main;work 750\n");
    std::fs::write(session.path("page.html"), "<!doctype html><title>theirs</title>")
        .expect("it can be written");
    let outcome = session.run(&["view", "a.folded", "--no-open", "-o", "page.html"]);
    assert!(outcome.error().contains("is not a page that Treering wrote"), "{outcome:#?}");
    let outcome = session.run(&["view", "a.folded", "--no-open", "-o", "./a.folded"]);
    assert!(outcome.error().contains("is the input"), "{outcome:#?}");
    page(&session, &["a.folded", "--force"]);
    page(&session, &["a.folded"]);
}

#[test]
fn without_a_display_the_path_is_printed() {
    let session = Session::new();
    folded(&session, "a.folded", "main;work 750\n");
    let mut command = session.command(&["view", "a.folded"]);
    for name in ["DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(name);
    }
    let outcome = crate::session::Outcome::of(command.output().expect("treering runs"));
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("a.html") && outcome.stderr.contains("open it in a browser"),
        "{outcome:#?}"
    );
}

/// A callgrind file with a line in each of these files.
fn naming(session: &Session, files: &[(&str, u32)]) -> PathBuf {
    let mut text = "events: Ir\n".to_owned();
    for (at, (file, line)) in files.iter().enumerate() {
        text += &format!("\nfl={}\nfn=f{at}\n{line} 10\n", session.path(file).display());
    }
    folded(session, "forged.callgrind", &text)
}

#[test]
fn only_source_code_is_copied_into_a_page() {
    let session = Session::new();
    std::fs::create_dir(session.path("src")).expect("a folder");
    for name in ["src/solve.c", "diary.txt", "short.c", "binary.c"] {
        std::fs::write(session.path(name), format!("the text of {name}\n")).expect("a file");
    }
    std::fs::write(session.path("binary.c"), b"key\0\x01\n").expect("a file");
    std::os::unix::fs::symlink(session.path("diary.txt"), session.path("link.c")).expect("a link");
    let files = [
        ("src/solve.c", 1),
        ("diary.txt", 1),
        ("short.c", 900),
        ("binary.c", 1),
        ("link.c", 1),
        ("none.c", 1),
    ];
    naming(&session, &files);
    let outcome = session.run(&["view", "--no-open", "-o", "page.html", "forged.callgrind"]);
    assert!(outcome.status.success(), "{outcome:#?}");
    let folder = session.path("src").canonicalize().expect("it is there");
    let said = format!("the page has text of 1 source file of this machine, from {} (1)", folder.display());
    assert!(outcome.stderr.contains(&said), "{outcome:#?}");
    assert!(outcome.stderr.contains("names 4 files of this machine that do not look like"), "{outcome:#?}");
    let texts = texts_of(&session, "page.html");
    assert!(texts.contains("the text of src/solve.c"), "{texts}");
    for left_out in ["the text of diary.txt", "the text of short.c", "key"] {
        assert!(!texts.contains(left_out), "{left_out}: {texts}");
    }
    let outcome = session.run(&["view", "--no-open", "--no-source", "-o", "page.html", "forged.callgrind"]);
    assert!(!outcome.stderr.contains("source file"), "{outcome:#?}");
    assert!(!texts_of(&session, "page.html").contains("the text of"));
}

/// The inflated source text of a page.
fn texts_of(session: &Session, page: &str) -> String {
    let page = std::fs::read_to_string(session.path(page)).expect("the page was written");
    let pieces = page.split("data-piece=\"code\"").skip(1);
    let text: String = pieces
        .map(|piece| piece.split_once('>').and_then(|(_, rest)| rest.split_once('<')).expect("a piece").0)
        .collect();
    let mut texts = Vec::new();
    GzDecoder::new(&*STANDARD.decode(text).expect("base64")).read_to_end(&mut texts).expect("gzip");
    String::from_utf8_lossy(&texts).into_owned()
}

#[test]
fn functions_of_another_build_are_the_same_functions() {
    let Some(compiler) = installed("cc") else { return skip("no C compiler") };
    let session = Session::new();
    let source = session.path("p.c");
    let text = "static int work(int n) { return n < 2 ? n : work(n - 1) + work(n - 2); }\n\
                int main() { return work(STEPS) == 1; }\n";
    std::fs::write(&source, text).expect("a file");
    for (steps, name) in [("12", "base.trg"), ("14", "new.trg")] {
        let mut build = Command::new(&compiler);
        build.args(["-g", "-O0", "-Wl,--build-id", &format!("-DSTEPS={steps}"), "-o"]).arg(session.path("p"));
        assert!(build.arg(&source).status().expect("it runs").success());
        let program = session.path("p");
        let counted = session.run(&[
            Path::new("count"),
            "-q".as_ref(),
            "--tree".as_ref(),
            "-o".as_ref(),
            name.as_ref(),
            "--".as_ref(),
            &program,
        ]);
        if !counted.status.success() {
            return skip("no difference of counts: this machine refuses to trace");
        }
    }
    let functions = |arguments: &[&str]| {
        let page = page(&session, arguments);
        let (_, head) = page.split_once("id=\"head\">").expect("a head");
        let head: serde_json::Value =
            serde_json::from_str(head.split_once("</script>").expect("its end").0).expect("JSON");
        (head["functions"].as_u64().expect("a number"), head["metrics"][0].clone())
    };
    let (base, _) = functions(&["base.trg"]);
    let (both, metric) = functions(&["--diff", "base.trg", "new.trg"]);
    assert_eq!(both, base, "each function stands once, whatever build it is of");
    assert!(metric["baseCost"].as_u64() < metric["runCost"].as_u64(), "{metric}");
}

#[test]
fn profiles_of_different_metrics_are_not_compared() {
    let session = Session::new();
    folded(&session, "a.folded", "main;work 750\n");
    let callgrind =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/formats/callgrind/plain.callgrind");
    let outcome = session.run(
        &words(&["view", "--diff", "a.folded"]).into_iter().chain([callgrind.into()]).collect::<Vec<_>>(),
    );
    assert!(outcome.error().contains("they cannot be compared"), "{outcome:#?}");
}

#[test]
fn differences_without_stacks_show_functions_and_calls() {
    let session = Session::new();
    for (name, calls) in [("base.callgrind", 3), ("new.callgrind", 5)] {
        let text = format!(
            "events: Ir\nfn=main\n1 10\ncfn=work\ncalls={calls} 2\n1 {}\n\nfn=work\n2 {}\n",
            calls * 20,
            calls * 20
        );
        std::fs::write(session.path(name), text).expect("a file");
    }
    folded(&session, "stacks.folded", "main 10\nmain;work 60\n");
    let head = |arguments: &[&str]| -> serde_json::Value {
        let page = page(&session, arguments);
        let (_, head) = page.split_once("id=\"head\">").expect("a head");
        serde_json::from_str(head.split_once("</script>").expect("its end").0).expect("JSON")
    };
    let of_calls = head(&["--diff", "base.callgrind", "new.callgrind"]);
    assert_eq!(of_calls["shape"], "arcs");
    assert_eq!(
        (&of_calls["metrics"][0]["baseCost"], &of_calls["metrics"][0]["runCost"]),
        (&70.into(), &110.into())
    );
    assert_eq!(of_calls["verdict"]["text"], "+57.14 % Ir: main → work, 3 → 5 calls, cost per call unchanged");
    assert_eq!(head(&["stacks.folded", "--diff", "stacks.folded"])["shape"], "tree");
    let part = session.run(&words(&["view", "--diff", "base.callgrind", "new.callgrind", "--focus", "work"]));
    assert!(part.error().contains("only all of them can be compared"), "{part:#?}");
}

/// Profiles of all kinds, as far as they can be made here: sampled, counted with its tree and without, both joined with samples,
/// functions and tasks that report themselves, those of CBS with memory points, Octave.
fn profiles(session: &Session) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut add = |name: &str| {
        std::fs::rename(session.path("treering.trg"), session.path(name)).expect("it was written");
        all.push(session.path(name));
    };
    match KNOWN_SHARES.build() {
        Ok(path) => {
            let sampled = session.record_any(&[], &program(&path, &["300"]));
            match sampled.status.success() {
                true => add("sampled.trg"),
                false => skip(&format!(
                    "no page of samples: {}",
                    sampled.stderr.lines().next().unwrap_or_default()
                )),
            }
        }
        Err(error) => skip(&error.to_string()),
    }
    match RECURSION.build() {
        Ok(path) => {
            for (options, name) in [(&["--tree"][..], "tree.trg"), (&[][..], "plain.trg")] {
                let mut all = words(&["count", "-q"]);
                all.extend(words(options));
                all.push("--".into());
                all.extend(program(&path, &["5"]));
                match session.run(&all).status.success() {
                    true => add(name),
                    false => skip("no page of counts: this machine refuses to trace"),
                }
            }
        }
        Err(error) => skip(&error.to_string()),
    }
    join(session, &mut add);
    if let Some(path) = Program::Names.compile(session) {
        run_in(session, &path, &["20"]);
        add("instrumented.trg");
    }
    if let Some(path) = Program::Tasks.compile(session) {
        run_in(session, &path, &["5", "1"]);
        add("tasks.trg");
    }
    if octave("view").is_some() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/octave/some_script.m");
        let outcome = session.run(&[Path::new("octave"), &script]);
        match outcome.status.success() {
            true => add("octave.trg"),
            false => skip(&format!("no page of Octave: {}", outcome.stderr)),
        }
    }
    all
}

/// Joins the counted profiles with samples, if there are any.
fn join(session: &Session, add: &mut impl FnMut(&str)) {
    for (counted, name) in [("tree.trg", "joined_tree.trg"), ("plain.trg", "joined.trg")] {
        if !session.path(counted).exists() {
            continue;
        }
        let path = RECURSION.build().expect("it was built before");
        if session.record_any(&["-o", "recursion.trg"], &program(&path, &["20", "20"])).status.success() {
            session.output(&["merge", "--join", counted, "recursion.trg", "-o", "treering.trg"]);
            add(name);
        }
    }
}

/// A driver of the page's tests, where there are a browser and the packages it needs.
pub(crate) fn driver(name: &str) -> Option<Command> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../treering-viewer/web");
    let (Some(node), Some(_)) = (installed("node"), installed("chromium")) else {
        skip("node and chromium show pages; one of them is not installed");
        return None;
    };
    if !web.join("node_modules/puppeteer-core").is_dir() {
        skip("the packages of the page's tests are not installed; cargo xtask test does it");
        return None;
    }
    let mut command = Command::new(node);
    command.arg(web.join(name));
    Some(command)
}

#[test]
fn a_browser_shows_the_numbers_of_the_reports() {
    let Some(mut command) = driver("browser.mjs") else { return };
    let session = Session::new();
    let profiles = profiles(&session);
    assert!(!profiles.is_empty(), "no profile could be made");
    let shown = command.arg(treering()).args(&profiles).output().expect("node runs");
    let text = [shown.stdout, shown.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(shown.status.success(), "{text}");
}
