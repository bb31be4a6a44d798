//! What functions are called in a listing.

use std::borrow::Cow;

use treering_analysis::{function_name, module_name};
use treering_profile::{FunctionId, FunctionKind, Profile, StringId};

/// Names functions; with their module where the profile has more than one.
pub(crate) struct Labels<'a> {
    profile: &'a Profile,
    several_modules: bool,
}

impl<'a> Labels<'a> {
    pub(crate) fn of(profile: &'a Profile) -> Self {
        let mut modules = profile.functions.entries().iter().filter_map(|function| function.module);
        let first = modules.next();
        Self { profile, several_modules: modules.any(|module| Some(module) != first) }
    }

    pub(crate) fn name(&self, function: FunctionId) -> Cow<'a, str> {
        function_name(self.profile, function)
    }

    /// `name [module]`, where the module says something that the name does not.
    pub(crate) fn with_module(&self, function: FunctionId) -> String {
        let name = self.name(function);
        let named = !matches!(
            self.profile.functions[function].kind,
            FunctionKind::Unresolved | FunctionKind::Address | FunctionKind::Root
        );
        match module_name(self.profile, function) {
            Some(module) if self.several_modules && named => {
                format!("{name} [{}]", module.trim_matches(['[', ']']))
            }
            _ => name.into_owned(),
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
    fn place(&self, function: FunctionId) -> Option<(&'a str, u32)> {
        let entry = &self.profile.functions[function];
        let file = (entry.file != StringId::new(0)).then(|| &self.profile.strings[entry.file])?;
        Some((file.rsplit('/').next().unwrap_or(file), entry.line))
    }
}
