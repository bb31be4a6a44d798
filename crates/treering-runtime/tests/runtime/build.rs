//! The compiler's answers to programs that use the attribute: the uses it refuses, with their messages, and
//! the code that is left when the runtime is built without its feature.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A package of its own with these programs, that uses the runtime with or without its feature.
struct Package {
    directory: PathBuf,
}

impl Package {
    fn new(name: &str, features: &str, programs: &[(&str, &str)]) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(directory.join("src"));
        std::fs::create_dir_all(directory.join("src/bin")).expect("the directory");
        let runtime = Path::new(env!("CARGO_MANIFEST_DIR"));
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2021\"\n[workspace]\n\
             [dependencies]\ntreering-runtime = {{ path = {runtime:?}, {features} }}\n"
        );
        std::fs::write(directory.join("Cargo.toml"), manifest).expect("the manifest");
        // The versions that this workspace uses, which are there.
        std::fs::copy(runtime.join("../../Cargo.lock"), directory.join("Cargo.lock")).expect("the lock file");
        for (program, source) in programs {
            std::fs::write(directory.join(format!("src/bin/{program}.rs")), source).expect("the program");
        }
        Self { directory }
    }

    fn cargo(&self, arguments: &[&str]) -> Output {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build");
        Command::new(env!("CARGO"))
            .current_dir(&self.directory)
            .env("CARGO_TARGET_DIR", target)
            .env_remove("RUSTFLAGS")
            .args(arguments)
            .arg("--offline")
            .output()
            .expect("cargo runs")
    }
}

/// Programs, and the line and column of the error with a part of its words.
const REFUSED: &[(&str, &str, &str)] = &[
    ("constant", "#[I]\nconst fn f() {}\nfn main() {}", "2:1: error: a `const fn` may run in the compiler"),
    ("structure", "#[I]\nstruct S;\nfn main() {}", "2:1: error: only functions can be instrumented"),
    ("value", "#[I]\npub const C: u32 = 1;\nfn main() {}", "2:5: error: only functions can be instrumented"),
    ("block", "struct S;\n#[I]\nimpl S {}\nfn main() {}", "3:1: error: only functions can be instrumented"),
    ("bodiless", "trait T {\n#[I]\nfn f();\n}\nfn main() {}", "3:4: error: a function without a body"),
    (
        "unknown",
        "#[I(nam = \"x\")]\nfn main() {}",
        ": error: unknown option `nam`; there are `name`, `timed_one_in` and `leaf`",
    ),
    ("twice", "#[I(name = \"x\", name = \"y\")]\nfn main() {}", ": error: `name` is given twice"),
    ("without", "#[I(name)]\nfn main() {}", ": error: expected `name = ...`"),
    ("empty", "#[I(name = , timed_one_in = 1)]\nfn main() {}", ": error: `name` has no value"),
    ("leaf", "#[I(leaf = 1)]\nfn main() {}", ": error: `leaf` has no value"),
    ("waiting", "#[I(leaf)]\nasync fn f() {}\nfn main() {}", ": error: an `async fn` cannot be a `leaf`"),
    ("literal", "#[I(\"x\")]\nfn main() {}", ": error: expected the name of an option"),
    ("number", "#[I(name = 7)]\nfn main() {}", "expected `&str`, found integer"),
    ("type_error", "#[I]\nfn f() -> u32 { \"x\" }\nfn main() {}", "2:17: error[E0308]: mismatched types"),
];

#[test]
fn items_that_cannot_be_instrumented_are_refused_at_their_position() {
    let full: Vec<(&str, String)> = REFUSED
        .iter()
        .map(|(name, source, _)| (*name, source.replace("#[I", "#[treering_runtime::instrument")))
        .collect();
    let programs: Vec<(&str, &str)> = full.iter().map(|(name, source)| (*name, source.as_str())).collect();
    let package = Package::new("refused", "", &programs);
    let output = package.cargo(&["check", "--keep-going", "--message-format=short"]);
    let said = String::from_utf8_lossy(&output.stderr);
    for (name, _, expected) in REFUSED {
        let of_it = |line: &&str| line.starts_with(&format!("src/bin/{name}.rs:"));
        let lines: Vec<&str> = said.lines().filter(of_it).collect();
        // One error and no other that follows from it, but for what the type checker adds.
        assert!(lines.iter().any(|line| line.contains(expected)), "{name}: {lines:?}\n{said}");
        assert!(lines.len() == 1, "{name}: {lines:?}");
    }
}

const EVERYTHING: &str = r#"
    use treering_runtime::{events::function_kind, instrument, leaf, scope, site, Allocator, Function, Options};

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator::new();

    #[instrument(timed_one_in = 2)]
    fn solve(steps: u32) -> u32 {
        scope!("first");
        scope!("second", timed_one_in = 16);
        let _scope = site!("third").enter();
        (0..steps).sum()
    }

    fn interpret() {
        let call = Function::of_kind(function_kind::BUILTIN, b"everything::add", b"", 0).enter();
        let before = treering_runtime::ticks();
        {
            leaf!("fourth");
        }
        let passed = treering_runtime::ticks() - before;
        treering_runtime::line(1, passed, passed);
        treering_runtime::rest_of_line(1, passed, passed);
        let tag = treering_runtime::allocated(8);
        unsafe { treering_runtime::freed(tag, 8) };
        call.leave();
    }

    #[instrument]
    async fn wait() -> Result<u32, std::num::ParseIntError> {
        Ok("1".parse::<u32>()? + std::future::ready(1).await)
    }

    fn main() {
        treering_runtime::set_profiler(Options::default());
        interpret();
        let mut future = Box::pin(wait());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let done = std::future::Future::poll(future.as_mut(), &mut context);
        println!("{} {:?} {}", solve(5), done, vec![1; 3].len());
        treering_runtime::set_call_cost(1.0);
        treering_runtime::clear_profiler();
    }
"#;

#[test]
fn without_the_feature_nothing_is_left_of_the_runtime() {
    let package = Package::new("disabled", "default-features = false", &[("everything", EVERYTHING)]);
    let built = package.cargo(&["build", "--release", "-q"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build/release/everything");
    let run = Command::new(&program).current_dir(&package.directory).output().expect("the program runs");
    assert_eq!(String::from_utf8_lossy(&run.stdout), "10 Ready(Ok(2)) 3\n");
    assert!(!package.directory.join("treering.trg").exists());
    let bytes = std::fs::read(&program).expect("the program");
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("everything"), "the search finds nothing at all");
    for trace in [
        "treering_state",
        "treering_current_thread",
        "TREERING_OUTPUT",
        "everything::solve",
        "everything::add",
    ] {
        assert!(!holds(trace), "{trace} is in the program");
    }
}

#[test]
fn with_the_feature_the_same_program_is_profiled() {
    let package = Package::new("enabled", "", &[("everything_on", EVERYTHING)]);
    let built = package.cargo(&["build", "-q"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build/debug/everything_on");
    let run = Command::new(&program).current_dir(&package.directory).output().expect("the program runs");
    assert_eq!(String::from_utf8_lossy(&run.stdout), "10 Ready(Ok(2)) 3\n");
    let profile = std::fs::read(package.directory.join("treering.trg")).expect("the profile");
    assert!(!profile.is_empty());
    std::fs::remove_file(package.directory.join("treering.trg")).expect("the profile");
}
