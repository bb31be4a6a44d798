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
        match function_name(self.profile, function) {
            Cow::Borrowed(name) => printable(name),
            Cow::Owned(name) => Cow::Owned(printable(&name).into_owned()),
        }
    }

    /// `name [module]`, where the module says something that the name does not; with a mark for
    /// what an interpreter runs that is no function of its language.
    pub(crate) fn with_module(&self, function: FunctionId) -> String {
        let name = self.marked_name(function);
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
    fn place(&self, function: FunctionId) -> Option<(&'a str, u32)> {
        let entry = &self.profile.functions[function];
        let file = (entry.file != StringId::new(0)).then(|| &self.profile.strings[entry.file])?;
        Some((file.rsplit('/').next().unwrap_or(file), entry.line))
    }
}

/// A text with what would break a line of a listing escaped: programs may name things as they
/// like.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escaped =
        text.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() });
    Cow::Owned(escaped.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(printable("a\nb\t\u{1b}[1m"), "a\\nb\\t\\u{1b}[1m");
        assert!(matches!(printable("naïve \"name\""), Cow::Borrowed(_)));
    }
}
