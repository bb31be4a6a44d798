//! Where unsafe code may stand: in few crates, and there in named files.

use std::path::Path;

use crate::workspace;

/// The files that may hold unsafe code, by crate. All other crates forbid it.
const ALLOWED: &[(&str, &[&str])] = &[
    ("treering-perf", &["src/sys.rs"]),
    ("treering-proc", &["src/inherited.rs"]),
    (
        "treering-translator",
        &[
            "src/sys/files.rs",
            "src/sys/heap.rs",
            "src/sys/passing.rs",
            "src/sys/ptrace.rs",
            "src/sys/shared_memory.rs",
            "src/sys/ticks.rs",
            "src/sys/wait.rs",
            "src/tracer/launch.rs",
        ],
    ),
    (
        "treering-runtime",
        &[
            "benches/event_cost/events.rs",
            "benches/event_cost/memory.rs",
            "src/c_abi.rs",
            "src/counting.rs",
            "src/disabled.rs",
            "src/jump.rs",
            "src/memory.rs",
            "src/record.rs",
            "src/sys/clock.rs",
            "src/sys/file.rs",
            "src/sys/mapping.rs",
            "src/sys/modules.rs",
            "src/sys/thread.rs",
            "tests/instrument.rs",
            "tests/memory.rs",
            "tests/programs/probe.rs",
        ],
    ),
    (
        "treering-malloc",
        &[
            "src/block.rs",
            "src/early.rs",
            "src/interpose.rs",
            "src/next.rs",
            "src/runtime.rs",
            "tests/preload.rs",
        ],
    ),
    ("treering-memory", &["src/lib.rs"]),
    (
        "treering-pg",
        &[
            "src/count.rs",
            "src/entry.rs",
            "src/file.rs",
            "src/object.rs",
            "src/start.rs",
            "src/sys.rs",
            "src/unload.rs",
        ],
    ),
    // Its modules are those of `treering-pg`.
    ("treering-pg-static", &[]),
    (
        "treering-octave",
        &[
            "src/block.rs",
            "src/hooks/call.rs",
            "src/hooks/ending.rs",
            "src/hooks/install.rs",
            "src/hooks/lifetime.rs",
            "src/hooks/object.rs",
            "src/hooks/operator.rs",
            "src/hooks/statement.rs",
            "src/memory.rs",
            "src/mex.rs",
            "src/slots.rs",
        ],
    ),
    ("treering-testing", &["src/single_step/sys.rs"]),
    ("treering-prolog", &["src/exclusive.rs", "src/foreign.rs", "src/kernel.rs"]),
];

/// Reads the sources of every crate and returns every broken rule as a sentence.
pub(crate) fn check() -> Result<Vec<String>, String> {
    let root = workspace::root();
    let crates = workspace::crates()?.into_iter().chain([root.join("xtask"), root.join("xtask/bench")]);
    let mut broken = Vec::new();
    for directory in crates {
        broken.extend(check_crate(&directory)?);
    }
    Ok(broken)
}

fn check_crate(directory: &Path) -> Result<Vec<String>, String> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let allowed = ALLOWED.iter().find(|(allowed, _)| *allowed == name).map(|(_, files)| *files);
    let mut broken = Vec::new();
    for file in workspace::files(directory, "rs") {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let place = file.strip_prefix(directory).unwrap_or(&file).to_string_lossy().into_owned();
        let named = allowed.is_some_and(|files| files.contains(&place.as_str()));
        if let (false, Some(line)) = (named, first_unsafe_line(&text)) {
            broken.push(format!("{name}/{place}:{line}: unsafe code must not stand here"));
        }
        let is_root = place == "src/lib.rs" || place == "src/main.rs";
        if is_root && allowed.is_none() && !text.contains("#![forbid(unsafe_code)]") {
            broken.push(format!("{name}/{place}: #![forbid(unsafe_code)] is missing"));
        }
    }
    Ok(broken)
}

/// The first line, from 1, with the keyword outside of comments and texts.
fn first_unsafe_line(text: &str) -> Option<usize> {
    code_of(text).lines().position(has_keyword).map(|at| at + 1)
}

/// The source with comments and the contents of strings and characters left out, line by line.
pub(crate) fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = skipped_length(rest);
        let (taken, left) = rest.split_at(if skipped == 0 { first.len_utf8() } else { skipped });
        match skipped {
            0 => code.push(first),
            // Lines keep their numbers.
            _ => code.extend(taken.chars().filter(|&character| character == '\n')),
        }
        rest = left;
    }
    code
}

/// The length of the comment, string or character that the text starts with; 0 if it does not.
fn skipped_length(text: &str) -> usize {
    let up_to = |start: usize, end: &str| {
        text[start..].find(end).map_or(text.len(), |found| start + found + end.len())
    };
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return up_to(2, "*/");
    }
    if text.starts_with('"') {
        return escaped_length(text, '"');
    }
    if text.starts_with("r\"") || text.starts_with("r#") {
        let hashes = text[1..].bytes().take_while(|&byte| byte == b'#').count();
        let is_string = text[1 + hashes..].starts_with('"');
        return if is_string { up_to(2 + hashes, &format!("\"{}", "#".repeat(hashes))) } else { 0 };
    }
    // A character, not a lifetime: those have no second quote so close.
    let mut characters = text.chars();
    match (characters.next(), characters.next(), characters.next()) {
        (Some('\''), Some('\\'), _) => escaped_length(text, '\''),
        (Some('\''), Some(inner), Some('\'')) => 2 + inner.len_utf8(),
        _ => 0,
    }
}

/// The length of a text in quotes, in which a backslash hides the next character.
fn escaped_length(text: &str, quote: char) -> usize {
    let mut hidden = false;
    let end = text.char_indices().skip(1).find(|&(_, character)| {
        let ends = character == quote && !hidden;
        hidden = character == '\\' && !hidden;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + quote.len_utf8())
}

fn has_keyword(code: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_found() {
        assert_eq!(first_unsafe_line("fn a() {}\nlet b = unsafe { c() };\n"), Some(2));
        assert_eq!(first_unsafe_line("pub unsafe fn a() {}"), Some(1));
        assert_eq!(first_unsafe_line("let a = \"\n\\\"\n\";\nlet r#b = '\"';\nunsafe {}"), Some(5));
    }

    #[test]
    fn comments_strings_and_lint_names_are_not_code() {
        for text in [
            "#![forbid(unsafe_code)]",
            "/// An unsafe thing.",
            "let a = \"unsafe\"; // unsafe",
            "let a = \"\\\"unsafe\";",
            "let unsafely = 1;",
            "let a = '\"'; // unsafe \"",
            "let a = '\\''; // unsafe",
            "/* unsafe\n unsafe */",
            "let a = \"over\n unsafe lines\";",
            "let a = r#\"a \"quoted\" unsafe\"#;",
            "fn a<'a>(b: &'a str) -> &'a str { b } // unsafe",
        ] {
            assert_eq!(first_unsafe_line(text), None, "{text}");
        }
    }

    #[test]
    fn this_workspace_keeps_the_rules() {
        assert_eq!(check(), Ok(Vec::new()));
    }
}
