//! Writes result files so that no half of one is left under its name, and none is lost by mistake.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tempfile::NamedTempFile;
use treering_formats::{Format, is_ours};

use crate::failure::{Context as _, Failure};
use crate::png;
use crate::stream::{Stream, is_stream};
use crate::terminal;
use crate::word::word;
use crate::working::Working;

/// Profiles hold source texts and arguments of commands, so only their owner may read them.
const MODE: u32 = 0o600;

/// Writes a file whole or not at all: `write` fills a file beside it that is then given its name.
///
/// `-` stands for standard output. Pipes, devices and open files (`/dev/stdout`) are written directly.
pub fn write_whole<E: std::fmt::Display>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), Failure> {
    write_beside(path, write, || Ok(()))
}

/// The same for the profile of a program that was run, which cannot simply be made again: an earlier one of that name is
/// kept as `.old`.
pub fn write_profile<E: std::fmt::Display>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), Failure> {
    let keep =
        || std::fs::rename(path, older(path)).context(format_args!("cannot move {} away", path.display()));
    write_beside(path, write, || if is_profile(path) { keep() } else { Ok(()) })
}

/// Writes a file whole or not at all; `make_way` is called when only its name is missing.
fn write_beside<E: std::fmt::Display>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    make_way: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let cannot = format!("cannot write {}", path.display());
    let _working = Working::on(format!("writing {}", path.display()));
    if path == Path::new("-") {
        let mut text = Vec::new();
        write(&mut text).map_err(Failure::new)?;
        return terminal::print_bytes(&text);
    }
    if let Some(stream) = Stream::open(path)? {
        return stream.write(write);
    }
    let mut beside = Beside::create(path).map_err(|error| cannot_write(path, &error))?;
    if let Some(file) = &mut beside.file {
        fill(file.as_file_mut(), write).context(&cannot)?;
    }
    make_way()?;
    beside.rename(path).context(cannot)
}

/// Writes a profile that has no place at its own name into the directory for temporary files; where it is. Nobody can have put
/// anything under its name before.
pub fn write_elsewhere<E: std::fmt::Display>(
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<PathBuf, Failure> {
    let folder = treering_temporary::directory();
    let mut options = tempfile::Builder::new();
    let new = options.prefix("treering-").suffix(".trg").tempfile_in(&folder);
    let mut file = new.context(format_args!("cannot write into {}", folder.display()))?;
    let cannot = format!("cannot write {}", file.path().display());
    fill(file.as_file_mut(), write).context(&cannot)?;
    file.keep().map(|(_, path)| path).context(cannot)
}

/// Refuses `-` where standard output is the profiled program's.
pub fn no_stream(output: &Path, whose: &str) -> Result<(), Failure> {
    if output != Path::new("-") {
        return Ok(());
    }
    let message = format!("the profile cannot go to standard output, where {whose} prints");
    Err(Failure::new(message).hint("name a file after -o"))
}

/// Why a file cannot be written, by the name that the user gave it, and what to do about it.
pub fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    let (shown, folder) = (path.display(), folder_of(path));
    match error.kind() {
        ErrorKind::NotFound if matches!(folder.try_exists(), Ok(false)) => no_folder(path),
        ErrorKind::NotADirectory => {
            let folder = folder.display();
            Failure::new(format_args!("cannot write {shown}: {folder} is no folder")).hint(ELSEWHERE)
        }
        ErrorKind::PermissionDenied => {
            Failure::new(format_args!("cannot write {shown}: permission denied")).hint(ELSEWHERE)
        }
        ErrorKind::ReadOnlyFilesystem => {
            Failure::new(format_args!("cannot write {shown}: the file system is read-only")).hint(ELSEWHERE)
        }
        // Without the random name of the file that was to become this one.
        _ => {
            let text = error.to_string();
            let text = text.split(" at path \"").next().unwrap_or(&text);
            Failure::new(format_args!("cannot write {shown}: {text}"))
        }
    }
}

const ELSEWHERE: &str = "name a file where you may write after -o";

fn no_folder(path: &Path) -> Failure {
    let (shown, folder) = (path.display(), folder_of(path));
    Failure::new(format_args!("cannot write {shown}: there is no folder {}", folder.display()))
        .hint(format_args!("make it first: mkdir -p {}", word(folder)))
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Creates a file that must not exist yet, as it will grow: so a link that another user put there is not followed.
pub fn create_new(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)
}

/// Whether a name is a link that leads to nothing. As any link it is replaced in the end, and never followed.
pub fn leads_nowhere(path: &Path) -> bool {
    path.is_symlink() && !path.exists()
}

