//! The functions that are the program's own.

use treering_profile::{FunctionId, FunctionKind, NodeId, Profile};

/// By node: the innermost function of its stack that is no library's and not the kernel's, or its own function.
pub(crate) fn own_functions(profile: &Profile) -> Vec<FunctionId> {
    let is_own: Vec<bool> = profile
        .functions
        .entries()
        .iter()
        .map(|function| {
            let path = function.module.map_or("", |module| &profile.strings[profile.modules[module].path]);
            let known = !matches!(
                function.kind,
                FunctionKind::Root | FunctionKind::Kernel | FunctionKind::Unresolved
            );
            known && !path.contains(".so") && !path.starts_with("[kernel") && !path.starts_with("[v")
        })
        .collect();
    let mut own: Vec<Option<FunctionId>> = Vec::with_capacity(profile.tree.len());
    for node in profile.tree.nodes() {
        let function = profile.tree.function(node);
        let above = profile.tree.parent(node).and_then(|parent: NodeId| own[parent.index()]);
        own.push(if is_own[function.index()] { Some(function) } else { above });
    }
    profile.tree.nodes().zip(own).map(|(node, own)| own.unwrap_or(profile.tree.function(node))).collect()
}
