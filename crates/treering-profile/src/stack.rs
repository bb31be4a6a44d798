//! Stacks with weights.

use crate::{FunctionId, LineId};

/// One frame of a sampled stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function that runs in the frame.
    pub function: FunctionId,
    /// The line in the caller from which it was called, where known.
    pub call_site: Option<LineId>,
}

impl Frame {
    /// A frame with an unknown call site.
    pub fn new(function: FunctionId) -> Self {
        Self { function, call_site: None }
    }
}
