//! `treering watch`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use treering_analysis::{
    CallGraph, CallTree, Corrected, CostSnapshot, Direction, Presentation, Pruning, add_calls_metric,
    correct, default_metric,
};
use treering_profile::{MetricId, Profile};
use treering_report::{Doing, Lately, Options, Style, call_graph_text, tree_text, watch_head, watch_text};

use crate::arguments::seconds;
use crate::failure::{Failure, Outcome};
use crate::live;
use crate::name_cache::NameCache;
use crate::open::Opened;
use crate::screen::Screen;
use crate::terminal;
use crate::wake::{Waiting, Wake, suspend};
use crate::watched::{Sight, Watched};

/// Show the profile of an instrumented program while it runs
#[derive(Debug, clap::Args)]
pub struct Watch {
    /// The file that an instrumented program writes, or the number of its process
    #[arg(value_name = "FILE|PID", default_value = "treering.trg")]
    target: String,
    /// Seconds from one listing to the next
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// End after N listings; by default when the program ends
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    times: Option<u64>,
    /// Show at most N functions [default: as many as fit a terminal, else all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    #[command(flatten)]
    view: View,
}

// The views, of which one is shown.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(multiple = false)]
struct View {
    /// List functions by self cost, with what changed since the last listing (this is the default)
    #[arg(long)]
    flat: bool,
    /// For each function, its callers above it and its callees below
    #[arg(long)]
    callgraph: bool,
    /// The tree of calls, indented
    #[arg(long)]
    tree: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = seconds(text)?;
    let allowed = Duration::from_millis(50)..=Duration::from_secs(86_400);
    if allowed.contains(&interval) { Ok(interval) } else { Err("not between 0.05 and 86400".to_owned()) }
}

/// A program as it was at one time.
struct Snapshot {
    profile: Profile,
    metric: MetricId,
    doing: Doing,
    lately: Option<Lately>,
    costs: CostSnapshot,
}

impl Watch {
    /// Does it.
    pub fn run(self) -> Outcome {
        let mut watched = Watched::find(&self.target)?;
        let mut screen = Screen::new();
        let waiting = Waiting::new(screen.is_terminal())?;
        let mut names = NameCache::default();
        let mut last: Option<Snapshot> = None;
        let mut shown = 0;
        loop {
            let next = Instant::now() + self.interval;
            let snapshot = match watched.look()? {
                Sight::Running(read) => Snapshot::running(*read, &mut names, last.as_ref()),
                Sight::Ended(opened) => return self.end(&mut screen, Some(Snapshot::ended(*opened))),
                Sight::Gone => return self.end(&mut screen, last.map(Snapshot::gone)),
            };
            shown += 1;
            let goes_on = screen.show(&self.text(&snapshot, &screen))?;
            let is_last = !goes_on || self.times.is_some_and(|times| shown >= times);
            if is_last || !self.wait(&snapshot, &waiting, &mut screen, next)? {
                return self.finish(&mut screen, &snapshot);
            }
            last = Some(snapshot);
        }
    }

    /// Waits for the time of the next listing; false when there is to be none.
    fn wait(
        &self,
        snapshot: &Snapshot,
        waiting: &Waiting,
        screen: &mut Screen,
        next: Instant,
    ) -> Result<bool, Failure> {
        loop {
            match waiting.until(next)? {
                Wake::Time => return Ok(true),
                Wake::Ended => return Ok(false),
                Wake::Suspended => {
                    screen.leave();
                    suspend();
                }
                Wake::Resized => {}
            }
            screen.show(&self.text(snapshot, screen))?;
        }
    }

