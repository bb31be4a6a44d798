//! `treering bench scale`.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::session::{Session, program, words};

/// Compiles the program whose growth is known.
fn compile(session: &Session, options: &[&str]) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/programs/growing.c");
    let path = session.path("growing");
    let made = Command::new("cc").args(["-g", "-O1"]).args(options).args([source, "-o"]).arg(&path).status();
    assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
    path
}

fn scale(session: &Session, options: &[&str], program: &[std::ffi::OsString]) -> crate::session::Outcome {
    let mut all = words(&[&["bench", "scale"], options, &["--"]].concat());
    all.extend(program.iter().cloned());
    session.run(&all)
}

fn json(session: &Session, sizes: &str, options: &[&str]) -> Value {
    let outcome = scale(session, &["-p", sizes, "--json"], &program(&compile(session, options), &["{n}"]));
    assert!(outcome.status.success(), "{outcome:#?}");
    serde_json::from_str(&outcome.stdout).expect("it is JSON")
}

fn row<'a>(scaling: &'a Value, name: &str) -> &'a Value {
    let functions = scaling["functions"].as_array().expect("functions");
    functions.iter().find(|row| row["function"] == name).unwrap_or_else(|| panic!("no row of {name}"))
}

/// Half of all pairs of random items are moved: n (n − 1) / 4 times, which the forms do not have. `draw` is called n times.
#[test]
fn the_function_that_makes_a_quadratic_program_slow_is_named() {
    let session = Session::new();
    let scaling = json(&session, "n=100..3200*2", &[]);
    let verdict = &scaling["verdict"];
    assert_eq!((&verdict["function"], &verdict["growth"]), (&"insert".into(), &"n²".into()), "{verdict}");
    assert_eq!((&verdict["calls_growth"], &verdict["cost_per_call_growth"]), (&"n".into(), &"n".into()));
    assert_eq!(verdict["functions_within"], serde_json::json!(["insert", "move_up"]));
    let callers = verdict["callers"].as_array().expect("callers");
    assert_eq!(callers.last(), Some(&"main".into()));
    assert_eq!(scaling["exact"], true);
    assert_eq!(scaling["sizes"], serde_json::json!([100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0]));
    let draw = row(&scaling, "draw");
    assert_eq!((&draw["self_cost"]["growth"], &draw["calls"]["growth"]), (&"n".into(), &"n".into()));
    assert_eq!(draw["calls"]["values"], serde_json::json!([100, 200, 400, 800, 1600, 3200]));
    let moves = row(&scaling, "move_up")["calls"]["values"].as_array().expect("values").clone();
    let moves: Vec<u64> = moves.iter().map(|value| value.as_u64().expect("a number")).collect();
    assert_eq!(moves, [100, 200, 400, 800, 1600, 3200].map(moves_of));
    // As many as are foretold, a fiftieth apart.
    let foretold = row(&scaling, "move_up")["calls"]["foretold"].as_f64().expect("a number");
    assert!((foretold / moves_of(32_000) as f64 - 1.0).abs() < 0.02, "{foretold}");
    let notes = scaling["notes"].as_array().expect("notes");
    assert!(
        notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains("counted twice"))),
        "{notes:?}"
    );
}

/// The moves of the program, counted independently.
fn moves_of(items: usize) -> u64 {
    let mut next = 12345_u32;
    let (mut list, mut moves) = (Vec::<u32>::new(), 0);
    for _ in 0..items {
        next = next.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let item = next >> 8;
        let place = list.partition_point(|other| *other <= item);
        moves += (list.len() - place) as u64;
        list.insert(place, item);
    }
    moves
}

#[test]
fn a_linear_program_has_no_culprit() {
    let session = Session::new();
    let scaling = json(&session, "n=1000..16000*2", &["-DLINEAR"]);
    let verdict = &scaling["verdict"];
    assert_eq!((&verdict["function"], &verdict["growth"]), (&Value::Null, &"n".into()), "{verdict}");
}

