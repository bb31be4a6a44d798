//! Calls that programs compiled with `-pg` have counted: the files of `libtreering_pg.so`, and the functions that their
//! addresses are of.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use treering_formats::arc_file::{ArcFile, read, used_bytes};
use treering_profile::{
    Arc, FileOffset, Function, FunctionId, Metric, Module, ModuleId, ModuleKind, Profile, RecursionRule,
    RuntimeAddress, SegmentMap, StatedAddress, Unit,
};
use treering_symbols::{CodeLayout, Options, ReportedCalls, code_layout, segment_map};

use crate::failure::{Context as _, Failure};
use crate::word::word;

/// The counted calls.
#[derive(Debug)]
pub struct Counted {
    /// Arcs between functions that are addresses yet.
    pub profile: Profile,
    /// How many calls.
    pub calls: u64,
    /// How many calls were not counted for want of room.
    pub lost: u64,
    /// How many programs counted.
    pub programs: usize,
    /// Missing or doubtful parts, for a person; lower case, no full stop.
    pub warnings: Vec<String>,
    /// Whether files are damaged, so that they may be worth keeping.
    pub is_damaged: bool,
}

/// Reads the files in a folder. Damaged files are reported, and are an error if there is no other.
pub fn read_folder(folder: &Path) -> Result<Counted, Failure> {
    let entries = std::fs::read_dir(folder).context(format_args!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "arcs"));
    paths.sort();
    let mut joining = Joining::new();
    let (mut damaged, mut begun) = (Vec::new(), 0);
    for path in &paths {
        match used_part(path) {
            Ok(Some(bytes)) => match read(&bytes) {
                Ok(file) => joining.add(&file, modified(path)),
                Err(error) => damaged.push(format!("{}: {error}", path.display())),
            },
            Ok(None) => begun += 1,
            Err(error) => damaged.push(format!("{}: {error}", path.display())),
        }
    }
    if let Some(first) = damaged.first().filter(|_| damaged.len() == paths.len()) {
        return Err(Failure::new(first)
            .hint(format_args!("nothing can be recovered; to go on without: rm -r {}", word(folder))));
    }
    let mut counted = joining.counted(paths.len() - begun - damaged.len());
    counted.is_damaged = !damaged.is_empty();
    counted.warnings.extend(damaged.into_iter().map(|what| format!("{what}; what it counted is lost")));
    if begun > 0 {
        counted.warnings.push(format!(
            "processes that made a file and counted nothing in it: {begun}; there was no room on the disk, or they ended at once"
        ));
    }
    Ok(counted)
}

/// The processes that have files of a folder mapped, and may count in them until they end. One whose mappings cannot be
/// read, as it is another user's by now, counts if it has the number of one that made a file, and is younger than the folder.
pub fn still_counting(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_counted = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "arcs");
    let paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_counted).collect();
    let files: BTreeSet<u64> =
        paths.iter().filter_map(|path| path.metadata().ok()).map(|found| found.ino()).collect();
    let maker = |path: &PathBuf| path.file_stem()?.to_str()?.split('-').next()?.parse::<u32>().ok();
    let makers: BTreeSet<u32> = paths.iter().filter_map(maker).collect();
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let counts = |process: &u32| match std::fs::read(format!("/proc/{process}/maps")) {
        Ok(maps) => String::from_utf8_lossy(&maps).lines().any(|line| {
            let inode = line.split_ascii_whitespace().nth(4).and_then(|inode| inode.parse().ok());
            line.ends_with(".arcs") && inode.is_some_and(|inode: u64| files.contains(&inode))
        }),
        Err(error) => {
            error.kind() == std::io::ErrorKind::PermissionDenied
                && makers.contains(process)
                && is_younger(*process, folder)
        }
    };
    let mut going_on: Vec<u32> = numbers.filter(counts).collect();
    going_on.sort_unstable();
    going_on
}

