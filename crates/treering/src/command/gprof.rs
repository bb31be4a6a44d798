//! `treering gprof`: calls of a program compiled with `-pg`, counted exactly, beside sampled costs.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::BufRead as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use treering_analysis::default_metric;
use treering_formats::{Format, gmon, trg};
use treering_proc::{find_program, reason};
use treering_profile::{ModuleId, Profile, merge, pluralize};
use treering_report::{Style, plural};
use treering_symbols::{Options, code_layout};

use super::archive::{Kept, in_archive};
use crate::calls::{Counted, add_calls_as_costs, read_folder, still_counting};
use crate::ending::{exit_status, start_status};
use crate::failure::{Context as _, Failure, Outcome};
use crate::library;
use crate::naming::{Reachable, Wanted, name_functions};
use crate::open::open_profile;
use crate::output::{
    cannot_write, check_collected, check_target, clean_up_at_signals, no_stream, write_profile, write_whole,
};
use crate::output_name::without_marks;
use crate::page::beside;
use crate::relay::Relay;
use crate::terminal;
use crate::word::{report_argument, word};

/// Count the calls of a program compiled with -pg, and sample where its time goes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cc -pg -O2 -o solve solve.c && treering gprof -- ./solve input.txt
  treering report --callgraph                 calls are exact, costs sampled along stacks

The program is used as it is. What it forks and executes is counted as well, if it was compiled with -pg.")]
pub struct Gprof {
    /// The file to write, or an archive that gets the profile. In its name, `%p` stands for
    /// the process, `%h` for the machine, `%r` for the rank, and `%%` for %
    #[arg(short, long, value_name = "FILE", default_value = "treering.trg", value_parser = crate::output_name::parser())]
    output: PathBuf,
    /// Samples for each second of processor time
    #[arg(short = 'F', long, value_name = "HZ")]
    frequency: Option<String>,
    /// Write a gmon.out for each program and library too, as FILE with its name and .gmon at the end
    #[arg(long)]
    gmon: bool,
    /// Make a profile of what an earlier run left that was killed with the program
    #[arg(long, conflicts_with_all = ["command", "frequency"])]
    recover: bool,
    /// Make a page of the profile at the end and open it, as `treering view` does
    #[arg(long)]
    view: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// Replace FILE even if it is no profile that Treering wrote
    #[arg(long)]
    force: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "recover", value_name = "PROGRAM ARGS")]
    command: Vec<OsString>,
}

/// The file of samples, in the folder of counts.
const SAMPLED: &str = "sampled.trg";

impl Gprof {
    /// Runs the program, joins what was counted and what was sampled, and passes on the exit status.
    pub fn run(mut self) -> Outcome {
        let kept = Kept::instead_of(&mut self.output, self.view)?;
        if kept.is_some() && self.recover {
            return Err(Failure::new("--recover finds the counts beside the file that was to be written")
                .hint("name that file after -o; treering archive add keeps it then")
                .status(2));
        }
        let quiet = self.quiet;
        let outcome = self.run_to_file();
        Kept::finish(kept, quiet, outcome)
    }

