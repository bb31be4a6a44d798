//! Where unsafe code may stand: in few crates, and there in named files.

use std::path::Path;

use crate::workspace;

/// The files that may hold unsafe code, by crate. All other crates forbid it.
const ALLOWED: &[(&str, &[&str])] = &[
    ("treering-perf", &["src/sys.rs"]),
    ("treering-translator", &["src/code_cache.rs", "src/enter.rs"]),
    ("treering-runtime", &["src/sys.rs"]),
    ("treering-octave", &["src/slots.rs", "src/hooks.rs"]),
    ("treering-prolog", &["src/foreign.rs", "src/kernel.rs"]),
];

/// Reads the sources of every crate and returns every broken rule as a sentence.
pub(crate) fn check() -> Result<Vec<String>, String> {
    let mut crates: Vec<_> = std::fs::read_dir(workspace::root().join("crates"))
        .map_err(|error| format!("cannot list the crates: {error}"))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .collect();
    crates.push(workspace::root().join("xtask"));
    crates.sort();
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
    for file in workspace::rust_files(directory) {
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

/// The first line, from 1, with the keyword outside of comments and strings.
///
/// Good enough for formatted sources: it takes each line for itself, so a string over several
/// lines that holds the keyword is reported as well.
fn first_unsafe_line(text: &str) -> Option<usize> {
    text.lines().position(|line| has_keyword(&code_of(line))).map(|at| at + 1)
}

/// The line without its comment and without the contents of its strings.
fn code_of(line: &str) -> String {
    let mut code = String::new();
    let mut in_string = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if in_string => _ = characters.next(),
            '"' => in_string = !in_string,
            '/' if !in_string && characters.peek() == Some(&'/') => break,
            _ if !in_string => code.push(character),
            _ => {}
        }
    }
    code
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
    }

    #[test]
    fn comments_strings_and_lint_names_are_not_code() {
        for text in [
            "#![forbid(unsafe_code)]",
            "/// An unsafe thing.",
            "let a = \"unsafe\"; // unsafe",
            "let a = \"\\\"unsafe\";",
            "let unsafely = 1;",
        ] {
            assert_eq!(first_unsafe_line(text), None, "{text}");
        }
    }

    #[test]
    fn this_workspace_keeps_the_rules() {
        assert_eq!(check(), Ok(Vec::new()));
    }
}
