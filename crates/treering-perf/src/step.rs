//! The result of an attempt to return from a frame.

use crate::landmark::Switch;

/// The result of an attempt to return from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The registers are those of the caller now, behind its call.
    Caller,
    /// They are those of the code that a signal interrupted, at an instruction of any kind.
    Interrupted,
    /// The caller is on a goroutine's stack.
    Switched(Switch),
    /// The frame has no caller.
    First,
    /// The caller's registers lie beyond the copied stack.
    BeyondCopy,
    /// There is no rule, or it leads nowhere.
    Lost,
}
