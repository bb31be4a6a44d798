//! `treering prolog`: loads a program into SWI-Prolog, runs a goal and profiles it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use clap::ValueEnum;
use treering_formats::{Format, trg};
use treering_proc::reason;

use super::archive::Kept;
use crate::ending::{exit_status, signal_name, start_status};
use crate::failure::{Context as _, Failure, Outcome};
use crate::interpreter::{self, children, print_summary, writable};
use crate::library;
use crate::open::{Opened, open_profile};
use crate::output::{check_collected, make_way, write_elsewhere, write_profile};
use crate::page::beside;

/// Run a goal under SWI-Prolog and profile its predicates
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  treering prolog queens.pl -g 'queens(10, _)'           SWI-Prolog's own profiler, the whole tree
  treering prolog --ports queens.pl -g 'queens(8, _)'    exact calls, exits, redos and fails
  treering prolog --ports --except loop/1 program.pl     leave a long loop out
  treering prolog program.pl -- 100                      run main with an argument

The exit status is that of swipl: 1 if the goal fails, 2 if it raises an exception.
Then: treering report --callgraph")]
pub struct Prolog {
    /// The file to write, or an archive that gets the profile. In its name, `%p` stands for
    /// the process, `%h` for the machine, `%r` for the rank, and `%%` for %
    #[arg(short, long, value_name = "FILE", default_value = "treering.trg", value_parser = crate::output_name::parser())]
    output: PathBuf,

    /// The goal to profile
    ///
    /// [default: main]
    #[arg(short, long, value_name = "GOAL")]
    goal: Option<String>,

    /// Count calls, exits, redos, fails, exceptions and cuts exactly, at a higher cost
    #[arg(long)]
    ports: bool,

    /// The time to measure
    #[arg(long, value_enum, value_name = "CLOCK", default_value = "cpu")]
    clock: Clock,

    /// With --ports: which activations share a node of the tree
    #[arg(long, value_enum, value_name = "RULE", requires = "ports")]
    recursion: Option<Rule>,

    /// With --ports: count the predicates of this module only; may be given several times
    #[arg(long, value_name = "MODULE", requires = "ports")]
    module: Vec<String>,

    /// With --ports: count this predicate, as NAME/ARITY or MODULE:NAME/ARITY
    #[arg(long, value_name = "PREDICATE", requires = "ports")]
    predicate: Vec<String>,

    /// With --ports: do not count this predicate
    #[arg(long, value_name = "PREDICATE", requires = "ports")]
    except: Vec<String>,

    /// The SWI-Prolog to run
    #[arg(long, value_name = "PROGRAM", default_value = "swipl")]
    swipl: OsString,

    /// How large SWI-Prolog's stacks may become, as 4g
    #[arg(long, value_name = "SIZE")]
    stack_limit: Option<String>,

    /// Make a page of the profile at the end and open it, as `treering view` does
    #[arg(long)]
    view: bool,

    /// Replace the file even if it is not a profile that Treering wrote
    #[arg(long)]
    force: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// The file to load
    #[arg(value_name = "FILE.pl")]
    program: PathBuf,

    /// Arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clock {
    /// Processor time
    Cpu,
    /// Time that passes
    Wall,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rule {
    /// A predicate that calls itself stays in its node
    Direct,
    /// A node for each depth
    Full,
    /// An arc that is on the path leads back up to it
    SwiClassic,
}

/// The pack's own file.
const PACK: &str = include_str!("../../hooks/treering.pl");

impl Prolog {
    /// Runs the goal, prints the summary and passes on the exit status.
    pub fn run(mut self) -> Outcome {
        let kept = Kept::instead_of(&mut self.output, self.view)?;
        let quiet = self.quiet;
        let outcome = self.run_to_file();
        Kept::finish(kept, quiet, outcome)
    }

