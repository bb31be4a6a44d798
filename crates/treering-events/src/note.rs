//! Sentences that a reader of the profile should know.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Forest, View, flag, mode, setting, unwound};

/// Notes that a reader needs to judge the numbers of a file, each said once; lower case, no full
/// stop. The program's own notes come first.
pub fn notes(view: &View<'_>, forest: &Forest) -> Vec<String> {
    let header = view.header();
    let own = view.settings().filter(|(_, record)| record.kind == setting::NOTE);
    let mut notes: Vec<String> =
        own.map(|(_, record)| String::from_utf8_lossy(view.text(record.value)).into_owned()).collect();
    notes.reverse();
    let mut note_if = |happened: bool, text: String| {
        if happened {
            notes.push(text);
        }
    };
    note_if(
        header.flags & flag::NOT_ALL_STORED != 0,
        format!(
            "the file could not grow (error {}); what came later was kept in memory, and is lost if the program was killed",
            header.growth_error
        ),
    );
    let ignored = header.ignored_functions;
    note_if(
        ignored > 0,
        format!("{} not recorded, as asked", pluralize(ignored.into(), "function was", "functions were")),
    );
    let is_partly_timed = |node: &crate::Measured| node.parent.is_some() && node.is_estimate();
    note_if(
        header.mode == mode::FLAT && forest.nodes.iter().any(is_partly_timed),
        "where one call in N was timed, self costs are those of the timed calls: the others' are in those of their callers, which a flat profile does not know".into(),
    );
    let copies = header.earlier_copies;
    note_if(
        copies > 0,
        format!(
            "{} in the process, each with a file of its own",
            pluralize(copies.into(), "other copy of the runtime is", "other copies of the runtime are")
        ),
    );
    let parent = header.parent_pid;
    note_if(
        parent != 0,
        format!("the process was forked from process {parent}; only its own calls are counted"),
    );
    let deep = forest.threads.iter().map(|thread| thread.record.too_deep).fold(0, u64::saturating_add);
    note_if(
        deep > 0,
        format!(
            "{} than {} {} not recorded, as asked",
            pluralize(deep, "call deeper", "calls deeper"),
            header.depth_limit,
            if deep == 1 { "was" } else { "were" }
        ),
    );
    let by_outer = |thread: &crate::ThreadTree| thread.record.unwound[unwound::BY_OUTER];
    let interrupted = forest.threads.iter().map(by_outer).fold(0, u64::saturating_add);
    note_if(
        interrupted > 0,
        format!(
            "{} ended with one further out, without an end of their own, as by an exception in code that was inlined; what was called after them there may stand below them",
            pluralize(interrupted, "activation", "activations")
        ),
    );
    let others = forest.threads.iter().map(|thread| thread.record.other_stacks).fold(0, u64::saturating_add);
    let others = if view.has_checks() { others } else { 0 };
    note_if(
        others > 0,
        format!(
            "{} entered on stacks that the program switches between by itself, as coroutines do; their callers, and those of functions that run meanwhile, may be others",
            pluralize(others, "function was", "functions were")
        ),
    );
    let stray = header.stray_allocations;
    note_if(
        stray > 0,
        format!(
            "{} of {} {} made outside of any task",
            pluralize(stray, "allocation", "allocations"),
            pluralize(header.stray_allocated, "byte", "bytes"),
            if stray == 1 { "was" } else { "were" }
        ),
    );
    notes
}

/// A count with the words for one thing, or those for several: `1 function was`, `2 functions were`.
pub fn pluralize(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_said_in_the_plural() {
        let text = |count| pluralize(count, "function was", "functions were");
        assert_eq!([0, 1, 2].map(text), ["0 functions were", "1 function was", "2 functions were"]);
    }
}
