//! `treering dump`.

use serde_json::Value;
use treering_testing::programs::KNOWN_SHARES;

use crate::session::{Session, program};

fn recording() -> Session {
    let session = Session::new();
    session.record(&[], &program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["60"]));
    session
}

#[test]
fn every_frame_is_a_line_of_json() {
    let session = recording();
    let text = session.output(&["dump", "treering.trg"]);
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON value a line")).collect();
    assert!(lines.len() > 3, "{text}");
    assert!(lines.iter().all(Value::is_object), "{text}");
    assert!(text.contains("forty_percent"), "strings are shown");
}

#[test]
fn a_damaged_frame_is_told_and_the_others_are_shown() {
    let session = recording();
    let whole = session.output(&["dump", "treering.trg"]).lines().count();
    let mut bytes = std::fs::read(session.path("treering.trg")).expect("it was just written");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(session.path("damaged.trg"), bytes).expect("it can be written");
    let outcome = session.run(&["dump", "damaged.trg"]);
    assert!(outcome.stdout.lines().count() + 2 >= whole, "{outcome:#?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:#?}");
    assert!(outcome.stderr.contains("damaged.trg"), "{outcome:#?}");
}