    fn run_to_file(mut self) -> Outcome {
        let _claim = crate::output_name::Claim::take(&mut self.output)?;
        if !self.program.is_file() {
            return Err(no_program(&self.program));
        }
        check_collected(&self.output, &[&self.program], self.force)?;
        if self.view {
            beside(&self.output, self.force)?;
        }
        make_way(&self.output, self.force)?;
        let output = writable(&self.output)?;
        let kept = interpreter::folder("prolog")?;
        let folder = kept.path();
        let pack = folder.join("treering.pl");
        std::fs::write(&pack, PACK).context(format_args!("cannot write {}", pack.display()))?;
        let first = first(folder);
        std::fs::write(&first, before(&pack)).context(format_args!("cannot write {}", first.display()))?;
        let mut command = self.command(folder, &output)?;
        let status = interpreter::run(&mut command, &kept, |error| self.cannot_run(&error), "SWI-Prolog")?;
        self.conclude(folder, &output, status)
    }

    fn command(&self, folder: &Path, output: &Path) -> Result<Command, Failure> {
        let mut command = Command::new(&self.swipl);
        // Without the library ticks are recorded all the same.
        match library::PROLOG.path() {
            Ok(library) => drop(command.env("TREERING_PROLOG_LIBRARY", library)),
            Err(missing) if self.ports => return Err(missing),
            Err(_) => {}
        }
        command.args(self.stack_limit.iter().map(|limit| format!("--stack-limit={limit}")));
        command.args(["-g", "treering:from_shell", "-t", "halt"]);
        command.arg(first(folder)).arg(&self.program).arg("--").args(&self.arguments);
        let shown = interpreter::write_command(folder, &self.command_line())?;
        command
            .env("TREERING_PROLOG_COMMAND", shown)
            .env("TREERING_PROLOG_GOAL", self.goal())
            .env("TREERING_PROLOG_PROGRAM", &self.program)
            .env("TREERING_PROLOG_OPTIONS", self.options(&written(folder)))
            .env("TREERING_PROLOG_TOLD", told(folder));
        if self.ports {
            command.env("TREERING_PROLOG_OUTPUT", output);
        }
        if self.quiet {
            command.env("TREERING_PROLOG_QUIET", "1");
        }
        if self.goal.is_none() {
            command.env("TREERING_PROLOG_MAIN", &self.program);
        }
        Ok(command)
    }

    fn goal(&self) -> &str {
        self.goal.as_deref().unwrap_or("main")
    }

    /// The program as it is started without us.
    fn command_line(&self) -> Vec<OsString> {
        let mut words =
            vec![self.swipl.clone(), "-g".into(), self.goal().into(), self.program.clone().into()];
        if !self.arguments.is_empty() {
            words.push("--".into());
            words.extend(self.arguments.iter().cloned());
        }
        words
    }

    /// The options of `treering/2`.
    fn options(&self, written: &Path) -> String {
        let clock = if self.clock == Clock::Cpu { "cpu" } else { "wall" };
        let output = quoted(&written.to_string_lossy());
        let mut options = vec![
            "report(none)".to_owned(),
            format!("output({output})"),
            format!("clock({clock})"),
            format!("ports({})", self.ports),
        ];
        options.extend(self.recursion.map(|rule| {
            let rule = match rule {
                Rule::Direct => "direct",
                Rule::Full => "full",
                Rule::SwiClassic => "swi_classic",
            };
            format!("recursion({rule})")
        }));
        if !self.module.is_empty() {
            let modules: Vec<_> = self.module.iter().map(|module| quoted(module)).collect();
            options.push(format!("modules([{}])", modules.join(",")));
        }
        for (name, predicates) in [("predicates", &self.predicate), ("except", &self.except)] {
            if !predicates.is_empty() {
                options.push(format!("{name}([{}])", predicates.join(",")));
            }
        }
        format!("[{}]", options.join(","))
    }

    fn cannot_run(&self, error: &std::io::Error) -> Failure {
        let name = Path::new(&self.swipl).display().to_string();
        Failure::new(format_args!("cannot run {name}: {}", reason(error)))
            .hint("install SWI-Prolog, for instance with: sudo apt-get install swi-prolog-nox")
            .hint("or name its program: treering prolog --swipl PROGRAM FILE.pl")
            .status(start_status(error))
    }

