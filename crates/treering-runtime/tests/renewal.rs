//! A program may begin a profile anew as often as it likes.

use treering_runtime::{Options, clear_profiler, discard, output, scope, set_profiler};

/// A number of `/proc/self/status`, in KiB.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the line is there");
    line.trim_start_matches(':')
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a number")
}

/// Each profile reserved 64 GiB of addresses and kept them: there are none left after 2,048 times.
#[test]
fn thousands_of_profiles_leave_the_program_its_addresses() {
    let directory = std::env::temp_dir().join(format!("treering-renewal-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("again.trg");
    let begin = || {
        discard();
        set_profiler(Options { output: Some(file.clone()), ..Options::default() });
        {
            scope!("work");
        }
        clear_profiler();
    };
    (0..100).for_each(|_| begin());
    let (addresses, memory) = (status("VmSize"), status("VmRSS"));
    (0..2_500).for_each(|_| begin());
    assert!(output().is_some(), "the last profile has a file");
    // Either may have become less, as what was there for other reasons is given back.
    let addresses = status("VmSize").saturating_sub(addresses);
    let memory = status("VmRSS").saturating_sub(memory);
    // A few pages of each stay, for threads that may still use a record.
    assert!(addresses < 2_500 * 64, "{addresses} KiB of addresses more");
    assert!(memory < 2_500 * 64, "{memory} KiB of memory more");
    discard();
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
}
