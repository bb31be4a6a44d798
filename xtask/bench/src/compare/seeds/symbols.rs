//! The functions of object files, and their code as `objdump` writes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::measure::succeed;

/// A function's name without what compilers and linkers add.
pub(super) fn plain(name: &str) -> &str {
    name.split(['.', '@']).next().unwrap_or(name)
}

/// The code of each function, without addresses.
pub(super) fn code(object: &Path) -> Result<BTreeMap<String, Vec<String>>, String> {
    let options = ["-dr", "--no-show-raw-insn", "--no-addresses"];
    let listing = succeed(Command::new("objdump").args(options).arg(object))?;
    let listing = String::from_utf8_lossy(&listing);
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in listing.lines() {
        match line.strip_prefix('<').and_then(|rest| rest.strip_suffix(">:")) {
            Some(begun) => plain(begun).clone_into(&mut name),
            None if !name.is_empty() => {
                functions.entry(name.clone()).or_default().push(without_numbers(line))
            }
            None => {}
        }
    }
    Ok(functions)
}

/// Words that are no numbers: these are addresses for the greater part.
fn without_numbers(line: &str) -> String {
    let is_number = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| !is_number(word)).collect::<Vec<_>>().join(" ")
}
