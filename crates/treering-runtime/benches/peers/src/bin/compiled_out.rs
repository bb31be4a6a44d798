//! The scope of a program that was built without the runtime's feature.

#[path = "../../../event_cost/measure.rs"]
mod measure;

use treering_runtime::scope;

fn main() {
    let cost = measure::Effort::from_arguments().cost(|turns| {
        for turn in 0..turns {
            scope!("one");
            std::hint::black_box(turn);
        }
    });
    println!("{}", cost.line("Rust scope, compiled out"));
}
