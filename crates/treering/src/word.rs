//! Words of commands that a hint tells to type.

use std::ffi::OsString;
use std::path::Path;

/// A path as a word of a command that can be typed.
pub fn word(path: &Path) -> String {
    let shown = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%=".contains(letter);
    if shown.chars().all(is_plain) { shown } else { format!("'{}'", shown.replace('\'', "'\\''")) }
}

/// The words of a command, quoted where they have to be.
pub fn words<'a>(all: impl IntoIterator<Item = &'a OsString>) -> String {
    all.into_iter().map(|one| word(Path::new(one))).collect::<Vec<_>>().join(" ")
}

/// A profile as what follows `treering report` in a hint: nothing for the one that is read where none is named.
pub fn report_argument(profile: &Path) -> String {
    if profile == Path::new("treering.trg") { String::new() } else { format!(" {}", word(profile)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_profile_is_no_argument() {
        let arguments = ["treering.trg", "a b.trg"].map(|file| report_argument(Path::new(file)));
        assert_eq!(arguments, ["", " 'a b.trg'"]);
    }

    #[test]
    fn paths_are_words_of_a_command() {
        assert_eq!(word(Path::new("a/treering.7.trg")), "a/treering.7.trg");
        assert_eq!(word(Path::new("it's a.trg")), "'it'\\''s a.trg'");
    }
}
