//! Names of functions for formats that need one.

use std::borrow::Cow;

use treering_profile::{FunctionId, FunctionKind, Profile};

/// What a function is called where only a name can be given: its name, its address when it was
/// not resolved, else `[unknown]`; for a thread's root `[root]`.
pub(crate) fn label(profile: &Profile, function: FunctionId) -> Cow<'_, str> {
    let function = &profile.functions[function];
    let name = &profile.strings[function.name];
    match (function.kind, function.address) {
        (FunctionKind::Root, _) => Cow::Borrowed(ROOT),
        _ if !name.is_empty() => Cow::Borrowed(name),
        (_, Some(address)) => Cow::Owned(match function.module {
            Some(module) => {
                format!("{}+{address}", file_name(&profile.strings[profile.modules[module].path]))
            }
            None => address.to_string(),
        }),
        _ => Cow::Borrowed("[unknown]"),
    }
}

/// The name of a thread's root, to which costs outside of all functions are charged.
pub(crate) const ROOT: &str = "[root]";

/// What follows the last slash.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
