//! Programs that want memory where the translator's may lie, and children that are not to be traced.

use treering_profile::UncountedReason;
use treering_testing::programs::{CONTROL_FLOW, HEAP, UNTRACED, WANTED_MEMORY};
use treering_translator::{Counts, Ended};

use crate::instructions::{check, check_own, counted, executions, of_function};

/// Where the translator has counters, tables and translated code of programs linked to low addresses.
const COUNTERS: &str = "550000000000";
const TABLES: &str = "7a510000";
const CODE: &str = "68000000";

fn assert_all(counts: &Counts) {
    assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(3), &Vec::new()));
}

#[test]
fn counters_make_room_for_memory_at_any_address() {
    let program = WANTED_MEMORY.build().unwrap();
    // Memory that the program maps there is 0 at first, and no count is lost.
    assert_all(&check_own(&program, &[COUNTERS, "1000"]));
    let elsewhere = ["300000000000", "7e8000000000", "54ff00000000", "10000000", BEHIND_TABLES];
    let arguments = elsewhere.map(|wanted| [wanted, "1000"]);
    // The last one is all that would be looked at first.
    for arguments in arguments.iter().chain(&[[COUNTERS, "1000"], ["54f000000000", "6000000000"]]) {
        for asks in [&[][..], &["asks"]] {
            let counts = counted(&program, &[arguments, asks].concat());
            assert_all(&counts);
            let leaf = of_function(&executions(&counts), &program, "leaf");
            assert!(leaf.iter().all(|&count| count == 4000), "{arguments:?}: {leaf:?}");
        }
    }
}

/// Free, below 2 GiB.
const BEHIND_TABLES: &str = "7d000000";

#[test]
fn memory_that_cannot_be_given_is_reported() {
    let program = WANTED_MEMORY.build().unwrap();
    let counts = counted(&program, &[TABLES, "1000", "asks"]);
    assert_eq!(counts.ended, Ended::Exited(4));
    assert!(counts.not_counted.iter().any(|note| note.detail.contains("did not get it")), "{counts:?}");
    let counts = counted(&program, &[TABLES, "1000"]);
    assert_eq!(counts.ended, Ended::Killed(libc::SIGKILL));
    let is_told = |text: &str| counts.not_counted.iter().any(|note| note.detail.contains(text));
    assert!(is_told("it wants memory where its translated code and tables lie"), "{:?}", counts.not_counted);
    assert_eq!(counts.not_counted[0].reason, UncountedReason::CutShort);
    assert!(counts.given_up.is_some());
}

#[test]
fn heaps_of_programs_at_low_addresses_grow_by_half_a_gigabyte() {
    let program = HEAP.variant("no-pie", &["-no-pie"]).build().unwrap();
    // The kernel puts it elsewhere each time: three in four could not.
    for _ in 0..8 {
        let words = vec![program.clone().into(), "500".into()];
        let command = treering_translator::Command { words, silent: true, ..Default::default() };
        let counts = treering_translator::count(&command).unwrap();
        assert_eq!((counts.ended, &counts.not_counted), (Ended::Exited(0), &Vec::new()));
    }
    let counts = counted(&program, &["1900"]);
    assert_eq!(counts.ended, Ended::Exited(1));
    assert!(counts.not_counted[0].detail.contains("its heap (brk) could not grow"), "{counts:?}");
}

#[test]
fn programs_are_linked_to_any_address() {
    for address in ["10000000", "30000000", "40000000", "48000000", "58000000", CODE, "70000000", "7d000000"]
    {
        let flag = format!("-Wl,-Ttext-segment=0x{address}");
        let program = CONTROL_FLOW.variant(&format!("at-{address}"), &["-static", "-no-pie", &flag]);
        check(&program.build().unwrap(), &[]);
    }
    let flag = format!("-Wl,-Ttext-segment=0x{TABLES}");
    let program = CONTROL_FLOW.variant("at-tables", &["-no-pie", &flag]).build().unwrap();
    let command =
        treering_translator::Command { words: vec![program.into()], silent: true, ..Default::default() };
    let error = treering_translator::count(&command).expect_err("it cannot be").to_string();
    assert!(error.contains("its own memory lies where counting needs some (0x7a510000)"), "{error}");
}

#[test]
fn children_that_are_not_to_be_traced_are_counted() {
    let program = UNTRACED.build().unwrap();
    let counts = counted(&program, &[]);
    assert_all(&counts);
    let leaf = of_function(&executions(&counts), &program, "leaf");
    assert!(leaf.iter().all(|&count| count == 3000), "{leaf:?}");
}
