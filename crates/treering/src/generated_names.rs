//! The files in which JIT compilers write the names of their code.
//!
//! They lie in directories where any user may put files. So a file is believed only if it belongs to the process's
//! own user or to root, is not a link, a pipe or a device, and is not older than the process.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use treering_perf::JitProcess;
use treering_profile::{FunctionId, MetricId, Profile};
use treering_symbols::{JitTable, jitdump, open_trusted, own_user, perf_map};

/// Larger maps are none: they would hold some five million functions.
const LARGEST_MAP: u64 = 512 << 20;

/// Dumps hold code too.
const LARGEST_DUMP: u64 = 1 << 30;

/// The clock by which the kernel dates files is behind by some milliseconds, and starts of processes
/// are known by the second.
const CLOCK_ERROR: Duration = Duration::from_secs(2);

/// Reads the names that the JIT compilers of a recording wrote, as tables by module; names that were not
/// believed become a note of the profile.
///
/// Of a recording that was cut short only the processes' numbers are known, which name the files
/// that are usual.
pub(crate) fn tables(profile: &mut Profile, processes: &[JitProcess]) -> Vec<(String, JitTable)> {
    let mut reader = Reader::default();
    for process in processes {
        let folder = process.folder.as_ref().map_or(PathBuf::from("/tmp"), descriptor_path);
        let name = format!("perf-{}.map", process.inner_pid);
        let owners = process.owners.iter().copied().chain(own_user()).collect();
        let rights = Rights { owners, since: started(process) };
        reader.read_map(&process.module, &folder.join(&name), &Path::new("/tmp").join(&name), &rights);
        for dump in &process.dumps {
            reader.read_dump(&process.module, &inside(&folder, dump), dump, &rights);
        }
    }
    for module in profile.modules.entries() {
        let name = &profile.strings[module.path];
        let pid = name.strip_prefix("[jit ").and_then(|name| name.strip_suffix(']'));
        let known = processes.iter().any(|process| process.module == *name);
        if let Some(pid) = pid.filter(|_| !known) {
            let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
            let dump = PathBuf::from(format!("/tmp/jit-{pid}.dump"));
            let rights = Rights { owners: own_user().into_iter().collect(), since: None };
            reader.read_map(name, &map, &map, &rights);
            reader.read_dump(name, &dump, &dump, &rights);
        }
    }
    for note in reader.notes {
        profile.metadata.note(note);
    }
    if let Some(note) = reused(profile, &reader.tables) {
        profile.metadata.note(note);
    }
    reader.tables
}

/// Says how much was spent at addresses that several functions had in turn: the profile does not
/// tell which of them a sample was in, and shows the last.
fn reused(profile: &Profile, tables: &[(String, JitTable)]) -> Option<String> {
    let metric = profile.metrics.first().map(|_| MetricId::new(0))?;
    let mut costs: HashMap<FunctionId, u64> = HashMap::new();
    for node in profile.tree.nodes() {
        *costs.entry(profile.tree.function(node)).or_default() += profile.tree.self_cost(metric, node);
    }
    let (mut sum, mut dearest) = (0, None);
    for (&function, &cost) in &costs {
        let function = &profile.functions[function];
        let (Some(address), Some(module)) = (function.address, function.module) else { continue };
        let path = &profile.strings[profile.modules[module].path];
        let table =
            tables.iter().rev().find(|(name, table)| name == path && !table.names(address.0).is_empty());
        let names = table.map(|(_, table)| table.names(address.0)).unwrap_or_default();
        let [.., before, last] = names[..] else { continue };
        sum += cost;
        if dearest.as_ref().is_none_or(|(most, _)| cost > *most) {
            dearest = Some((cost, format!("{before}, then {last}")));
        }
    }
    let whole = profile.run_cost(metric).max(1);
    let (_, example) = dearest.filter(|_| sum > 0)?;
    Some(format!(
        "{:.1} % was spent at addresses that several generated functions used one after another \
         ({example}); all of it is shown as the last one's",
        100.0 * sum as f64 / whole as f64
    ))
}

/// The users that may have written a file of names, and the earliest time.
struct Rights {
    owners: Vec<u32>,
    since: Option<SystemTime>,
}

#[derive(Default)]
struct Reader {
    tables: Vec<(String, JitTable)>,
    notes: Vec<String>,
}

impl Reader {
    fn read_map(&mut self, module: &str, path: &Path, shown: &Path, rights: &Rights) {
        if let Some(bytes) = self.read(path, shown, rights, LARGEST_MAP) {
            let symbols = perf_map::parse(&String::from_utf8_lossy(&bytes));
            if symbols.is_empty() && !bytes.is_empty() {
                self.refuse(shown, "no line of it has a start, a size above 0 and a name");
            }
            self.add(module, JitTable::from_perf_map(symbols));
        }
    }

    fn read_dump(&mut self, module: &str, path: &Path, shown: &Path, rights: &Rights) {
        let Some(bytes) = self.read(path, shown, rights, LARGEST_DUMP) else { return };
        if let Ok(dump) = jitdump::parse(&bytes) {
            self.add(module, JitTable::from_jitdump(dump));
        }
    }

    fn add(&mut self, module: &str, table: JitTable) {
        if !table.is_empty() {
            self.tables.push((module.to_owned(), table));
        }
    }

    /// The contents of a file, if it is there and to be believed.
    fn read(&mut self, path: &Path, shown: &Path, rights: &Rights, largest: u64) -> Option<Vec<u8>> {
        match open_trusted(path, &rights.owners, largest) {
            Ok(file) => {
                let file = file?;
                if is_older(&file, rights.since) {
                    self.refuse(shown, "it is older than the process");
                    return None;
                }
                let mut bytes = Vec::new();
                file.take(largest).read_to_end(&mut bytes).ok()?;
                Some(bytes)
            }
            Err(refusal) => {
                self.refuse(shown, &refusal.to_string());
                None
            }
        }
    }

    fn refuse(&mut self, path: &Path, why: &str) {
        self.notes.push(format!("names of generated code in {} were ignored: {why}", path.display()));
    }
}

fn started(process: &JitProcess) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_nanos(process.started_unix_ns?))
}

/// Whether a file was last written before a time.
fn is_older(file: &File, since: Option<SystemTime>) -> bool {
    let written = file.metadata().and_then(|about| about.modified()).ok();
    let latest = written.and_then(|written| written.checked_add(CLOCK_ERROR));
    since.is_some_and(|since| latest.is_some_and(|latest| latest < since))
}

/// A dump in a process's `/tmp` by way of that folder, which may be of another namespace.
fn inside(folder: &Path, dump: &Path) -> PathBuf {
    dump.strip_prefix("/tmp").map_or_else(|_| dump.to_owned(), |name| folder.join(name))
}

/// A path by which an open file can be opened again.
pub(crate) fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