    fn run_to_file(mut self) -> Outcome {
        no_stream(&self.output, "the program")?;
        let _claim = crate::output_name::Claim::take(&mut self.output)?;
        match self.recover {
            true => check_target(&self.output, &[], Format::Trg, self.force),
            false => check_collected(&self.output, &[], self.force),
        }?;
        let page = self.view.then(|| beside(&self.output, self.force)).transpose()?;
        let folder = self.folder();
        let status = if self.recover { 0 } else { self.profile(&folder)? };
        // Before the counts are read: a process that ends after that has counted more.
        let going_on = still_counting(&folder);
        let mut counted = read_folder(&folder)?;
        if !going_on.is_empty() {
            counted.warnings.push(self.later_calls(&going_on));
        }
        counted.warnings.iter().for_each(|warning| tell!("warning: {warning}"));
        if counted.calls == 0 && going_on.is_empty() {
            return Err(self.nothing_counted(&counted, &folder).status(if status == 0 { 1 } else { status }));
        }
        let sampled = folder.join(SAMPLED);
        let sampled = if sampled.exists() { Some(open_profile(&sampled)?.profile) } else { None };
        let profile = join(&counted, sampled);
        clean_up_at_signals();
        match self.recover {
            true => write_whole(&self.output, |output| trg::write(&profile, output)),
            false => write_profile(&self.output, |output| trg::write(&profile, output)),
        }?;
        if self.gmon {
            self.write_gmon(&profile)?;
        }
        if counted.is_damaged && going_on.is_empty() {
            tell!(
                "kept the damaged files in {}; to go on without: rm -r {}",
                folder.display(),
                word(&folder)
            );
        } else if going_on.is_empty() {
            let _ = std::fs::remove_dir_all(&folder);
        }
        if !self.quiet {
            self.tell(&profile, &counted, !going_on.is_empty());
        }
        let shown = page.map_or(Ok(()), |page| page.show(self.quiet));
        shown.map_err(|failure| failure.status(if status == 0 { 1 } else { status }))?;
        Ok(ExitCode::from(status))
    }

    /// Says that there will be more calls than the profile has.
    fn later_calls(&self, going_on: &[u32]) -> String {
        let processes: Vec<String> = going_on.iter().map(u32::to_string).collect();
        let later = match in_archive() {
            true => String::new(),
            false => format!(
                "; when all have ended, make the whole with: treering gprof --recover -o {}",
                word(&self.output)
            ),
        };
        format!(
            "{} of the program {}: calls from now on are not in this profile{later}",
            if going_on.len() == 1 { "a process" } else { "processes" },
            match processes.len() {
                1 => format!("goes on ({})", processes[0]),
                _ => format!("go on ({})", processes.join(", ")),
            }
        )
    }

    /// Where the program counts: beside the output, so that it is found if we are killed.
    fn folder(&self) -> PathBuf {
        let mut name = self.output.as_os_str().to_owned();
        name.push(".arcs");
        PathBuf::from(name)
    }

    /// Runs the program under the sampler, or by itself where sampling is not permitted; its exit status.
    fn profile(&self, folder: &Path) -> Result<u8, Failure> {
        let library = library::PG.path_to_preload()?;
        self.check_program()?;
        if folder.exists() {
            let left = folder.display();
            let why = match still_counting(folder).as_slice() {
                [] => "an earlier run was killed".to_owned(),
                [first, ..] => format!("process {first} of an earlier run still counts there"),
            };
            return Err(Failure::new(format_args!("{left} is there: {why}"))
                .hint(format_args!(
                    "make a profile of it: treering gprof --recover -o {}",
                    word(&self.output)
                ))
                .hint(format_args!("or remove it: rm -r {}", word(folder))));
        }
        let made = DirBuilder::new().mode(0o700).create(folder);
        made.map_err(|error| cannot_write(folder, &error))?;
        let absolute = folder.canonicalize().context(folder.display())?;
        let result = self.run_program(&library, &absolute);
        if result.is_err() {
            let _ = std::fs::remove_dir_all(folder);
        }
        result
    }

    fn run_program(&self, library: &Path, folder: &Path) -> Result<u8, Failure> {
        let treering = std::env::current_exe().context("cannot tell where this program is")?;
        // A file of its own: one of an earlier run does not tell that this one was sampled.
        let sampled = folder.join(SAMPLED);
        let mut record = Command::new(treering);
        record.args(["record", "--quiet", "--no-inlines", "-o"]).arg(without_marks(&sampled));
        if let Some(frequency) = &self.frequency {
            record.args(["-F", frequency]);
        }
        record.arg("--").args(&self.command);
        let status = to_its_end(preload(&mut record, library, folder), "treering record")?;
        let written = sampled.metadata().map_or(0, |found| found.len());
        // Nothing was run if the sampler was refused or could not write, and nothing can be if there is no such program.
        if sampled.exists() || status.code() != Some(1) {
            return match written {
                0 => Err(Failure::new("the program was not run").status(exit_status(status).max(1))),
                _ => Ok(exit_status(status)),
            };
        }
        tell!("treering: calls are counted nevertheless, without sampling where time goes");
        let mut program = Command::new(&self.command[0]);
        program.args(&self.command[1..]);
        let name = self.command[0].display().to_string();
        Ok(exit_status(to_its_end(preload(&mut program, library, folder), &name)?))
    }

