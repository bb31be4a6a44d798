//! `treering merge`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use treering_analysis::{NotJoinable, Unmatched, join};
use treering_formats::{Format, trg};
use treering_profile::{Metadata, Note, Profile, Thread, merge_runs};
use treering_report::plural;

use crate::failure::{Failure, Outcome};
use crate::nameless::note_joined;
use crate::open::{Opened, open_profiles};
use crate::output::{check_target, clean_up_at_signals, write_whole};
use crate::word::word;
use crate::working::Working;

/// Join several profiles into one
#[derive(Debug, clap::Args)]
pub struct Merge {
    /// The profiles, of any format that can be read
    #[arg(required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// The .trg file to write; `-` for standard output. In its name, `%p` stands for
    /// the process, `%h` for the machine, `%r` for the rank, and `%%` for %
    #[arg(short, long, value_name = "OUT", value_parser = crate::output_name::parser())]
    output: PathBuf,
    /// Add up threads of equal name in equally named processes, of all runs, instead of keeping
    /// each apart
    #[arg(long)]
    collapse: bool,
    /// Of two profiles of the same program, the first counted (by count or gprof) and the second sampled (by record):
    /// calls and instructions of the one, time of the other, in the same rows
    #[arg(long, conflicts_with = "collapse")]
    join: bool,
    /// Replace OUT even if it is not a profile that Treering wrote
    #[arg(long)]
    force: bool,
}

/// The part of a note that says so.
const NO_AVERAGES: &str = "what a call costs on average";

impl Merge {
    /// Does it.
    pub fn run(self) -> Outcome {
        clean_up_at_signals();
        let inputs: Vec<_> = self.files.iter().map(PathBuf::as_path).collect();
        check_target(&self.output, &inputs, Format::Trg, self.force)?;
        let opened = open_profiles(&self.files)?;
        opened.iter().for_each(Opened::print_warnings);
        if self.join {
            return self.join(&opened);
        }
        self.check_kinds(&opened)?;
        self.warn_of_repeated_files();
        let profiles: Vec<_> = opened.iter().map(|opened| &opened.profile).collect();
        let merging = Working::on(format!("merging {}", plural(profiles.len() as u64, "profile")));
        let mut merged = merge_runs(&profiles);
        if self.collapse {
            merged = collapse(&merged);
            if merged.runs.len() > 1 {
                merged.metadata.note(Metadata::RUNS_ADDED_UP);
            }
        }
        drop(merging);
        note_joined(&mut merged, &profiles);
        self.write(&merged)?;
        let is_new = |note: &&Note| profiles.iter().all(|profile| !profile.metadata.notes.contains(note));
        let told = merged.metadata.notes.iter().filter(|note| note.0.contains(NO_AVERAGES)).filter(is_new);
        told.for_each(|note| tell!("warning: {}", note.0));
        let (runs, threads) = (merged.runs.len() as u64, merged.threads.len() as u64);
        tell!(
            "wrote {}, {}, {} to {}",
            plural(runs, "run"),
            plural(threads, "thread"),
            plural(merged.tree.len() as u64, "node"),
            self.output.display()
        );
        Ok(ExitCode::SUCCESS)
    }

    /// Names files that are given more than once, as overlapping patterns do.
    fn warn_of_repeated_files(&self) {
        let mut known = HashSet::new();
        for file in &self.files {
            if file.canonicalize().is_ok_and(|real| !known.insert(real)) {
                tell!("warning: {} is named more than once: its costs are added each time", file.display());
            }
        }
    }

    fn write(&self, profile: &Profile) -> Result<(), Failure> {
        write_whole(&self.output, |output| trg::write(profile, output))
    }