    /// Puts the terminal back, and leaves the last listing on it.
    fn finish(&self, screen: &mut Screen, snapshot: &Snapshot) -> Outcome {
        screen.leave();
        if screen.is_terminal() {
            terminal::print(&self.text(snapshot, screen))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Shows the profile that the program has left, or the last one that was read.
    fn end(&self, screen: &mut Screen, snapshot: Option<Snapshot>) -> Outcome {
        screen.leave();
        match snapshot {
            Some(snapshot) => terminal::print(&self.text(&snapshot, screen))?,
            None => {
                return Err(Failure::new(format_args!("{}: the program has ended", self.target))
                    .hint("its profile was removed, or replaced by another program's"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, snapshot: &Snapshot, screen: &Screen) -> String {
        let style = Style { colour: terminal::colour(), width: terminal::width() };
        let head = watch_head(&snapshot.profile, &snapshot.doing, snapshot.lately.as_ref(), &style);
        // Below it an empty line, the headings, and a line for what does not fit.
        let room = screen.height().map(|height| height.saturating_sub(head.lines().count() + 3));
        head + "\n" + &self.listing(snapshot, &style, self.top.or(room))
    }

    fn listing(&self, snapshot: &Snapshot, style: &Style, limit: Option<usize>) -> String {
        let corrected = correct(&snapshot.profile);
        let (profile, basis) = (&*corrected.profile, corrected.basis(snapshot.metric));
        if self.view.tree {
            let pruning = Pruning::default();
            let tree = CallTree::of(profile, &basis, Direction::Callees, pruning);
            return below_head(&tree_text(profile, &tree, &pruning, style, &Options::default()));
        }
        let graph = graph(&corrected, snapshot.metric);
        if self.view.callgraph {
            let options = Options { limit: self.top, min_share: 0.005, ..Options::default() };
            return below_head(&call_graph_text(profile, &graph, style, &options));
        }
        watch_text(profile, &graph, snapshot.lately.as_ref(), style, limit)
    }
}

/// A view without the lines about the whole run, which end at the first empty line.
fn below_head(view: &str) -> String {
    view.split_once("\n\n").map_or(view, |(_, below)| below).to_owned()
}

fn graph(corrected: &Corrected<'_>, metric: MetricId) -> CallGraph {
    CallGraph::of(&corrected.profile, &corrected.basis(metric), Presentation::Contexts)
        .with_reliability(corrected)
}

/// The metric to show: the first, or calls where nothing else is measured.
fn metric(profile: &mut Profile) -> MetricId {
    let known = default_metric(profile);
    known.unwrap_or_else(|| add_calls_metric(profile))
}

impl Snapshot {
    fn running(read: live::Read, names: &mut NameCache, last: Option<&Self>) -> Self {
        let threads = &read.running.threads;
        let open = threads.first().map(|thread| thread.open.clone()).unwrap_or_default();
        let not_left: usize = threads.iter().map(|thread| thread.open.len()).sum();
        let running = threads.iter().filter(|thread| thread.runs).count() as u64;
        let mut profile = read.running.profile;
        names.name(&mut profile);
        let events = calls(&profile).saturating_mul(2).saturating_sub(not_left as u64);
        let threads = profile.threads.len() as u64;
        let doing = Doing { pid: read.writer.pid, threads, running, events, open, ended: None };
        let mut snapshot = Self::of(profile, doing);
        snapshot.lately = last.and_then(|last| snapshot.since(last));
        snapshot
    }

    fn of(mut profile: Profile, doing: Doing) -> Self {
        let metric = metric(&mut profile);
        let corrected = correct(&profile);
        let costs = CostSnapshot::of(&corrected.profile, &graph(&corrected, metric));
        Self { profile, metric, doing, lately: None, costs }
    }

    /// The change since another one; nothing if no time has passed.
    fn since(&self, last: &Self) -> Option<Lately> {
        let interval_ns = self.run_ns().checked_sub(last.run_ns()).filter(|&interval| interval > 0)?;
        Some(Lately { change: self.costs.since(&last.costs), interval_ns })
    }

    fn run_ns(&self) -> u64 {
        self.profile.runs.iter().map(|run| run.duration_ns).sum()
    }

    /// The file of a program that has ended.
    fn ended(opened: Opened) -> Self {
        opened.print_warnings();
        let profile = opened.profile;
        let doing = Doing {
            threads: profile.threads.len() as u64,
            events: calls(&profile)
                .saturating_mul(2)
                .saturating_sub(profile.metadata.losses.open_activations),
            ended: Some("the program has ended".to_owned()),
            ..Doing::default()
        };
        Self::of(profile, doing)
    }

    /// The last state of a program that has left no file.
    fn gone(mut self) -> Self {
        self.doing.ended =
            Some("the program has ended and its file is gone; this is what was seen last".to_owned());
        self.doing.running = 0;
        self
    }
}

fn calls(profile: &Profile) -> u64 {
    profile.tree.nodes().fold(0, |sum: u64, node| sum.saturating_add(profile.tree.calls(node)))
}
