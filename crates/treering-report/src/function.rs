//! The names of functions in a listing.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use treering_analysis::{Identity, function_name, module_name};
use treering_profile::{FunctionId, FunctionKind, Profile, StringId};

use crate::name::plain;
use crate::printable::printable;

/// How listings name the functions of a profile: each one by another text, as far as anything tells them apart.
pub fn labels(profile: &Profile) -> impl Fn(FunctionId) -> String {
    let labels = Labels::of(profile);
    move |function| labels.with_module(function)
}

/// Names functions; with their module where the profile has more than one.
///
/// Additions of compilers are left out, unless two functions would be called the same then. Those that
/// are get what tells them apart: their kind, their file, their line, the folder of their module or else a number.
pub(crate) struct Labels<'a> {
    profile: &'a Profile,
    several_modules: bool,
    /// Names that are shown in full.
    whole: HashSet<FunctionId>,
    /// The additions to names.
    told_by: HashMap<FunctionId, String>,
}

impl<'a> Labels<'a> {
    pub(crate) fn of(profile: &'a Profile) -> Self {
        let mut modules = profile.functions.entries().iter().filter_map(|function| function.module);
        let first = modules.next();
        let several_modules = modules.any(|module| Some(module) != first);
        let (whole, told_by) = (HashSet::new(), HashMap::new());
        let mut labels = Self { profile, several_modules, whole, told_by };
        labels.tell_apart();
        labels
    }

    /// Finds functions that would be called the same although they are several to a person.
    fn tell_apart(&mut self) {
        let identity = Identity::of(self.profile);
        let ids = (0..self.profile.functions.len()).map(FunctionId::from_usize);
        let functions: Vec<_> = ids.filter(|&id| identity.representative(id) == id).collect();
        for same in self.same(&functions) {
            self.whole.extend(same);
        }
        let functions = functions.into_iter().filter(|id| self.is_named(*id)).collect::<Vec<_>>();
        for same in self.same(&functions) {
            let entry = |id: FunctionId| &self.profile.functions[id];
            let differ = |of: &dyn Fn(FunctionId) -> u64| same.iter().any(|&id| of(id) != of(same[0]));
            let kinds = differ(&|id| entry(id).kind as u64);
            let files = differ(&|id| u64::from(entry(id).file.raw()));
            let lines = differ(&|id| u64::from(entry(id).line));
            let paths: Vec<_> = same.iter().map(|&id| &self.profile.strings[entry(id).file]).collect();
            let parts = distinct_parts(&paths);
            let modules: Vec<_> = same.iter().map(|&id| self.module_path(id)).collect();
            let module_parts = distinct_parts(&modules);
            let are_elsewhere = modules.iter().any(|path| path != &modules[0]);
            let mut taken: HashMap<String, usize> = HashMap::new();
            let told: Vec<_> = same
                .iter()
                .zip(paths.iter().zip(&modules))
                .map(|(&id, (path, module))| {
                    let mut text = String::new();
                    if kinds && entry(id).kind != FunctionKind::Native {
                        text += &format!(" ({})", entry(id).kind.as_str());
                    }
                    let file = files.then(|| last_parts(path, parts)).filter(|file| !file.is_empty());
                    match (file, entry(id).line) {
                        (Some(file), 0) => text += &format!(" ({file})"),
                        (Some(file), line) if lines => text += &format!(" ({file}:{line})"),
                        (Some(file), _) => text += &format!(" ({file})"),
                        (None, line) if lines && line > 0 => text += &format!(" (line {line})"),
                        (None, _) => {}
                    }
                    if text.is_empty() && are_elsewhere && !module.is_empty() {
                        text += &format!(" (in {})", last_parts(module, module_parts));
                    }
                    let number = taken.entry(text.clone()).or_default();
                    *number += 1;
                    if *number > 1 {
                        text += &format!(" #{number}");
                    }
                    (id, text)
                })
                .collect();
            self.told_by.extend(told.into_iter().filter(|(_, text)| !text.is_empty()));
        }
    }

