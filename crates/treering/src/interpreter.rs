//! The common part of the commands for interpreted languages: running an interpreter that loads our library, and printing the
//! summary of the profile.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use treering_profile::Profile;
use treering_report::Style;
use treering_temporary::Folder;

use crate::command::archive::in_archive;
use crate::ending::signal_name;
use crate::failure::{Context as _, Failure};
use crate::open::open_profile;
use crate::output::{cannot_write, leads_nowhere, no_stream};
use crate::relay::Relay;
use crate::stream::is_stream;
use crate::terminal;
use crate::word::{report_argument, word};

/// A folder for the time of one run of a language's interpreter.
pub fn folder(language: &str) -> Result<Folder, Failure> {
    Folder::create(language).context("cannot make a folder")
}

/// The message for a file to run, called a `noun`, that is not there. It may be there with the ending of the language.
pub fn no_file(path: &Path, noun: &str, ending: &str, hint: &str) -> Failure {
    let shown = path.display();
    if path.is_dir() {
        return Failure::new(format_args!("{shown} is a directory"))
            .hint(format_args!("name a {noun} in it"));
    }
    let failure = Failure::new(format_args!("there is no {noun} {shown}"));
    let mut with_ending = path.as_os_str().to_owned();
    with_ending.push(ending);
    let with_ending = Path::new(&with_ending);
    match with_ending.is_file() {
        true => failure.hint(format_args!("there is {}", with_ending.display())),
        false => failure.hint(hint),
    }
}

/// Writes the words of the user's command, which the profile is to show, into a file that our library
/// reads; returns its path. Words that are added here are left out.
pub fn write_command(folder: &Path, words: &[OsString]) -> Result<PathBuf, Failure> {
    let path = folder.join("command");
    let text: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
    std::fs::write(&path, text).context(format_args!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The full path of the file to write, which can be written.
pub fn writable(output: &Path) -> Result<PathBuf, Failure> {
    let named = output;
    no_stream(named, "the script")?;
    let output = std::path::absolute(named).context("cannot tell where the profile goes")?;
    if output.is_dir() {
        return Err(
            Failure::new(format_args!("{} is a directory", output.display())).hint("name a file after -o")
        );
    }
    // It would be tried before the run and read after it, which a pipe or a device does not allow.
    if is_stream(&output) {
        let message = format!("cannot write {}: it is not a regular file", named.display());
        return Err(Failure::new(message).hint("name a file after -o"));
    }
    if leads_nowhere(&output) {
        return Ok(output);
    }
    let is_new = !output.exists();
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&output)
        .map_err(|error| cannot_write(named, &error))?;
    if is_new {
        // It was only tried; the profile makes it anew.
        let _ = std::fs::remove_file(&output);
    }
    Ok(output)
}

/// Runs an interpreter to its end, and passes signals on to it. Where it cannot be run, `cannot_run` makes
/// the failure of the error. The interpreter keeps its folder should this process be killed.
pub fn run(
    command: &mut Command,
    folder: &Folder,
    cannot_run: impl FnOnce(std::io::Error) -> Failure,
    name: &str,
) -> Result<ExitStatus, Failure> {
    let (mut child, _relay) = Relay::spawn(command).map_err(cannot_run)?;
    // Without it the folder may be gone too early; that is no reason to end.
    let _ = folder.is_used_by(child.id());
    child.wait().context(format_args!("cannot wait for {name}"))
}

/// Prints what is to be known of the profile of an interpreter named `name`, and what to type next.
pub fn print_summary(profile: &Profile, output: &Path, children: &[PathBuf], status: ExitStatus, name: &str) {
    let style = Style { colour: terminal::error_colour(), width: terminal::error_width() };
    tell!();
    if let Some(signal) = status.signal() {
        let signal = signal_name(signal);
        tell!("{name} was ended by {signal}; the profile holds what was recorded until then");
    }
    tell_part!("{}", treering_report::summary(profile, &style, 8));
    if in_archive() {
        return;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let file = output.strip_prefix(&here).unwrap_or(output);
    let argument = report_argument(file);
    tell!("\nwrote {}; next: treering report{argument} --callgraph or --tree", file.display());
    let children: Vec<String> =
        children.iter().map(|child| word(child.strip_prefix(&here).unwrap_or(child))).collect();
    let all = children.join(" ");
    match children.len() {
        0 => return,
        1 => tell!("a process that the script started wrote its own profile: {all}"),
        count => tell!("{count} processes that the script started wrote their own profiles: {all}"),
    }
    tell!("all in one: treering merge {} {all} -o all.trg", word(file));
}

/// The profiles of processes that the script has forked, and of workers: beside the script's own, with
/// a number in their names, begun since.
pub fn children(output: &Path, start_unix_ns: u64) -> Vec<PathBuf> {
    let stem = output.file_stem().unwrap_or_default().as_bytes();
    let is_child = |path: &PathBuf| {
        let rest = path.file_stem().unwrap_or_default().as_bytes().strip_prefix(stem);
        let is_numbered = rest.and_then(|rest| rest.strip_prefix(b".")).is_some_and(|rest| {
            rest.first().is_some_and(u8::is_ascii_digit)
                && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
        });
        is_numbered
            && path != output
            && path.extension() == output.extension()
            && is_since(path, start_unix_ns)
    };
    let beside = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = std::fs::read_dir(beside).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut children: Vec<PathBuf> = found.filter(is_child).collect();
    children.sort();
    children
}

/// Whether a profile was begun after a moment.
fn is_since(profile: &Path, start_unix_ns: u64) -> bool {
    open_profile(profile)
        .is_ok_and(|opened| opened.profile.runs.iter().any(|run| run.start_unix_ns >= start_unix_ns))
}
