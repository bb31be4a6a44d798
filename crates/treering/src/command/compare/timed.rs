//! Both commands in shuffled rounds, and what their times tell.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::time::{Duration, Instant};

use treering_compare::Sides;
use treering_measure::{
    Ended, Estimate, Judgement, Launch, LaunchError, Output, Sample, Summary, run, turns,
};

use crate::ending::signal_name;
use crate::failure::Failure;
use crate::word::word;

use super::interrupt::Interrupt;
use super::progress::Progress;

/// The commands, and how often they run.
pub(super) struct Plan {
    pub(super) commands: Sides<Launch>,
    pub(super) rounds: usize,
    pub(super) warm_up: usize,
    pub(super) prepare: Option<String>,
    pub(super) ignore_output: bool,
    /// Differences below this part of the base count as none.
    pub(super) floor: f64,
}

/// The rounds.
pub(super) struct Timed {
    pub(super) samples: Sides<Vec<Sample>>,
    /// Other runs of the base.
    pub(super) again: Vec<Sample>,
    pub(super) cpu: Sides<Summary>,
    pub(super) change: Estimate,
    pub(super) control: Option<Estimate>,
    pub(super) judgement: Judgement,
    pub(super) floor: f64,
    /// Wall times; nothing is concluded from them.
    pub(super) wall: Sides<Summary>,
    pub(super) wall_change: Option<Estimate>,
    pub(super) memory: Sides<Summary>,
    /// Whether the base writes something else in each run.
    pub(super) output_varies: bool,
    /// How long a round took.
    pub(super) round: Duration,
}

/// The versions that run in a round.
const BASE: usize = 0;
const AGAIN: usize = 1;
const HEAD: usize = 2;
const NAMES: [&str; 3] = ["base", "base", "head"];

/// Runs everything.
pub(super) fn measure(plan: &Plan, interrupt: &Interrupt) -> Result<Timed, Failure> {
    let progress = Progress::begin();
    let runner = Runner { plan, interrupt };
    for round in 0..plan.warm_up {
        progress.doing("warm-up");
        let base = runner.run(BASE, &format!("warm-up {}", round + 1))?;
        let head = runner.run(HEAD, &format!("warm-up {}", round + 1))?;
        if round == 0 {
            refuse_start_up_alone(base.cpu().max(head.cpu()), interrupt)?;
        }
    }
    let mut outputs = Outputs::default();
    let mut samples: [Vec<Sample>; 3] = Default::default();
    let begin = Instant::now();
    let seed = RandomState::new().hash_one(plan.rounds);
    for (at, turn) in turns(3, plan.rounds, seed).into_iter().enumerate() {
        if at % 3 == 0 {
            progress.round(turn.round, plan.rounds);
        }
        let sample = runner.run(turn.version, &format!("round {} of {}", turn.round + 1, plan.rounds))?;
        samples[turn.version].push(sample);
        if at % 3 == 2 && !plan.ignore_output {
            let of = |version: usize| samples[version][turn.round].output;
            outputs.compare(turn.round, [of(BASE), of(AGAIN)], of(HEAD))?;
        }
    }
    let round = begin.elapsed() / u32::try_from(plan.rounds).unwrap_or(u32::MAX).max(1);
    drop(progress);
    Timed::of(samples, plan.floor, outputs.vary, round)
}

impl Timed {
    fn of(
        samples: [Vec<Sample>; 3],
        floor: f64,
        output_varies: bool,
        round: Duration,
    ) -> Result<Self, Failure> {
        /// Bounds of one set of samples are the same each time.
        const SEED: u64 = 1;
        let [base, again, head] = samples;
        let of = |samples: &[Sample], value: fn(&Sample) -> f64| -> Vec<f64> {
            samples.iter().map(value).collect()
        };
        let cpu = |samples: &[Sample]| of(samples, |sample| sample.cpu().as_secs_f64());
        let wall = |samples: &[Sample]| of(samples, |sample| sample.wall.as_secs_f64());
        let memory = |samples: &[Sample]| of(samples, |sample| sample.peak_bytes as f64);
        let no_time =
            || Failure::new("base used no processor time").hint("count it exactly: treering compare --exact");
        let change = Estimate::of_change(&[&cpu(&base), &cpu(&again)], &cpu(&head), SEED);
        let change = change.ok_or_else(no_time)?;
        let control = Estimate::of_change(&[&cpu(&base)], &cpu(&again), SEED);
        let summary = |values: &[f64]| Summary::of(values).ok_or_else(no_time);
        Ok(Self {
            cpu: Sides { base: summary(&cpu(&base))?, head: summary(&cpu(&head))? },
            wall: Sides { base: summary(&wall(&base))?, head: summary(&wall(&head))? },
            wall_change: Estimate::of_change(&[&wall(&base), &wall(&again)], &wall(&head), SEED),
            memory: Sides { base: summary(&memory(&base))?, head: summary(&memory(&head))? },
            judgement: Judgement::of(change, control, floor, base.len()),
            samples: Sides { base, head },
            again,
            change,
            control,
            floor,
            output_varies,
            round,
        })
    }
}