    /// The path of a function's module, or nothing.
    fn module_path(&self, function: FunctionId) -> &'a str {
        let module = self.profile.functions[function].module;
        module.map_or("", |module| &self.profile.strings[self.profile.modules[module].path])
    }

    /// Functions that are called the same as another, by what they are called.
    fn same(&self, functions: &[FunctionId]) -> Vec<Vec<FunctionId>> {
        let mut by_label: HashMap<String, Vec<FunctionId>> = HashMap::with_capacity(functions.len());
        for &function in functions {
            by_label.entry(self.with_module(function)).or_default().push(function);
        }
        let mut same: Vec<_> = by_label.into_values().filter(|same| same.len() > 1).collect();
        same.sort();
        same
    }

    pub(crate) fn name(&self, function: FunctionId) -> Cow<'a, str> {
        match function_name(self.profile, function) {
            Cow::Borrowed(name) if name.trim().is_empty() => Cow::Owned(format!("{name:?}")),
            Cow::Borrowed(name) if self.whole.contains(&function) => printable(name),
            Cow::Borrowed(name) => printable(plain(name)),
            Cow::Owned(name) => Cow::Owned(printable(&name).into_owned()),
        }
    }

    fn is_named(&self, function: FunctionId) -> bool {
        !matches!(
            self.profile.functions[function].kind,
            FunctionKind::Unresolved | FunctionKind::Address | FunctionKind::Root
        )
    }

    /// `name [module]`, where the module says something that the name does not; with a mark for
    /// what an interpreter runs that is no function of its language.
    pub(crate) fn with_module(&self, function: FunctionId) -> String {
        let mut name = self.marked_name(function).into_owned();
        if let Some(told_by) = self.told_by.get(&function) {
            name += told_by;
        }
        match module_name(self.profile, function) {
            Some(module) if self.several_modules && self.is_named(function) => {
                name + &format!(" [{}]", printable(module.trim_matches(['[', ']'])))
            }
            _ => name,
        }
    }

    /// The name before that of `next`, whose module is the same if none is shown here.
    pub(crate) fn before(&self, function: FunctionId, next: FunctionId) -> String {
        if module_name(self.profile, function) != module_name(self.profile, next) {
            return self.with_module(function);
        }
        self.without_module(function)
    }

    /// The name with what tells it from others, but for its module.
    pub(crate) fn without_module(&self, function: FunctionId) -> String {
        let told_by = self.told_by.get(&function).map_or("", String::as_str);
        self.marked_name(function).into_owned() + told_by
    }

    fn marked_name(&self, function: FunctionId) -> Cow<'a, str> {
        let name = self.name(function);
        match self.profile.functions[function].kind {
            kind @ (FunctionKind::Builtin | FunctionKind::Script | FunctionKind::Extension) => {
                Cow::Owned(format!("{name} ({})", kind.as_str()))
            }
            _ => name,
        }
    }

    /// `name [module]  file:line`, as far as they are known.
    pub(crate) fn with_place(&self, function: FunctionId) -> String {
        let label = self.with_module(function);
        match self.place(function) {
            Some((file, 0)) => format!("{label}  {file}"),
            Some((file, line)) => format!("{label}  {file}:{line}"),
            None => label,
        }
    }

    /// The file that defines a function, without its folders, and the line.
    fn place(&self, function: FunctionId) -> Option<(Cow<'a, str>, u32)> {
        let entry = &self.profile.functions[function];
        let file = (entry.file != StringId::new(0)).then(|| &self.profile.strings[entry.file])?;
        Some((printable(last_parts(file, 1)), entry.line))
    }
}

/// The last `parts` parts of a path.
fn last_parts(path: &str, parts: usize) -> &str {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at + 1);
    slashes.nth(parts.saturating_sub(1)).map_or(path, |at| &path[at..])
}

/// How many of their last parts it takes to tell paths apart, as far as they can be.
fn distinct_parts(paths: &[&str]) -> usize {
    const MOST: usize = 8;
    let count = |parts| paths.iter().map(|path| last_parts(path, parts)).collect::<HashSet<_>>().len();
    let all = paths.iter().collect::<HashSet<_>>().len();
    (1..MOST).find(|&parts| count(parts) == all).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels of functions `name kind file:line`.
    fn labels(functions: &[(&str, FunctionKind, &str, u32)]) -> Vec<String> {
        let mut profile = Profile::new(treering_profile::RecursionRule::Full);
        for &(name, kind, file, line) in functions {
            let (name, file) = (profile.strings.intern(name), profile.strings.intern(file));
            let function =
                treering_profile::Function { kind, file, line, ..treering_profile::Function::named(name) };
            profile.functions.intern(function);
        }
        let labels = Labels::of(&profile);
        (1..profile.functions.len()).map(|at| labels.with_module(FunctionId::from_usize(at))).collect()
    }

    #[test]
    fn functions_of_one_name_get_what_tells_them_apart() {
        use FunctionKind::{Interpreted, Jit, Kernel, Native};
        let php = [("<?php", Interpreted, "/a/x/index.php", 1), ("<?php", Interpreted, "/a/y/index.php", 1)];
        assert_eq!(labels(&php), ["<?php (x/index.php)", "<?php (y/index.php)"]);
        let kinds =
            [("page_fault", Native, "", 0), ("page_fault", Kernel, "", 0), ("page_fault", Jit, "", 0)];
        assert_eq!(labels(&kinds), ["page_fault", "page_fault (kernel)", "page_fault (jit)"]);
        let lines = [("f", Interpreted, "m.py", 3), ("f", Interpreted, "m.py", 9)];
        assert_eq!(labels(&lines), ["f (line 3)", "f (line 9)"]);
        let clones = [
            ("f.llvm.1", Native, "a.rs", 1),
            ("g.llvm.1", Native, "a.rs", 1),
            ("g.llvm.2", Native, "a.rs", 1),
        ];
        assert_eq!(labels(&clones), ["f", "g.llvm.1", "g.llvm.2"]);
        assert_eq!(labels(&[(" ", Native, "", 0)]), ["\" \""]);
    }
}
