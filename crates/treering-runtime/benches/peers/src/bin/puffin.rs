//! puffin: a stream of events, cut into frames.

#[path = "../../../event_cost/measure.rs"]
mod measure;

fn main() {
    puffin::set_scopes_on(true);
    let cost = measure::Effort::from_arguments().cost(|turns| {
        for turn in 0..turns {
            puffin::profile_scope!("one");
            std::hint::black_box(turn);
        }
        puffin::GlobalProfiler::lock().new_frame();
    });
    println!("{}", cost.line("puffin: a frame for each batch"));
}