    /// Refuses programs that cannot report their calls.
    fn check_program(&self) -> Result<(), Failure> {
        let path = std::env::var_os("PATH");
        let Some(program) = self.command.first().and_then(|name| find_program(name, path.as_deref())) else {
            return Ok(());
        };
        // A file that is no program may be a script that starts one.
        let Ok(layout) = code_layout(&program, &Options::default()) else { return Ok(()) };
        if layout.is_dynamic {
            return Ok(());
        }
        if has_library(&program).context(program.display())? {
            return Ok(());
        }
        let failure = Failure::new(format_args!(
            "{} is linked statically, so that no library can be loaded before it",
            program.display()
        ));
        Err(failure
            .hint("link it with the library in it: cc -pg -static … -ltreering_pg")
            .hint("or link it without -static, or count it exactly as it is: treering count --tree"))
    }

    /// Why nothing was counted. The folder goes, unless it has samples that there was no room to finish.
    fn nothing_counted(&self, counted: &Counted, folder: &Path) -> Failure {
        let room = room(folder);
        let sampled = folder.join(SAMPLED);
        let is_kept = room.is_err() && sampled.metadata().is_ok_and(|found| found.len() > 0);
        if !is_kept {
            let _ = std::fs::remove_dir_all(folder);
        }
        if let Err(error) = room {
            let (place, why) = (folder.display(), reason(&error));
            let failure = Failure::new(format_args!("no calls were counted: cannot write in {place}: {why}"));
            return match is_kept {
                true => failure
                    .hint(format_args!("what was sampled is kept: treering report {}", word(&sampled)))
                    .hint(format_args!("to go on without: rm -r {}", word(folder))),
                false => failure,
            };
        }
        let name = self.command.first().map_or_else(|| "the program".into(), |name| name.to_string_lossy());
        let message = match counted.programs {
            0 => format!("no calls were counted: {name} does not report them"),
            _ => format!("no calls were counted: {name} ended before its first"),
        };
        Failure::new(message)
            .hint("compile it with -pg: cc -pg -O2 -o solve solve.c")
            .hint("or profile it as it is: treering record, treering count --tree")
            .hint(format_args!(
                "a program with a root of its own, as in a container, needs {} there under the same name; a program of \
                 another user cannot write there, and a setuid program loads no library",
                self.folder().display()
            ))
    }

    fn write_gmon(&self, profile: &Profile) -> Result<(), Failure> {
        let Some(metric) = default_metric(profile) else { return Ok(()) };
        let mut modules: Vec<ModuleId> =
            profile.arcs.iter().filter_map(|arc| profile.functions[arc.callee].module).collect();
        modules.sort_unstable();
        modules.dedup();
        for module in modules {
            let path = profile.strings[profile.modules[module].path].to_owned();
            let name = path.rsplit('/').next().unwrap_or_default();
            let mut target = self.output.clone().into_os_string();
            target.push(format!(".{name}.gmon"));
            let target = PathBuf::from(target);
            check_target(&target, &[], Format::Gmon, self.force)?;
            let made = gmon::of_profile(profile, metric, Some(module), gmon::Layout::default());
            let (file, _, dropped) = made.context(target.display())?;
            write_whole(&target, |output| file.write(output))?;
            if !self.quiet {
                let command = format_args!("gprof {} {}", word(Path::new(&path)), word(&target));
                tell!("wrote {}; read it with: {command}", target.display());
                dropped.notes.iter().for_each(|note| tell!("dropped: {note}"));
            }
        }
        Ok(())
    }