/// Writes all of something to a place.
pub fn fill<E: std::fmt::Display>(
    to: impl Write,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), String> {
    let mut to = BufWriter::new(to);
    write(&mut to).map_err(|error| error.to_string())?;
    to.flush().map_err(|error| error.to_string())
}

/// A file in the same folder, so that giving it its final name is one step. Its name is drawn at random,
/// it is new, and it is removed unless it gets its name, also when a signal ends us.
struct Beside {
    /// Until it has its final name.
    file: Option<NamedTempFile>,
    path: PathBuf,
}

/// Files to be removed when a signal ends us.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

impl Beside {
    fn create(path: &Path) -> std::io::Result<Self> {
        // A signal between the two steps waits for the second.
        let mut unfinished = unfinished();
        let file = tempfile::Builder::new()
            .prefix(".treering-")
            .suffix(".part")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(MODE))
            .tempfile_in(folder_of(path))?;
        let path = file.path().to_owned();
        unfinished.insert(path.clone());
        Ok(Self { file: Some(file), path })
    }

    fn rename(mut self, path: &Path) -> std::io::Result<()> {
        self.file.take().map_or(Ok(()), |file| file.persist(path).map(drop).map_err(|error| error.error))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.file = None;
        unfinished().remove(&self.path);
    }
}

fn unfinished() -> std::sync::MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, SIGINT, SIGTERM and SIGHUP remove unfinished files before they end this process as they do
/// by default. For commands that let these signals end them.
pub fn clean_up_at_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let heeded = heeded.filter(|&signal| !treering_proc::is_ignored(signal));
        // Without it files may be left; that is no reason to write none.
        let Ok(mut signals) = Signals::new(heeded) else { return };
        std::thread::spawn(move || {
            for signal in signals.forever() {
                // No file is created from here on.
                let unfinished = unfinished();
                for path in unfinished.iter() {
                    let _ = std::fs::remove_file(path);
                }
                let _ = emulate_default_handler(signal);
            }
        });
    });
}

/// Makes sure that the folder of `output` can be written, and that writing destroys nothing: neither one of the files that are read, whatever
/// the names and links by which they are reached, nor, unless forced, a file that is no profile of ours.
/// `writing` is the format that is to be written.
pub fn check_target(output: &Path, inputs: &[&Path], writing: Format, force: bool) -> Result<(), Failure> {
    check(output, inputs, "profile", |start| is_ours(start, writing), force)
}

/// The same for a picture that is to be written.
pub fn check_picture_target(output: &Path, inputs: &[&Path], force: bool) -> Result<(), Failure> {
    check(output, inputs, "picture", treering_report::is_picture, force)
}

/// The same for a plot that is to be written. The ending chooses how it is drawn, so that of another picture is refused.
pub fn check_plot_target(output: &Path, inputs: &[&Path], force: bool) -> Result<(), Failure> {
    const OTHERS: [&str; 10] = ["bmp", "eps", "gif", "jpeg", "jpg", "pdf", "ps", "tif", "tiff", "webp"];
    let ending = output.extension().unwrap_or_default();
    if OTHERS.iter().any(|other| ending.eq_ignore_ascii_case(other)) {
        let message = format!("{}: plots are drawn as SVG and PNG only", output.display());
        return Err(Failure::new(message).hint("name a file that ends in .svg or .png after -o"));
    }
    check(output, inputs, "plot", |start| treering_plot::is_plot(start) || png::is_ours(start), force)
}

/// The same for a file of coverage that is to be written.
pub fn check_coverage_target(output: &Path, inputs: &[&Path], force: bool) -> Result<(), Failure> {
    check(output, inputs, "file of coverage", treering_report::is_coverage, force)
}

/// The same for a page that is to be written.
pub fn check_page_target(output: &Path, inputs: &[&Path], force: bool) -> Result<(), Failure> {
    check(output, inputs, "page", treering_viewer::is_page, force)
}

/// The same for counts of events that are to be written.
pub fn check_stat_target(output: &Path, force: bool) -> Result<(), Failure> {
    check(output, &[], "file of counts", |start| treering_stat::is_stat(start, &end_of(output)), force)
}

/// The last bytes of a file; none where it cannot be read.
fn end_of(path: &Path) -> Vec<u8> {
    const LOOK: u64 = 4 << 10;
    let mut end = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOOK)))?;
        file.read_to_end(&mut end)
    });
    read.map_or_else(|_| Vec::new(), |_| end)
}

