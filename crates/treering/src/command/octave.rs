//! `treering octave`: runs a script under GNU Octave and profiles it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use treering_formats::Format;
use treering_proc::reason;

use super::archive::Kept;
use crate::ending::{exit_status, start_status};
use crate::failure::{Context as _, Failure, Outcome};
use crate::interpreter::{self, children, print_summary, writable};
use crate::library;
use crate::open::open_profile;
use crate::output::{check_target, make_way};
use crate::page::beside;

/// Run a script under GNU Octave and profile its functions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  treering octave simulate.m 100         profile a script with an argument
  treering octave --args simulate.m      costs by the size of the arguments as well
  treering octave --lines simulate.m     then: treering report --lines FUNCTION
  treering octave --eval 'bch (20)'      profile code

The script runs unchanged. Then: treering report --callgraph")]
pub struct Octave {
    /// The file to write, or an archive that gets the profile. In its name, `%p` stands for
    /// the process, `%h` for the machine, `%r` for the rank, and `%%` for %
    #[arg(short, long, value_name = "FILE", default_value = "treering.trg", value_parser = crate::output_name::parser())]
    output: PathBuf,

    /// One record for each function, without callers and callees
    #[arg(long)]
    flat: bool,

    /// Record hits and time of each line
    #[arg(long, conflicts_with = "flat")]
    lines: bool,

    /// Record costs by the size of the largest argument
    #[arg(long)]
    args: bool,

    /// Record operators as well, at a higher cost
    #[arg(long)]
    operators: bool,

    /// Record how much memory each function allocates, at a higher cost
    #[arg(long)]
    memory: bool,

    /// Leave out of the profile when time passed
    #[arg(long)]
    no_time: bool,

    /// Record only functions whose name matches, with * and ?; may be given several times
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,

    /// Do not record functions whose name matches
    #[arg(long = "except", alias = "ignore", value_name = "PATTERN")]
    ignore: Vec<String>,

    /// The Octave to run
    #[arg(long, value_name = "PROGRAM", default_value = "octave-cli")]
    octave: OsString,

    /// Run this code instead of a script
    #[arg(long, value_name = "CODE", conflicts_with = "command")]
    eval: Option<OsString>,

    /// Make a page of the profile at the end and open it, as `treering view` does
    #[arg(long)]
    view: bool,

    /// Replace the file even if it is not a profile that Treering wrote
    #[arg(long)]
    force: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// The script and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "eval", value_name = "SCRIPT ARGS")]
    command: Vec<OsString>,
}

/// The command for an Octave that the script starts.
const WORKER: &str = include_str!("../../hooks/PKG_ADD");

/// The function by which a script marks its phases.
const MARK: &str = include_str!("../../hooks/treering_mark.m");

/// Files that hold paths, which Octave's texts could not: of the profile, and of the script.
const WANTED: &str = "wanted";
const SCRIPT: &str = "script";

/// The message for a refused interpreter.
const KNOWN: &str =
    "Treering knows Octave 7 to 11 on Linux and x86-64, with liboctinterp as a shared library";

impl Octave {
    /// Runs the script, prints the summary and passes on the exit status.
    pub fn run(mut self) -> Outcome {
        let kept = Kept::instead_of(&mut self.output, self.view)?;
        let quiet = self.quiet;
        let outcome = self.run_to_file();
        Kept::finish(kept, quiet, outcome)
    }

    fn run_to_file(mut self) -> Outcome {
        let _claim = crate::output_name::Claim::take(&mut self.output)?;
        let script = self.command.first().filter(|_| self.eval.is_none());
        if let Some(script) = script.filter(|script| !Path::new(script).is_file()) {
            return Err(no_script(Path::new(script)));
        }
        let inputs: Vec<&Path> = script.map(Path::new).into_iter().collect();
        check_target(&self.output, &inputs, Format::Trg, self.force)?;
        if self.view {
            beside(&self.output, self.force)?;
        }
        make_way(&self.output, self.force)?;
        let folder = Folder::create(&self.options(), &writable(&self.output)?, script.map(Path::new))?;
        let mut command = self.command(&folder)?;
        let cannot_run = |error| self.cannot_run(&error);
        let status = interpreter::run(&mut command, &folder.folder, cannot_run, "Octave")?;
        if let Some(reason) = folder.refusal() {
            let is_refused = reason.contains("cannot be profiled");
            let failure = Failure::new(reason);
            return Err(if is_refused { failure.hint(KNOWN) } else { failure });
        }
        self.conclude(&folder, status)
    }

