//! The nameless code that costs most, and how to get its names.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use treering_analysis::{Basis, default_metric};
use treering_profile::{FunctionKind, Module, ModuleId, ModuleKind, Note, Profile};

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

/// The way to get names for the functions of a module.
fn remedy(module: &Module, path: &str) -> String {
    match module.kind {
        ModuleKind::Kernel => "record as root, or set kernel.kptr_restrict to 0".to_owned(),
        ModuleKind::Jit => {
            "its runtime must write /tmp/perf-PID.map or a jitdump, which most do when told".to_owned()
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
    use treering_profile::{Frame, Function, MetricId, StatedAddress};

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
