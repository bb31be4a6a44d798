//! When two activations share a node.

use crate::{FunctionId, NodeId, Tree};

/// When two activations of a function share a node of the calling context tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecursionRule {
    /// A node for each depth: they share exactly when their whole chains of callers are equal.
    #[default]
    Full,
    /// A function called directly by itself stays in its node, and the call counts as recursive.
    Direct,
    /// SWI-Prolog's rule: direct recursion stays, and a call whose caller and callee are already
    /// parent and child on the path to the root jumps back up to that child.
    SwiClassic,
    /// No contexts: a function has one node in each thread, directly below its root. A call by
    /// the function itself counts as recursive. Totals cannot be derived from such a tree; they
    /// are [`ActivationStatistics::total`](crate::ActivationStatistics::total).
    Flat,
}

impl RecursionRule {
    /// The node above or at `current` that an activation of `callee` folds into, if any.
    ///
    /// Constant time but for `SwiClassic`, which walks up the path.
    pub(crate) fn fold(self, tree: &Tree, current: NodeId, callee: FunctionId) -> Option<NodeId> {
        let function = tree.function(current);
        match self {
            Self::Full => None,
            Self::Flat => (function == callee).then_some(current),
            Self::Direct | Self::SwiClassic if function == callee => Some(current),
            Self::Direct => None,
            Self::SwiClassic => tree.path(current).find(|&node| {
                let parent = tree.parent(node);
                tree.function(node) == callee
                    && parent.is_some_and(|parent| tree.function(parent) == function)
            }),
        }
    }
}