/// Whether a process was started after a folder was made.
fn is_younger(process: u32, folder: &Path) -> bool {
    const TICKS_PER_SECOND: f64 = 100.0;
    // Behind the name in brackets, the twentieth (proc(5), field 22), since the system was started.
    let started = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse::<f64>().ok()
    };
    let uptime = || std::fs::read_to_string("/proc/uptime").ok()?.split(' ').next()?.parse::<f64>().ok();
    let age_of_folder = || folder.metadata().ok()?.created().ok()?.elapsed().ok();
    let younger = |ticks: f64, uptime: f64, folder: std::time::Duration| {
        uptime - ticks / TICKS_PER_SECOND <= folder.as_secs_f64()
    };
    started()
        .zip(uptime())
        .zip(age_of_folder())
        .is_some_and(|((ticks, uptime), age)| younger(ticks, uptime, age))
}

/// When a file was changed or took its name: one that is moved to where another was keeps the time of its last change.
fn changed(path: &Path) -> Option<SystemTime> {
    let found = path.metadata().ok()?;
    let since = Duration::new(found.ctime().try_into().ok()?, found.ctime_nsec().try_into().ok()?);
    Some(found.modified().ok()?.max(SystemTime::UNIX_EPOCH + since))
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

/// The part of a file that was used: the whole takes gigabytes, though no room on the disk. Nothing if its program did
/// not come to use it.
fn used_part(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    // Reading anything else with such a name might never end.
    if !path.symlink_metadata()?.is_file() {
        return Err(std::io::Error::other("it is no file"));
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.by_ref().take(64).read_to_end(&mut bytes)?;
    if bytes.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let used = used_bytes(&bytes);
    if used > length {
        let why = format!("it is cut short: {used} bytes were used, {length} are left");
        return Err(std::io::Error::other(why));
    }
    file.take(used.saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// A file that code was mapped from.
struct Binary {
    module: ModuleId,
    segments: SegmentMap,
    layout: CodeLayout,
}

/// Gathers the calls of all files as arcs of one profile.
struct Joining {
    profile: Profile,
    binaries: HashMap<String, Option<Binary>>,
    arcs: HashMap<(FunctionId, FunctionId), u64>,
    lost: u64,
    /// The binaries that were changed or replaced after calls had been counted.
    newer: BTreeSet<String>,
}

impl Joining {
    fn new() -> Self {
        let profile = Profile::new(RecursionRule::Full);
        let newer = BTreeSet::new();
        Self { profile, binaries: HashMap::new(), arcs: HashMap::new(), lost: 0, newer }
    }

    /// Adds the calls in a file, and the time of its last change.
    fn add(&mut self, file: &ArcFile, written: Option<SystemTime>) {
        self.lost = self.lost.saturating_add(file.lost);
        for object in &file.objects {
            let changed = changed(Path::new(&object.path));
            if changed.zip(written).is_some_and(|(changed, written)| changed > written) {
                self.newer.insert(object.path.clone());
            }
        }
        for table in &file.tables {
            let mut by_binary: BTreeMap<&str, Vec<ReportedCalls>> = BTreeMap::new();
            for arc in &table.arcs {
                let at = |address| (address, table.process, table.generation);
                // A return address may be the first one behind the caller.
                let caller = self.place(file, at(arc.from - 1));
                let Some((path, callee)) = self.place(file, at(arc.callee)) else {
                    let callee = Function::at_address(None, StatedAddress(arc.callee));
                    let callee = self.profile.functions.intern(callee);
                    let caller = caller.and_then(|(path, at)| self.function(path, at));
                    self.add_calls(caller, callee, arc.calls);
                    continue;
                };
                by_binary.entry(path).or_default().push(ReportedCalls {
                    site: arc.from,
                    caller: caller.filter(|(of, _)| *of == path).map(|(_, at)| at),
                    callee,
                    calls: arc.calls,
                });
            }
            for (path, reported) in by_binary {
                for call in self.settled(path, reported) {
                    let Some(callee) = self.function(path, call.callee) else { continue };
                    let at = (call.site - 1, table.process, table.generation);
                    let caller = match call.caller {
                        Some(at) => self.function(path, at),
                        None => self.place(file, at).and_then(|(path, at)| self.function(path, at)),
                    };
                    self.add_calls(caller, callee, call.calls);
                }
            }
        }
    }

    fn settled(&self, path: &str, reported: Vec<ReportedCalls>) -> Vec<ReportedCalls> {
        match self.binaries.get(path) {
            Some(Some(binary)) => binary.layout.settle(reported),
            _ => reported,
        }
    }

    fn add_calls(&mut self, caller: Option<FunctionId>, callee: FunctionId, calls: u64) {
        let sum = self.arcs.entry((caller.unwrap_or(Profile::ROOT), callee)).or_default();
        *sum = sum.saturating_add(calls);
    }

    /// The binary that holds an address of a process, and the address there.
    fn place<'f>(
        &mut self,
        file: &'f ArcFile,
        (address, process, generation): (u64, u32, u64),
    ) -> Option<(&'f str, u64)> {
        let object = file.object_at(address, process, generation)?;
        if !self.binaries.contains_key(&object.path) {
            let binary = self.binary(&object.path);
            self.binaries.insert(object.path.clone(), binary);
        }
        let binary = self.binaries.get(&object.path)?.as_ref()?;
        let (start, offset) = (RuntimeAddress(object.start), FileOffset(object.offset));
        let bias = binary.segments.bias(start, offset, object.end - object.start)?;
        Some((&object.path, address.wrapping_sub(bias)))
    }

    /// The function at an address of a binary, under the address at which it begins.
    fn function(&mut self, path: &str, stated: u64) -> Option<FunctionId> {
        let binary = self.binaries.get(path)?.as_ref()?;
        let entry = StatedAddress(binary.layout.start(stated).unwrap_or(stated));
        Some(self.profile.functions.intern(Function::at_address(Some(binary.module), entry)))
    }

    fn binary(&mut self, path: &str) -> Option<Binary> {
        let segments = segment_map(Path::new(path)).ok()?;
        let layout = code_layout(Path::new(path), &Options::default()).ok()?;
        let name = self.profile.strings.intern(path);
        let build_id = layout.build_id.clone().into();
        let module = self.profile.modules.intern(Module { path: name, build_id, kind: ModuleKind::Elf });
        Some(Binary { module, segments, layout })
    }

    fn counted(mut self, programs: usize) -> Counted {
        let mut arcs: Vec<_> = self.arcs.into_iter().collect();
        arcs.sort_unstable();
        let calls = arcs.iter().fold(0, |sum: u64, (_, calls)| sum.saturating_add(*calls));
        for ((caller, callee), calls) in arcs {
            self.profile.add_arc(Arc { caller, callee, call_site: None, calls, total_costs: Vec::new() });
        }
        let warning = |path| {
            format!(
                "{path} was changed or replaced since calls were counted: if it was built again, these are of the wrong functions"
            )
        };
        let warnings = self.newer.into_iter().map(warning).collect();
        Counted { profile: self.profile, calls, lost: self.lost, programs, warnings, is_damaged: false }
    }
}

/// Gives a profile of arcs a metric, for want of another: how often functions were called.
pub fn add_calls_as_costs(profile: &mut Profile) {
    let metric = profile.add_metric(Metric::exact("calls", Unit::Count));
    let thread = profile.add_single_thread("");
    let root = profile.threads[thread.index()].root;
    for at in 0..profile.arcs.len() {
        let (callee, calls) = (profile.arcs[at].callee, profile.arcs[at].calls);
        let node = profile.tree.child(root, callee, None);
        profile.tree.add_self_cost(metric, node, calls);
    }
}