/// Makes sure that a file for CI can be written, and replaces none but one of its kind, which begins with one of `starts`: CI
/// writes it again and again.
pub fn check_ci_target(output: &Path, starts: &[u8]) -> Result<(), Failure> {
    check(output, &[], "file for CI", |_| true, false)?;
    let is_alike = |start: &[u8]| start.first().is_none_or(|first| starts.contains(first));
    if !output.is_file() || is_stream(output) || starts_as(output, is_alike) {
        return Ok(());
    }
    let message = format!("{} exists and is nothing that Treering writes for CI", output.display());
    Err(Failure::new(message).hint("name another file, or remove this one"))
}

/// Removes a file that is no profile if `force` is given: libraries that write profiles themselves replace only their own.
pub fn make_way(output: &Path, force: bool) -> Result<(), Failure> {
    let is_foreign = || output.is_file() && !starts_as(output, |start| is_ours(start, Format::Trg));
    if force && is_foreign() {
        std::fs::remove_file(output).map_err(|error| cannot_write(output, &error))?;
    }
    Ok(())
}

fn check(
    output: &Path,
    inputs: &[&Path],
    what: &str,
    is_ours: impl FnOnce(&[u8]) -> bool,
    force: bool,
) -> Result<(), Failure> {
    let shown = output.display();
    let problem = match output.is_dir() {
        true => Some(format!("{shown} is a directory")),
        false if !output.as_os_str().as_encoded_bytes().ends_with(b"/") => None,
        false => Some(format!("cannot write {shown}: there is no such folder")),
    };
    if let Some(problem) = problem {
        return Err(Failure::new(problem).hint("name a file after -o"));
    }
    let Ok(known) = std::fs::metadata(output).or_else(|_| std::fs::symlink_metadata(output)) else {
        return if output == Path::new("-") { Ok(()) } else { check_folder(output) };
    };
    if output == Path::new("-") || !known.is_file() || is_stream(output) {
        return Ok(());
    }
    let same = |input: &&&Path| {
        let input = if **input == Path::new("-") { Path::new("/dev/stdin") } else { **input };
        std::fs::metadata(input).is_ok_and(|input| (input.dev(), input.ino()) == (known.dev(), known.ino()))
    };
    if let Some(input) = inputs.iter().find(same) {
        let (output, input) = (output.display(), input.display());
        let message = format!("{output} is the input {input} itself, which would be lost");
        return Err(Failure::new(message).hint("name another file after -o"));
    }
    if force || known.len() == 0 || starts_as(output, is_ours) {
        return Ok(());
    }
    let message = format!("{} exists and is not a {what} that Treering wrote", output.display());
    Err(Failure::new(message).hint("name another file after -o, or replace it with --force"))
}

/// The same as [`check_target`] for the profile of a program to be run, whose predecessor is kept as `.old`.
pub fn check_collected(output: &Path, inputs: &[&Path], force: bool) -> Result<(), Failure> {
    check_target(output, inputs, Format::Trg, force)?;
    if is_profile(output) { check_target(&older(output), inputs, Format::Trg, force) } else { Ok(()) }
}

pub fn is_profile(path: &Path) -> bool {
    path.is_file() && !is_stream(path) && starts_as(path, |start| is_ours(start, Format::Trg))
}

/// Keeps what is there as `.old`; true if there was anything. Another file of that name is not replaced unless forced.
pub fn keep_older(path: &Path, force: bool) -> Result<bool, Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(false);
    }
    let old = older(path);
    check_target(&old, &[], Format::Trg, force)?;
    std::fs::rename(path, &old).context(format_args!("cannot move {} away", path.display()))?;
    Ok(true)
}

/// Puts back what [`keep_older`] has kept.
pub fn restore_older(path: &Path) {
    let _ = std::fs::rename(older(path), path);
}

fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    PathBuf::from(name)
}

/// Makes sure that the folder of a file that is not there is.
fn check_folder(output: &Path) -> Result<(), Failure> {
    let folder = folder_of(output);
    match folder.try_exists() {
        Ok(false) => Err(no_folder(output)),
        Ok(true) if !folder.is_dir() => Err(cannot_write(output, &ErrorKind::NotADirectory.into())),
        // Other faults show when it is written.
        _ => Ok(()),
    }
}

/// Whether the beginning of a file is one of ours.
fn starts_as(path: &Path, is_ours: impl FnOnce(&[u8]) -> bool) -> bool {
    const LOOK: u64 = 64 << 10;
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LOOK).read_to_end(&mut start));
    read.is_ok() && is_ours(&start)
}