    fn conclude(&self, folder: &Path, output: &Path, status: ExitStatus) -> Outcome {
        let code = exit_status(status);
        let Some(written) = self.profile(folder) else {
            return Err(no_profile(folder, status, self.ports).status(code.max(1)));
        };
        let mut opened = open_profile(&written).map_err(|failure| failure.status(code.max(1)))?;
        opened.print_warnings();
        let output = if opened.format == Format::Prolog {
            self.keep(&mut opened, output)?;
            output
        } else {
            &written
        };
        if !self.quiet {
            let start = opened.profile.runs.first().map_or(u64::MAX, |run| run.start_unix_ns);
            print_summary(&opened.profile, output, &children(output, start), status, "SWI-Prolog");
        }
        if self.view {
            // Where the name was in use, the profile has another one.
            let shown = beside(output, self.force).and_then(|page| page.show(self.quiet));
            shown.map_err(|failure| failure.status(code.max(1)))?;
        }
        Ok(ExitCode::from(code))
    }

    /// The file that was written: by the library, which tells its name, or by Prolog.
    fn profile(&self, folder: &Path) -> Option<PathBuf> {
        if self.ports {
            let name = std::fs::read(told(folder)).ok().filter(|name| !name.is_empty())?;
            return Some(PathBuf::from(OsString::from_vec(name)));
        }
        Some(written(folder)).filter(|written| written.is_file())
    }

    /// Writes the profile that Prolog has written as text.
    fn keep(&self, opened: &mut Opened, output: &Path) -> Result<(), Failure> {
        for warning in &opened.warnings {
            opened.profile.metadata.note(warning.clone());
        }
        if let Some(run) = opened.profile.runs.first_mut() {
            let words = self.command_line();
            run.command = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        }
        let profile = &opened.profile;
        write_profile(output, |file| trg::write(profile, file)).map_err(|failure| {
            match write_elsewhere(|file| trg::write(profile, file)) {
                Ok(elsewhere) => failure.hint(format_args!(
                    "the profile was written elsewhere: treering report {}",
                    crate::word::word(&elsewhere)
                )),
                Err(_) => failure,
            }
        })
    }
}

/// Why there is no profile.
fn no_profile(folder: &Path, status: ExitStatus, ports: bool) -> Failure {
    let mut begun = told(folder).into_os_string();
    begun.push(".begun");
    let has_begun = Path::new(&begun).exists();
    let how = status.signal().map(|signal| format!("{} ended SWI-Prolog", signal_name(signal)));
    match (has_begun, how) {
        (true, how) => {
            let how = how.unwrap_or_else(|| format!("SWI-Prolog ended with status {}", exit_status(status)));
            let failure = Failure::new(format_args!("{how} before the profile was written; what was recorded is lost"));
            if ports { failure } else { failure.hint("with --ports the profile is in a file while the goal runs") }
        }
        // Prolog has said already which option or goal was wrong.
        (false, None) if status.code() == Some(2) => Failure::new("the goal was not called"),
        (false, Some(how)) => Failure::new(format_args!("{how} before the goal was called")),
        (false, None) => Failure::new("SWI-Prolog ended before the goal could be profiled").hint(
            "a program that runs and halts while it is loaded has to be loaded without that: name what it runs \
             with -g GOAL, and take it out of the file",
        ),
    }
}

/// The file that Prolog writes as text.
fn written(folder: &Path) -> PathBuf {
    folder.join("profile")
}

/// The code that SWI-Prolog loads before the program.
fn first(folder: &Path) -> PathBuf {
    folder.join("first.pl")
}

/// Loads the pack, without the names that it exports. Programs mark their phases by a predicate of the system, so that one
/// of the same name in a program takes its place.
fn before(pack: &Path) -> String {
    const MARK: &str = ":- assertz((system:treering_mark(Name) :- treering:treering_mark(Name))).\n";
    format!(":- use_module({}, []).\n{MARK}:- treering:before_shell.\n", quoted(&pack.to_string_lossy()))
}

/// Where Prolog tells which file it writes.
fn told(folder: &Path) -> PathBuf {
    folder.join("told")
}

/// The message for a program that is not there.
fn no_program(program: &Path) -> Failure {
    let hint = "name the file to load: treering prolog [OPTIONS] FILE.pl -g GOAL";
    interpreter::no_file(program, "file", ".pl", hint)
}

/// An atom of Prolog.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_prolog_reads_them() {
        assert_eq!(quoted(r"it's a\b"), r"'it\'s a\\b'");
    }

    #[test]
    fn the_pack_reads_alike_in_every_locale() {
        // A character beyond ASCII was an illegal sequence in the locale C.
        assert!(super::PACK.is_ascii());
    }
}