    /// The words for `on`.
    fn options(&self) -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = vec![if self.flat { "flat" } else { "graph" }.into()];
        let switches = [
            (self.lines, "-lines"),
            (self.args, "-args"),
            (self.operators, "-operators"),
            (self.memory, "-memory"),
            (self.no_time, "-notime"),
        ];
        words.extend(switches.iter().filter(|(is_on, _)| *is_on).map(|(_, word)| (*word).into()));
        for (name, patterns) in [("-only", &self.only), ("-ignore", &self.ignore)] {
            words.extend(patterns.iter().flat_map(|pattern| [name.into(), pattern.clone().into_bytes()]));
        }
        words.push(b"-fold".to_vec());
        words
    }

    fn command(&self, folder: &Folder) -> Result<Command, Failure> {
        let mut command = Command::new(&self.octave);
        command.arg("--path").arg(folder.path());
        if let Some(code) = &self.eval {
            command.arg("--eval").arg(code);
        }
        command.args(&self.command);
        command.envs(folder.for_workers(&self.options()));
        command
            .env("TREERING_OCTAVE_COMMAND", interpreter::write_command(folder.path(), &self.command_line())?);
        Ok(command)
    }

    /// Octave's command line without what is added to it here.
    fn command_line(&self) -> Vec<OsString> {
        let code = self.eval.iter().flat_map(|code| [OsString::from("--eval"), code.clone()]);
        std::iter::once(self.octave.clone()).chain(code).chain(self.command.iter().cloned()).collect()
    }

    fn cannot_run(&self, error: &std::io::Error) -> Failure {
        let name = Path::new(&self.octave).display().to_string();
        Failure::new(format_args!("cannot run {name}: {}", reason(error)))
            .hint("install GNU Octave, for instance with: sudo apt-get install octave")
            .hint("or name its program: treering octave --octave PROGRAM SCRIPT")
            .status(start_status(error))
    }

    fn conclude(&self, folder: &Folder, status: ExitStatus) -> Outcome {
        let code = exit_status(status);
        let Some(output) = folder.output() else {
            return Err(Failure::new("Octave ended before it could be profiled").status(code.max(1)));
        };
        let opened = open_profile(&output).map_err(|failure| failure.status(code.max(1)))?;
        opened.print_warnings();
        let is_chosen = !(self.only.is_empty() && self.ignore.is_empty());
        let tree = &opened.profile.tree;
        if is_chosen && tree.nodes().all(|node| tree.calls(node) == 0) {
            tell!("warning: --only and --except leave out all functions that were called");
            tell!(
                "hint: names are those of a report, such as solve, solve>part or @Class/method; * stands for any part"
            );
        }
        if !self.quiet {
            let start = opened.profile.runs.first().map_or(u64::MAX, |run| run.start_unix_ns);
            print_summary(&opened.profile, &output, &children(&output, start), status, "Octave");
        }
        if self.view {
            // Where the name was in use, the profile has another one.
            let shown = beside(&output, self.force).and_then(|page| page.show(self.quiet));
            shown.map_err(|failure| failure.status(code.max(1)))?;
        }
        Ok(ExitCode::from(code))
    }
}

/// The message for a script that is not there.
fn no_script(script: &Path) -> Failure {
    let hint = "name the file with its folder: treering octave [OPTIONS] SCRIPT.m ARGS...";
    interpreter::no_file(script, "script", ".m", hint)
}

/// A folder on Octave's load path: with the library, and with the file that Octave runs when it
/// starts.
struct Folder {
    folder: treering_temporary::Folder,
    /// Whether recording begins with a script, rather than with code.
    has_script: bool,
}

