//! Sampled stacks as text.

use std::collections::HashMap;

use treering_profile::{
    Frame, Function, Line, LineId, Metric, MetricId, Profile, RecursionRule, ThreadId, Unit,
};

/// The weight of a sample of [`stacks`] in nanoseconds: 1 ms.
pub const STACK_PERIOD_NS: u64 = 1_000_000;

/// The profile of stacks, with a node for each depth. See [`stacks_with`].
pub fn stacks(text: &str) -> Profile {
    stacks_with(RecursionRule::Full, text)
}

/// The profile of stacks under a recursion rule, in the metrics `cpu-clock` and `samples`.
///
/// A line is `[@THREAD] OUTERMOST;...;INNERMOST SAMPLES`; each sample is worth
/// [`STACK_PERIOD_NS`]. A frame may say which line it is at, as in `main@3;work@9 5`: `work` was
/// at line 9 and called from line 3 of `main`. All lines are of the file `demo.c`.
///
/// # Panics
/// On a line that does not end in a number.
pub fn stacks_with(rule: RecursionRule, text: &str) -> Profile {
    let mut profile = Profile::new(rule);
    let samples = MetricId::new(1);
    profile.add_metric(Metric::sampled("cpu-clock", Unit::Nanoseconds, samples, Some(STACK_PERIOD_NS)));
    profile.add_metric(Metric::exact("samples", Unit::Count));
    let mut threads = HashMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        add_line(&mut profile, &mut threads, line);
    }
    profile.metadata.losses.samples = profile.run_cost(samples);
    profile
}

fn add_line(profile: &mut Profile, threads: &mut HashMap<String, ThreadId>, text: &str) {
    let (thread, rest) = match text.strip_prefix('@') {
        Some(named) => named.split_once(' ').expect("a stack follows the thread"),
        None => ("main", text),
    };
    let (stack, samples) = rest.rsplit_once(' ').unwrap_or(("", rest));
    let samples: u64 = samples.parse().unwrap_or_else(|_| panic!("no number of samples in {text:?}"));
    let thread = *threads.entry(thread.to_owned()).or_insert_with(|| profile.add_single_thread(thread));
    let (frames, line) = parse_stack(profile, stack.trim());
    let weights = [(MetricId::new(0), samples * STACK_PERIOD_NS), (MetricId::new(1), samples)];
    profile.add_stack(thread, &frames, line, &weights);
}

/// The frames of a stack, and the line that the innermost one was at.
fn parse_stack(profile: &mut Profile, stack: &str) -> (Vec<Frame>, Option<LineId>) {
    let mut frames = Vec::new();
    let mut call_site = None;
    for frame in stack.split(';').filter(|frame| !frame.is_empty()) {
        let (name, line) = match frame.rsplit_once('@') {
            Some((name, line)) => (name, Some(line)),
            None => (frame, None),
        };
        let name = profile.strings.intern(name);
        let function = profile.functions.intern(Function::named(name));
        frames.push(Frame { function, call_site });
        call_site = line.map(|line| demo_line(profile, line.parse().expect("a number follows the @")));
    }
    (frames, call_site)
}

fn demo_line(profile: &mut Profile, line: u32) -> LineId {
    let file = profile.strings.intern("demo.c");
    profile.lines.intern(Line { file, line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_lines_and_call_sites_are_where_the_text_says() {
        let profile = stacks("main@3;work@9 5\n @other idle 2");
        let (time, samples) = (MetricId::new(0), MetricId::new(1));
        assert_eq!((profile.run_cost(time), profile.run_cost(samples)), (7 * STACK_PERIOD_NS, 7));
        assert_eq!(profile.threads.len(), 2);
        let cost = profile.line_costs.iter().find(|cost| cost.metric == samples);
        let cost = cost.expect("work was at a line");
        assert_eq!((profile.lines[cost.line].line, cost.cost), (9, 5));
        let site = profile.tree.call_site(cost.node).expect("main was at a line");
        assert_eq!(profile.lines[site].line, 3);
        assert_eq!(profile.validate(), Ok(()));
    }
}