#[test]
fn profiles_that_are_there_give_the_same_and_a_picture() {
    let session = Session::new();
    let path = compile(&session, &[]);
    let mut files = Vec::new();
    for size in ["200", "400", "800", "1600", "3200"] {
        let output = format!("{size}.trg");
        let mut all = words(&["count", "--quiet", "--tree", "-o", &output, "--"]);
        all.extend(program(&path, &[size]));
        assert!(session.run(&all).status.success());
        files.push(format!("{size}={output}"));
    }
    let all: Vec<&str> = ["bench", "scale", "-o", "growth.svg", "--files"]
        .into_iter()
        .chain(files.iter().map(String::as_str))
        .collect();
    let text = session.output(&all);
    assert!(text.starts_with("n²: insert, called n times, cost per call grows with n\n"), "{text}");
    assert!(text.contains("└ move_up"), "{text}");
    let svg = std::fs::read_to_string(session.path("growth.svg")).expect("it was drawn");
    assert!(svg.contains("n²: insert") && svg.contains("with all it calls"), "{svg}");
    // A second one may take its place, but not that of anything else.
    session.output(&all);
    std::fs::write(session.path("growth.svg"), "mine").expect("it can be written");
    assert!(session.run(&all).error().contains("growth.svg"));
}

/// One function of each order, and what a fit of whole functions takes for another one: `mixed` has a large linear part.
#[test]
fn functions_of_known_order_have_that_order() {
    let session = Session::new();
    let path = session.path("orders");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/programs/orders.c");
    let made = Command::new("cc").args(["-g", "-O1", source, "-lm", "-o"]).arg(&path).status();
    assert!(made.is_ok_and(|made| made.success()), "the compiler is installed");
    let outcome = scale(&session, &["-p", "n=64..2048*2", "--json"], &program(&path, &["{n}"]));
    assert!(outcome.status.success(), "{outcome:#?}");
    let scaling: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    assert_eq!(scaling["verdict"]["function"], "cube");
    for (name, form) in [
        ("constant", "1"),
        ("halvings", "log n"),
        ("root", "√n"),
        ("linear", "n"),
        ("bsearch_", "n log n"),
        ("sift", "n log n"),
        ("merge", "n log n"),
        ("rows", "n^1.5"),
        ("insertion", "n²"),
        ("mixed", "n²"),
        ("squares_log", "n² log n"),
        ("cube", "n³"),
    ] {
        assert_eq!(row(&scaling, name)["self_cost"]["growth"], form, "{name}");
    }
    let merge_sort = row(&scaling, "msort");
    assert_eq!(
        (&merge_sort["calls"]["growth"], &merge_sort["total_cost"]["growth"]),
        (&"n".into(), &"n log n".into())
    );
}

#[test]
fn sizes_and_commands_that_tell_nothing_are_refused() {
    let session = Session::new();
    let path = compile(&session, &[]);
    let with = |options: &[&str], arguments: &[&str]| {
        let outcome = scale(&session, options, &program(&path, arguments));
        assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        outcome.error().to_owned()
    };
    assert!(with(&["-p", "n=100"], &["{n}"]).contains("one size tells nothing of growth"));
    assert!(with(&["-p", "n=100,200"], &["{n}"]).contains("2 sizes tell too little"));
    assert!(with(&["-p", "n=0,100,200"], &["{n}"]).contains("the size 0 is below 1"));
    assert!(with(&["-p", "n=a,b,c"], &["{n}"]).contains("\"a\" is not a number"));
    assert!(with(&["-p", "n=100..400*2"], &["300"]).contains("{n}"));
    assert!(with(&["-p", "n=100..400*2"], &["{m}"]).contains("{m} names no parameter"));
    let failed = with(&["-p", "n=100..400*2", "-p", "zero=0"], &["{zero}", "{n}"]);
    assert!(failed.contains("n = 100: ended with status 3"), "{failed}");
    let outcome = scale(&session, &["-p", "n=1..4"], &words(&["./no-such-program", "{n}"]));
    let said = outcome.error();
    assert!(
        said.contains("n = 1: ended with status 127") && said.contains("cannot run ./no-such-program"),
        "{said}"
    );
    let endless =
        scale(&session, &["-p", "n=1..4", "--timeout", "0.5"], &words(&["sh", "-c", "sleep 1000 # {n}"]));
    assert!(endless.error().contains("not done after 0.5 s"), "{endless:#?}");
}

#[test]
fn an_interrupted_measurement_ends_by_the_signal() {
    // It ended with status 2, as after a mistake, and a script went on.
    let session = Session::new();
    let inner = "exec \"$@\" bench scale -p n=1,2,4 -- sh -c 'kill -INT '$$'; sleep 100 # {n}'";
    let treering = session.command::<&str>(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", inner, "sh"]).arg(treering.get_program()).args(treering.get_args());
    command.current_dir(session.path(".")).env("XDG_CACHE_HOME", session.path("cache"));
    let output = command.output().expect("treering runs");
    assert_eq!(output.status.signal(), Some(libc::SIGINT), "{output:?}");
}