impl Folder {
    fn create(options: &[Vec<u8>], output: &Path, script: Option<&Path>) -> Result<Self, Failure> {
        let library = library::OCTAVE.path()?;
        let folder = Self { folder: interpreter::folder("octave")?, has_script: script.is_some() };
        let cannot = format!("cannot write to {}", folder.path().display());
        let worker = folder.worker();
        std::fs::create_dir(&worker).context(&cannot)?;
        for place in [folder.path(), &worker] {
            std::os::unix::fs::symlink(&library, place.join("__treering__.mex")).context(&cannot)?;
        }
        std::fs::write(folder.path().join("PKG_ADD"), folder.start_file(options)).context(&cannot)?;
        std::fs::write(worker.join("PKG_ADD"), WORKER).context(&cannot)?;
        std::fs::write(folder.path().join("treering_mark.m"), MARK).context(&cannot)?;
        std::fs::write(folder.path().join(WANTED), output.as_os_str().as_bytes()).context(&cannot)?;
        if let Some(script) = script {
            let script = std::path::absolute(script).context(&cannot)?;
            std::fs::write(folder.path().join(SCRIPT), script.as_os_str().as_bytes()).context(&cannot)?;
        }
        Ok(folder)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// On the load path of every Octave that this one starts.
    fn worker(&self) -> PathBuf {
        self.path().join("worker")
    }

    /// The environment by which workers of the package parallel record too.
    fn for_workers(&self, options: &[Vec<u8>]) -> [(&'static str, OsString); 2] {
        let mut path = std::env::var_os("OCTAVE_PATH").filter(|path| !path.is_empty()).unwrap_or_default();
        if !path.is_empty() {
            path.push(":");
        }
        path.push(self.worker());
        let worker = self.worker().into_os_string().into_encoded_bytes();
        let words = [vec![worker], options.to_vec(), self.own_options()].concat();
        let words = OsString::from_vec(words.join(&b'\n'));
        [("OCTAVE_PATH", path), ("TREERING_OCTAVE_WORKER", words)]
    }

    /// The code that Octave runs when it starts: it places the hooks, which then wait for the script or the
    /// code. Where they are refused Octave ends.
    fn start_file(&self, options: &[Vec<u8>]) -> Vec<u8> {
        let name = |file: &str| quoted(self.path().join(file).as_os_str().as_bytes());
        let words = [options.to_vec(), self.own_options()].concat();
        let words: Vec<Vec<u8>> = words.iter().map(|word| quoted(word)).collect();
        let on = [b"  __treering__ ('on', ", &words.join(&b", "[..])[..], b");\n  __treering__ ('off');\n"]
            .concat();
        let write = |file: &str, what: &str| {
            let file = name(file);
            [
                b"  treering_file__ = fopen (",
                &file[..],
                b", 'w'); fputs (treering_file__, ",
                what.as_bytes(),
                b"); fclose (treering_file__);\n",
            ]
            .concat()
        };
        // The folder is in the load path that workers of the package parallel are given.
        let once = [b"if (exist (", &name("output")[..], b", 'file') != 2)\n"].concat();
        [
            once,
            b"try\n".to_vec(),
            on,
            b"catch treering_error__\n".to_vec(),
            write("refused", "treering_error__.message"),
            // At this moment exit crashes Octave.
            b"  kill (getpid (), 9);\nend\nclear treering_file__ treering_error__\n".to_vec(),
            match self.has_script {
                true => [b"__treering__ ('await', '-named-in', ", &name(SCRIPT)[..], b");\n"].concat(),
                false => b"__treering__ ('await');\n".to_vec(),
            },
            b"end\n".to_vec(),
        ]
        .concat()
    }

    /// The options by which the library learns the file to write, which it tells in the file `output`, and where our own
    /// functions are.
    fn own_options(&self) -> Vec<Vec<u8>> {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let wanted = bytes(&self.path().join(WANTED));
        vec![b"-output-named-in".to_vec(), wanted, b"-home".to_vec(), bytes(self.path())]
    }

    /// Why the hooks were refused, if they were.
    fn refusal(&self) -> Option<String> {
        let text = std::fs::read(self.path().join("refused")).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Some(text.strip_prefix("__treering__: ").map_or(text.clone(), str::to_owned))
    }

    /// The file of the profile, which has another name than asked for where that was in use.
    fn output(&self) -> Option<PathBuf> {
        let name = std::fs::read(self.path().join("output")).ok().filter(|name| !name.is_empty())?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(&name)))
    }
}

/// A text of Octave's language.
fn quoted(text: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = text.split(|&byte| byte == b'\'').collect();
    [b"'", &parts.join(&b"''"[..])[..], b"'"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_octave_reads_them() {
        assert_eq!(quoted(b"it's \"a\" \\n"), b"'it''s \"a\" \\n'");
        assert_eq!(quoted(b""), b"''");
    }
}
