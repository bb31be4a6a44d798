//! `treering merge`.

use treering_testing::programs::{KNOWN_SHARES, RECURSION};

use crate::session::{Session, program};

/// Records two programs into `a.trg` and `b.trg`.
fn two_recordings(session: &Session) {
    let shares = program(&KNOWN_SHARES.build().expect("the compiler is installed"), &["100"]);
    let recursion = program(&RECURSION.build().expect("the compiler is installed"), &["20", "20"]);
    for (file, words) in [("a.trg", shares), ("b.trg", recursion)] {
        let outcome = session.record_any(&["-o", file], &words);
        assert!(outcome.status.success(), "{outcome:#?}");
    }
}

#[test]
fn costs_of_all_profiles_add_up() {
    let session = Session::new();
    two_recordings(&session);
    session.output(&["merge", "a.trg", "b.trg", "-o", "c.trg"]);
    let [a, b, c] = ["a.trg", "b.trg", "c.trg"].map(|file| session.flat(&[file]));
    assert_eq!(a.run_cost() + b.run_cost(), c.run_cost());
    assert_eq!(a.samples() + b.samples(), c.samples());
    assert_eq!(c.cost("forty_percent").own, a.cost("forty_percent").own);
    assert_eq!(c.cost("direct").total, b.cost("direct").total);
    assert_eq!(c.cost("main").total, a.cost("main").total + b.cost("main").total);
}

#[test]
fn the_order_does_not_matter() {
    let session = Session::new();
    two_recordings(&session);
    session.output(&["merge", "a.trg", "b.trg", "-o", "ab.trg"]);
    session.output(&["merge", "b.trg", "a.trg", "-o", "ba.trg"]);
    let [ab, ba] = ["ab.trg", "ba.trg"].map(|file| session.flat(&[file]));
    // Rows that are equal in cost and name may come in either order.
    let sorted = |flat: &crate::profile::Flat| {
        let mut rows: Vec<String> = flat.rows().iter().map(ToString::to_string).collect();
        rows.sort();
        rows
    };
    assert_eq!(sorted(&ab), sorted(&ba));
}

#[test]
fn a_file_that_cannot_be_read_leaves_no_result() {
    let session = Session::new();
    two_recordings(&session);
    let outcome = session.run(&["merge", "a.trg", "missing.trg", "-o", "c.trg"]);
    assert!(outcome.error().contains("missing.trg"));
    assert!(!session.path("c.trg").exists());
}
