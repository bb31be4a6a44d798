//! Calls that a function refuses count no more, and lose no time of what they called.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use treering_runtime::{Function, Options, set_profiler, snapshot};

/// Takes a millisecond or more.
fn work() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1) {}
}

#[test]
fn a_withdrawn_call_is_not_counted_and_keeps_the_time_of_its_callees() {
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("withdrawn.trg");
    set_profiler(Options { output: Some(output), ..Options::default() });
    let function = |name: &[u8]| Function::new(name, b"", 1);
    let caller = function(b"caller").enter();
    let refused = function(b"refused").enter();
    let callee = function(b"callee").enter();
    work();
    callee.leave();
    refused.withdraw();
    // One that called nothing leaves its time to the caller.
    let alone = function(b"alone").enter();
    work();
    alone.withdraw();
    caller.leave();

    let snapshot = snapshot().expect("a profile");
    let view = snapshot.view().expect("records");
    let names: BTreeMap<u32, String> = view
        .functions()
        .map(|(_, record)| (record.id, String::from_utf8_lossy(view.text(record.name)).into_owned()))
        .collect();
    let forest = snapshot.forest();
    let of = |name: &str| {
        let node = forest.nodes.iter().find(|node| {
            node.parent.is_some() && names.get(&node.record.function).is_some_and(|known| known == name)
        });
        node.map(|node| (node.record.calls, node.total_ns, node.self_ns)).unwrap_or_else(|| panic!("{name}"))
    };
    let (caller, refused, callee, alone) = (of("caller"), of("refused"), of("callee"), of("alone"));
    assert_eq!([caller.0, refused.0, callee.0, alone.0], [1, 0, 1, 0]);
    assert!(callee.1 >= 900_000 && refused.1 >= callee.1, "{refused:?} {callee:?}");
    assert!(caller.1 >= refused.1 + 900_000, "{caller:?} {refused:?}");
    assert_eq!(alone.1, 0);
    assert!(caller.2 >= 900_000, "the time of what was refused at once is the caller's: {caller:?}");
    treering_runtime::discard();
}
