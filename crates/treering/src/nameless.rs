//! The nameless code that costs most, how to get its names, and when its builds cannot be told apart.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use treering_analysis::{Basis, default_metric};
use treering_profile::{FunctionKind, Module, ModuleId, ModuleKind, Note, Profile, StatedAddress};
use treering_report::plural;

/// Shares of the run below this are not worth a remark.
const WORTH_SAYING: f64 = 0.01;

/// Notes, before all else, the module with the highest cost in code without names, with a hint how to get
/// them.
pub fn note_nameless(profile: &mut Profile) {
    let Some(metric) = default_metric(profile) else { return };
    let basis = Basis::of(profile, metric);
    let mut costs = vec![0_u64; profile.modules.len()];
    for node in profile.tree.nodes() {
        let function = &profile.functions[profile.tree.function(node)];
        if let (FunctionKind::Unresolved, Some(module)) = (function.kind, function.module) {
            costs[module.index()] += profile.tree.self_cost(metric, node);
        }
    }
    let Some((at, &cost)) = costs.iter().enumerate().max_by_key(|(_, cost)| **cost) else { return };
    if basis.share(cost) < WORTH_SAYING {
        return;
    }
    let module = &profile.modules[ModuleId::from_usize(at)];
    let path = &profile.strings[module.path];
    let percent = |cost: u64| format!("{:.1} %", 100.0 * basis.share(cost));
    let others: u64 = costs.iter().sum::<u64>() - cost;
    let others = match basis.share(others) < WORTH_SAYING {
        true => String::new(),
        false => format!(" ({} more in other modules)", percent(others)),
    };
    let remedy = remedy(module, path);
    let note = Note(format!("{} is in functions of {path} without names{others}: {remedy}", percent(cost)));
    profile.metadata.notes.insert(0, note);
}

/// Notes the files without a build id whose functions without a name are in several profiles that became one: nothing tells
/// whether they are of one build, and functions at equal addresses were added up.
pub fn note_joined(merged: &mut Profile, profiles: &[&Profile]) {
    let mut times: BTreeMap<&str, HashMap<StatedAddress, usize>> = BTreeMap::new();
    for profile in profiles {
        let nameless = |kind| matches!(kind, FunctionKind::Unresolved | FunctionKind::Address);
        let functions = profile.functions.entries().iter().filter(|function| nameless(function.kind));
        for (module, address) in functions.filter_map(|function| Some((function.module?, function.address?)))
        {
            let module = &profile.modules[module];
            if module.build_id.is_empty() && module.kind != ModuleKind::Kernel {
                *times.entry(&profile.strings[module.path]).or_default().entry(address).or_default() += 1;
            }
        }
    }
    let joined = times.into_iter().filter(|(_, addresses)| addresses.values().any(|&times| times > 1));
    let paths: Vec<&str> = joined.map(|(path, _)| path).collect();
    let Some(first) = paths.first() else { return };
    let others = match paths.len() - 1 {
        0 => String::new(),
        others => format!(" (so for {})", plural(others as u64, "other file")),
    };
    merged.metadata.note(format!(
        "{first} has no build id, so its functions without a name at equal addresses were added up, even if the \
         profiles are of different builds{others}: link it with -Wl,--build-id"
    ));
}

/// The way to get names for the functions of a module.
fn remedy(module: &Module, path: &str) -> String {
    match module.kind {
        ModuleKind::Kernel => "record as root, or set kernel.kptr_restrict to 0".to_owned(),
        ModuleKind::Jit => {
            "its runtime must write /tmp/perf-PID.map or a jitdump, which most do when told".to_owned()
        }
        ModuleKind::Vdso => {
            "it is code of the kernel that every process has, and names are known of its entries only"
                .to_owned()
        }
        _ => {
            let package = debian_package(Path::new(path)).map(|package| match package.as_str() {
                "libc6" => "install libc6-dbg".to_owned(),
                package => format!("install {package}-dbgsym"),
            });
            let id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let fetch = (!id.is_empty()).then(|| format!("debuginfod-find debuginfo {id}"));
            let ways: Vec<_> = package.into_iter().chain(fetch).collect();
            match ways.is_empty() {
                true => "build it with -g and without -s".to_owned(),
                false => format!("{}, and record again", ways.join(" or ")),
            }
        }
    }
}

