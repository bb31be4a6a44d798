//! The owner of a function's code: the program, a library, the kernel, a script.

use std::collections::HashSet;

use treering_profile::{FunctionId, FunctionKind, ModuleId, Profile, StringId};

/// The owner of a function's code. Pages store its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Category {
    /// Code of the program, other than a library's headers compiled into it.
    Own = 0,
    /// Shared objects, what an interpreter brings with it, and libraries compiled in.
    Library = 1,
    /// The kernel, and what it maps into programs.
    Kernel = 2,
    /// Interpreted functions, and code made at run time.
    Script = 3,
}

/// Tells the categories of the functions of one profile, by what kind they are, their module, and their file.
pub struct Categories<'a> {
    profile: &'a Profile,
    programs: HashSet<ModuleId>,
}

impl<'a> Categories<'a> {
    /// Finds out which modules are programs, in O(modules + functions).
    pub fn of(profile: &'a Profile) -> Self {
        Self { profile, programs: programs(profile) }
    }

    /// The owner of a function's code.
    pub fn category(&self, function: FunctionId) -> Category {
        let entry = &self.profile.functions[function];
        match entry.kind {
            FunctionKind::Kernel => Category::Kernel,
            FunctionKind::Builtin | FunctionKind::Operator | FunctionKind::Extension => Category::Library,
            FunctionKind::Interpreted
            | FunctionKind::Script
            | FunctionKind::Anonymous
            | FunctionKind::Jit => Category::Script,
            FunctionKind::Task | FunctionKind::Root => Category::Own,
            _ => self.of_code(entry.module, entry.file),
        }
    }

    fn of_code(&self, module: Option<ModuleId>, file: StringId) -> Category {
        if is_library_file(&self.profile.strings[file]) {
            return Category::Library;
        }
        let Some(module) = module else { return Category::Own };
        let path = &self.profile.strings[self.profile.modules[module].path];
        match () {
            () if path.starts_with("[kernel") || path == "[vdso]" || path.ends_with(".ko") => {
                Category::Kernel
            }
            () if self.programs.contains(&module) => Category::Own,
            () => Category::Library,
        }
    }
}

/// The modules that are programs: named as the commands are, or else those that hold a `main`, or
/// else all that are not shared objects.
fn programs(profile: &Profile) -> HashSet<ModuleId> {
    let paths: Vec<(ModuleId, &str)> =
        profile.modules.iter().map(|(id, module)| (id, &profile.strings[module.path])).collect();
    let named: HashSet<&str> = profile
        .runs
        .iter()
        .filter_map(|run| run.command.first())
        .map(|command| base_name(command))
        .chain(profile.processes.iter().map(|process| process.name.as_str()))
        .filter(|name| !name.is_empty())
        .collect();
    let is_named = |path: &str| named.contains(base_name(path));
    let of_commands: HashSet<_> =
        paths.iter().filter(|(_, path)| is_named(path)).map(|&(id, _)| id).collect();
    if !of_commands.is_empty() {
        return of_commands;
    }
    let main = profile.functions.entries().iter();
    let main = main.filter(|function| &profile.strings[function.name] == "main");
    let with_main: HashSet<_> = main.filter_map(|function| function.module).collect();
    if !with_main.is_empty() {
        return with_main;
    }
    let shared = |path: &str| path.contains(".so") || path.starts_with('[');
    paths.iter().filter(|(_, path)| !shared(path)).map(|&(id, _)| id).collect()
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a source file is one of a library that compilers put into programs.
fn is_library_file(path: &str) -> bool {
    const PARTS: &[&str] =
        &["/usr/include/", "/usr/lib/", "/rustc/", "/.cargo/registry/", "/rust/deps/", "/library/std/src/"];
    PARTS.iter().any(|part| path.contains(part))
        || path.starts_with("./nptl/")
        || path.starts_with("../sysdeps/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_libraries_are_not_the_programs_own() {
        assert!(is_library_file("/usr/include/c++/12/bits/shared_ptr.h"));
        assert!(is_library_file("/rustc/abc/library/core/src/slice/mod.rs"));
        assert!(!is_library_file("src/main.rs"));
        assert!(!is_library_file(""));
    }
}
