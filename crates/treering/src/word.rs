//! Words of commands that a hint tells to type.

use std::path::Path;

/// A path as a word of a command that can be typed.
pub fn word(path: &Path) -> String {
    let shown = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%=".contains(letter);
    if shown.chars().all(is_plain) { shown } else { format!("'{}'", shown.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_words_of_a_command() {
        assert_eq!(word(Path::new("a/treering.7.trg")), "a/treering.7.trg");
        assert_eq!(word(Path::new("it's a.trg")), "'it'\\''s a.trg'");
    }
}