/// The Debian package that a file belongs to, as dpkg's lists of files tell.
fn debian_package(path: &Path) -> Option<String> {
    // No package has files elsewhere.
    let folders = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt"];
    if path.starts_with("/usr/local") || !folders.iter().any(|folder| path.starts_with(folder)) {
        return None;
    }
    let file = path.file_name()?.as_bytes();
    let path = path.to_str()?;
    // Packages from before /bin and /lib were joined with those in /usr list the short paths.
    let short = path
        .strip_prefix("/usr")
        .filter(|rest| rest.starts_with("/bin") || rest.starts_with("/lib") || rest.starts_with("/sbin"));
    let lists = std::fs::read_dir("/var/lib/dpkg/info").ok()?;
    let lists = lists.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name())));
    let mut lists: Vec<_> =
        lists.filter(|list| list.extension().is_some_and(|ending| ending == "list")).collect();
    // There are hundreds. Most packages have names that begin as those of their programs and libraries do.
    let alike =
        |list: &PathBuf| list.as_os_str().as_bytes().iter().zip(file).take_while(|(a, b)| a == b).count();
    lists.sort_by_cached_key(|list| (std::cmp::Reverse(alike(list)), list.clone()));
    let owns = |list: &PathBuf| {
        let text = std::fs::read_to_string(Path::new("/var/lib/dpkg/info").join(list)).unwrap_or_default();
        text.lines().any(|line| line == path || Some(line) == short)
    };
    let list = lists.into_iter().find(owns)?;
    let name = list.file_stem()?.to_str()?;
    Some(name.split(':').next().unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    use treering_profile::{Frame, Function, MetricId};

    use super::*;

    fn module(profile: &mut Profile, path: &str, kind: ModuleKind) -> ModuleId {
        let path = profile.strings.intern(path);
        profile.modules.intern(Module { path, build_id: [0xab, 0xcd].into(), kind })
    }

    fn add(profile: &mut Profile, module: ModuleId, address: u64, cost: u64) {
        let name = profile.strings.intern(&format!("x+{address}"));
        let unnamed = Function {
            kind: FunctionKind::Unresolved,
            name,
            ..Function::at_address(Some(module), StatedAddress(address))
        };
        let function = profile.functions.intern(unnamed);
        let thread = treering_profile::ThreadId::new(0);
        profile.add_stack(thread, &[Frame::new(function)], None, &[(MetricId::new(0), cost)]);
    }

    #[test]
    fn the_module_that_costs_most_comes_first_whatever_its_addresses() {
        let mut profile = treering_testing::stacks("main 6");
        let large = module(&mut profile, "/opt/no such/liblarge.so.1", ModuleKind::Elf);
        let small = module(&mut profile, "/opt/no such/libsmall.so.1", ModuleKind::Elf);
        add(&mut profile, large, 1, 90_000_000);
        (0..6).for_each(|address| add(&mut profile, small, address, 600_000));
        profile.metadata.note("another");
        note_nameless(&mut profile);
        let text = &profile.metadata.notes[0].0;
        assert!(
            text.starts_with("90.4 % is in functions of /opt/no such/liblarge.so.1 without names"),
            "{text}"
        );
        assert!(text.contains("(3.6 % more in other modules)"), "{text}");
        assert!(text.ends_with("debuginfod-find debuginfo abcd, and record again"), "{text}");
    }

    /// A command was named that fetches debug information, which most distributions do not have of it.
    #[test]
    fn code_of_the_kernel_in_the_process_has_no_file_to_fetch() {
        let mut profile = treering_testing::stacks("main 6");
        let vdso = module(&mut profile, "[vdso]", ModuleKind::Vdso);
        add(&mut profile, vdso, 1, 90_000_000);
        note_nameless(&mut profile);
        let text = &profile.metadata.notes[0].0;
        assert!(text.contains("[vdso] without names: it is code of the kernel"), "{text}");
    }

    #[test]
    fn builds_that_nothing_tells_apart_are_named_when_they_are_added_up() {
        let profile = |build: &[u8]| {
            let mut profile = treering_testing::stacks("main 6");
            let path = profile.strings.intern("/opt/solve");
            let module =
                profile.modules.intern(Module { path, build_id: build.into(), kind: ModuleKind::Elf });
            add(&mut profile, module, 1, 5);
            profile
        };
        let notes = |one: &[u8], other: &[u8]| {
            let (one, other) = (profile(one), profile(other));
            let mut merged = treering_profile::merge(&[&one, &other]);
            note_joined(&mut merged, &[&one, &other]);
            merged.metadata.notes
        };
        let told = notes(&[], &[]);
        assert!(told.len() == 1 && told[0].0.starts_with("/opt/solve has no build id"), "{told:?}");
        assert!(notes(&[1], &[2]).is_empty() && notes(&[], &[1]).is_empty());
    }

    #[test]
    fn named_code_gets_no_remark() {
        let mut profile = treering_testing::stacks("main 6");
        note_nameless(&mut profile);
        assert!(profile.metadata.notes.is_empty());
    }

    #[test]
    fn files_of_debian_know_their_package() {
        let path = std::fs::canonicalize("/bin/ls").expect("there is ls");
        let Some(package) = debian_package(&path) else {
            return tell!("skipped: no lists of dpkg here");
        };
        assert_eq!(package, "coreutils");
        assert_eq!(debian_package(Path::new("/usr/local/bin/ls")), None);
    }
}
