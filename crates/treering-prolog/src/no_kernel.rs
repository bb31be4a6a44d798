//! Stands for `kernel.rs` where its code would be another.

/// Why the kernel cannot be hooked.
pub(crate) fn problem() -> Option<String> {
    Some("the code of its kernel is known for x86-64 only".to_owned())
}

/// Refuses.
pub(crate) fn begin() -> Result<(), String> {
    problem().map_or(Ok(()), Err)
}

/// Nothing.
pub(crate) fn end() {}

/// Nothing.
pub(crate) fn lines() -> String {
    String::new()
}

/// False.
pub(crate) fn unify_predicate(_number: usize, _term: usize) -> bool {
    false
}