    fn tell(&self, profile: &Profile, counted: &Counted, goes_on: bool) {
        let style = Style { colour: terminal::error_colour(), width: terminal::error_width() };
        tell!();
        tell_part!("{}", treering_report::summary(profile, &style, 8));
        let arcs = plural(profile.arcs.len() as u64, "arc");
        let lost = match counted.lost {
            0 if goes_on => "none lost so far".to_owned(),
            0 => "none lost".to_owned(),
            lost => format!("{lost} lost: there was no room, or the program had not begun"),
        };
        tell!("\ncounted {} along {arcs}, {lost}", plural(counted.calls, "call"));
        if in_archive() {
            return;
        }
        let file = self.output.display();
        let argument = report_argument(&self.output);
        tell!("wrote {file}; next: treering report{argument} --callgraph");
    }
}

/// Joins the counted calls and the samples into one profile.
fn join(counted: &Counted, sampled: Option<Profile>) -> Profile {
    let wanted = Wanted { inlines: false, sources: false, addresses: false };
    let mut calls = name_functions(counted.profile.clone(), Reachable::default(), wanted).profile;
    // Callers are known by function; the lines at which those begin do not call.
    calls.arcs.iter_mut().for_each(|arc| arc.call_site = None);
    let has_costs =
        |profile: &Profile| default_metric(profile).is_some_and(|metric| profile.run_cost(metric) > 0);
    let mut profile = match sampled.filter(has_costs) {
        Some(sampled) => merge(&[&sampled, &calls]),
        None => {
            add_calls_as_costs(&mut calls);
            calls
        }
    };
    profile.metadata.collector = "treering gprof".to_owned();
    crate::output_name::note_place(&mut profile);
    counted.warnings.iter().for_each(|warning| profile.metadata.note(warning.as_str()));
    if counted.lost > 0 {
        profile.metadata.note(format!(
            "{} not counted: there was no room, or the program had not begun",
            pluralize(counted.lost, "call was", "calls were")
        ));
    }
    profile
}

/// Lets a program load the library first, and count in the folder.
fn preload<'a>(command: &'a mut Command, library: &Path, folder: &Path) -> &'a mut Command {
    let mut libraries = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        libraries.push(":");
        libraries.push(others);
    }
    command.env("LD_PRELOAD", libraries).env("TREERING_PG", folder).stdin(Stdio::inherit())
}

/// Whether a folder has room for what a thread counts.
fn room(folder: &Path) -> std::io::Result<()> {
    const TABLE: usize = 64 << 10;
    let file = folder.join("room");
    let written = std::fs::write(&file, vec![1; TABLE]);
    std::fs::remove_file(&file).and(written)
}

/// Runs a program to its end, and passes signals on to it.
fn to_its_end(command: &mut Command, name: &str) -> Result<ExitStatus, Failure> {
    let (mut child, _relay) = Relay::spawn(command).map_err(|error| {
        Failure::new(format_args!("cannot run {name}: {}", reason(&error))).status(start_status(&error))
    })?;
    child.wait().context(format_args!("cannot wait for {name}"))
}

/// Whether a program linked statically has the library in it, which the name of its variable tells.
fn has_library(program: &Path) -> std::io::Result<bool> {
    const NAME: &[u8] = b"TREERING_PG=";
    let mut file = std::io::BufReader::with_capacity(1 << 16, std::fs::File::open(program)?);
    let mut matched = 0;
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        for &byte in bytes {
            matched = if byte == NAME[matched] { matched + 1 } else { usize::from(byte == NAME[0]) };
            if matched == NAME.len() {
                return Ok(true);
            }
        }
        let length = bytes.len();
        file.consume(length);
    }
}