    /// Counts of one and samples of the other.
    fn join(&self, opened: &[Opened]) -> Outcome {
        let [counted, sampled] = opened else {
            return Err(Failure::new("--join takes two profiles: what was counted, and what was sampled")
                .hint("treering merge --join counted.trg sampled.trg -o both.trg"));
        };
        let joining = Working::on("joining two profiles");
        let joined = join(&counted.profile, &sampled.profile);
        drop(joining);
        let joined = joined.map_err(|why| not_joinable(&why, &self.files[0], &self.files[1]))?;
        let mut profile = joined.profile;
        let told: Vec<String> = joined.unmatched.iter().map(|one| unmatched_text(&profile, one)).collect();
        told.iter().for_each(|text| profile.metadata.note(text));
        for module in &joined.unproven {
            profile.metadata.note(format!(
                "{module} has no build-id: it cannot be checked whether both are of one build"
            ));
        }
        self.write(&profile)?;
        told.iter().for_each(|text| tell!("{text}"));
        joined.unproven.iter().for_each(|module| {
            tell!(
                "warning: {module} has no build-id, so it cannot be checked whether both profiles are of one build"
            );
        });
        let file = self.output.display();
        tell!("wrote {file}; next: treering report {} --callgraph", word(&self.output));
        Ok(ExitCode::SUCCESS)
    }

    /// A profile of arcs has no stacks, so its functions would look like outermost ones of the
    /// others.
    fn check_kinds(&self, opened: &[Opened]) -> Result<(), Failure> {
        let arcs = opened.iter().position(|opened| opened.profile.is_arcs_only());
        let tree = opened.iter().position(|opened| !opened.profile.is_arcs_only());
        let (Some(arcs), Some(tree)) = (arcs, tree) else { return Ok(()) };
        let (arcs, tree) = (self.files[arcs].display(), self.files[tree].display());
        let message = format!("cannot merge {arcs}, which has arcs only, with {tree}, which has stacks");
        Err(Failure::new(message).hint("merge files of one kind"))
    }
}

/// Why two profiles are not joined, and what to do about it.
fn not_joinable(why: &NotJoinable, counted: &Path, sampled: &Path) -> Failure {
    let (counted, sampled) = (counted.display(), sampled.display());
    let failure = Failure::new(format_args!("cannot join {counted} and {sampled}: {why}"));
    match why {
        NotJoinable::NothingCounted => failure
            .hint("the first is made by treering count, count --tree, or gprof of a program built with -pg"),
        NotJoinable::NothingSampled => failure.hint("the second is made by treering record"),
        NotJoinable::CountedTwice => failure.hint("give the samples alone, as treering record makes them"),
        NotJoinable::OtherPrograms(..) => failure.hint("count and record the same program"),
        NotJoinable::OtherBuild(_) => failure.hint("count and record it again after building it"),
    }
}

/// `of cpu-clock, 3.2 % is in functions that were not counted: the kernel 3.0 %, memset 0.1 %`.
fn unmatched_text(joined: &Profile, of: &Unmatched) -> String {
    let share = |cost: u64| format!("{:.1} %", cost as f64 * 100.0 / of.whole.max(1) as f64);
    let is_sampled = joined.metrics.iter().any(|known| known.name == of.metric && known.sampling.is_some());
    let missing = if is_sampled { "not counted" } else { "not sampled" };
    let mut names: Vec<String> = Vec::new();
    if of.in_kernel > 0 {
        names.push(format!("the kernel {}", share(of.in_kernel)));
    }
    names.extend(of.largest.iter().map(|(name, cost)| format!("{name} {}", share(*cost))));
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let mut text =
        format!("of {}, {} is in functions that were {missing}{names}", of.metric, share(of.in_functions));
    if let Some(cost) = of.in_contexts {
        text += &format!("; {} more in contexts that were {missing}", share(cost));
    }
    text
}

/// Adds up threads that agree in their names and those of their processes.
fn collapse(profile: &Profile) -> Profile {
    let mut numbers = HashMap::new();
    let mut name_number = |thread: &Thread| {
        let process = &profile.processes[thread.process.index()].name;
        let next = numbers.len() as u32;
        *numbers.entry((process.clone(), thread.name.clone())).or_insert(next)
    };
    let by_root: HashMap<_, _> =
        profile.threads.iter().map(|thread| (thread.root, name_number(thread))).collect();
    profile.collapse_threads(|thread| by_root.get(&thread.root).copied())
}
