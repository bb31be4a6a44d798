//! Tracy, in a program without a connected profiler: it keeps all events, or none if it is built to wait for a
//! connection.

#[path = "../../../event_cost/measure.rs"]
mod measure;

fn main() {
    let _client = tracy_client::Client::start();
    let cost = measure::Effort::from_arguments().cost(|turns| {
        for turn in 0..turns {
            let _span = tracy_client::span!("one", 0);
            std::hint::black_box(turn);
        }
    });
    let name = match cfg!(feature = "tracy_idle") {
        true => "Tracy, on demand, nobody connected: off",
        false => "Tracy, recording into memory, nobody connected",
    };
    println!("{}", cost.line(name));
}
