//! hotpath: functions report to a thread that adds up.

#[path = "../../../event_cost/measure.rs"]
mod measure;

#[hotpath::measure]
fn one(turn: u64) {
    std::hint::black_box(turn);
}

fn main() {
    let guard = hotpath::HotpathGuardBuilder::new("main").format(hotpath::Format::None).build();
    let cost = measure::Effort::from_arguments().cost(|turns| (0..turns).for_each(one));
    drop(guard);
    println!("{}", cost.line("hotpath: a function with #[measure]"));
}