/// Whether both write the same.
#[derive(Default)]
struct Outputs {
    first: Option<Output>,
    vary: bool,
}

impl Outputs {
    /// Outputs that differ between runs of the base tell nothing of the head's.
    fn compare(&mut self, round: usize, base: [Output; 2], head: Output) -> Result<(), Failure> {
        let first = *self.first.get_or_insert(base[0]);
        self.vary |= base.iter().any(|output| *output != first);
        if self.vary || head == first {
            return Ok(());
        }
        let when = if round == 0 { "from round 1 on".to_owned() } else { format!("in round {}", round + 1) };
        Err(differ(&when, first, head))
    }
}

/// The failure that the outputs differ.
pub(super) fn differ(when: &str, base: Output, head: Output) -> Failure {
    let bytes = treering_report::grouped;
    let much = match base.bytes == head.bytes {
        true => format!("both of {} bytes", bytes(base.bytes)),
        false => format!("{} against {} bytes", bytes(base.bytes), bytes(head.bytes)),
    };
    let space = if when.is_empty() { "" } else { " " };
    Failure::new(format_args!("outputs differ{space}{when}: {much}"))
        .hint("head does other work; --ignore-output to compare all the same")
}

struct Runner<'a> {
    plan: &'a Plan,
    interrupt: &'a Interrupt,
}

impl Runner<'_> {
    /// One run of a version, which must succeed.
    fn run(&self, version: usize, when: &str) -> Result<Sample, Failure> {
        let launch = if version == HEAD { &self.plan.commands.head } else { &self.plan.commands.base };
        if let Some(command) = &self.plan.prepare {
            let words = ["/bin/sh", "-c", command].map(std::ffi::OsString::from).to_vec();
            let prepare = Launch { words, ..launch.clone() };
            succeed(&prepare, "the --prepare command", when, self.interrupt)?;
        }
        succeed(launch, NAMES[version], when, self.interrupt)
    }
}

/// Runs a command, which must succeed.
pub(super) fn succeed(
    launch: &Launch,
    name: &str,
    when: &str,
    interrupt: &Interrupt,
) -> Result<Sample, Failure> {
    let sample = run(launch).map_err(|error| not_run(&error, name, when, interrupt))?;
    let how = match sample.ended {
        Ended::Exited(0) => return Ok(sample),
        Ended::Exited(status) => format!("with status {status}"),
        Ended::Killed(signal) => format!("by {}", signal_name(signal)),
    };
    let mut failure = Failure::new(format_args!("{name} failed in {when} {how}, so nothing is compared"));
    if let Some(line) = &sample.last_error {
        failure = failure.hint(format_args!("its last line: {line}"));
    }
    Err(failure)
}

fn not_run(error: &LaunchError, name: &str, when: &str, interrupt: &Interrupt) -> Failure {
    match error {
        LaunchError::Stopped => interrupt.failure(),
        LaunchError::TimedOut(_) => Failure::new(format_args!("{name} in {when}: {error}"))
            .hint("--timeout SECONDS lets it run longer; without it there is no limit"),
        LaunchError::NotFound(program) => Failure::new(error)
            .hint(format_args!("for a file here, write {}", word(&Path::new(".").join(program)))),
        _ => Failure::new(error),
    }
}

/// Programs whose time is that of their start tell nothing.
fn refuse_start_up_alone(cpu: Duration, interrupt: &Interrupt) -> Result<(), Failure> {
    const SHORT: Duration = Duration::from_millis(5);
    /// How many times the start of any program makes a time worth comparing.
    const WORTH: u32 = 3;
    if cpu >= SHORT {
        return Ok(());
    }
    let nothing = Launch { stop: Some(interrupt.flag()), ..Launch::new(vec!["true".into()]) };
    let starts = (0..5).filter_map(|_| run(&nothing).ok().map(|sample| sample.cpu()));
    let Some(start) = starts.min().filter(|&start| cpu < start * WORTH) else { return Ok(()) };
    let milliseconds = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    Err(Failure::new(format_args!(
        "{} of processor time a run is start-up alone: true takes {}",
        milliseconds(cpu),
        milliseconds(start)
    ))
    .hint("give both more to do, or count exactly: treering compare --exact"))
}
