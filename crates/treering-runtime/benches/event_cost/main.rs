//! The costs of events, beside their floors and the costs of other profilers.
//!
//! ```text
//! cargo bench -p treering-runtime --bench event_cost [-- [--quick] [events] [memory] [work]]
//! ```
//!
//! Each figure is the median over 1500 batches or more of some 45 µs, shorter than what the scheduler gives
//! at a time, so that it holds on a machine that is busy with other things as well. The words
//! choose what is measured; without one, everything is. `--quick` only shows that it runs.

mod events;
mod foreign;
mod kernel;
mod machine;
mod measure;
mod memory;
mod recovery;
mod table;

use std::path::Path;

use measure::Effort;

fn main() {
    let effort = Effort::from_arguments();
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    if has("--preloaded") {
        return memory::measure_preloaded(effort);
    }
    let all = !["events", "memory", "work"].into_iter().any(has);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("event_cost");
    std::fs::create_dir_all(&directory).expect("a directory for the profiles");
    if has("--recovery") {
        return recovery::measure(effort, &directory);
    }
    machine::print();
    if all || has("events") {
        events::measure(effort, &directory).print();
    }
    if all || has("memory") {
        memory::measure(effort, &directory).print();
    }
    if all || has("work") {
        recovery::measure_apart(effort);
    }
    machine::print();
}
