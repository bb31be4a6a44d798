//! Names of one function in two builds.
//!
//! A compiler adds to names what differs between builds that do the same: suffixes of clones, hashes, ordinals of
//! lambdas, addresses. Each [`Spelling`] leaves out more of it.

use std::borrow::Cow;

/// How much of a name is left out before names are compared; each leaves out what those before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spelling {
    /// Nothing.
    Exact,
    /// Suffixes of clones (`.isra.0`, `.part.1`, `.cold`, `.llvm.123`, `[clone .x]`) and the hashes of Rust.
    WithoutSuffix,
    /// Ordinals of lambdas and closures, and addresses.
    WithoutOrdinals,
    /// Arguments of templates: `fill<int>` and `fill<long>` are equal.
    WithoutArguments,
}

impl Spelling {
    /// All, from the strictest.
    pub const ALL: [Self; 4] =
        [Self::Exact, Self::WithoutSuffix, Self::WithoutOrdinals, Self::WithoutArguments];
}

/// The name as it is compared.
pub fn spelled(name: &str, spelling: Spelling) -> Cow<'_, str> {
    if spelling == Spelling::Exact {
        return Cow::Borrowed(name);
    }
    let short = without_suffixes(name);
    match spelling {
        Spelling::Exact | Spelling::WithoutSuffix => Cow::Borrowed(short),
        Spelling::WithoutOrdinals => Cow::Owned(without_numbers(short)),
        Spelling::WithoutArguments => Cow::Owned(without_arguments(&without_numbers(short))),
    }
}

/// The suffixes that GCC and LLVM add to copies and pieces of a function.
const CLONES: [&str; 8] = ["isra", "constprop", "part", "cold", "lto_priv", "llvm", "localalias", "warm"];

fn without_suffixes(mut name: &str) -> &str {
    loop {
        let shorter = without_suffix(name);
        if shorter.len() == name.len() || shorter.is_empty() {
            return name;
        }
        name = shorter;
    }
}

fn without_suffix(name: &str) -> &str {
    if let Some((head, _)) = name.rsplit_once(" [clone ").filter(|_| name.ends_with(']')) {
        return head;
    }
    if let Some((head, hash)) = name.rsplit_once("::h")
        && hash.len() == 16
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return head;
    }
    let Some((head, last)) = name.rsplit_once('.') else { return name };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_clone = |text: &str| CLONES.contains(&text);
    if is_clone(last) {
        return head;
    }
    match head.rsplit_once('.') {
        Some((before, word)) if is_number(last) && is_clone(word) => before,
        // A static variable's function, or one that LLVM renamed: `helper.12`.
        _ if is_number(last) && !head.ends_with(|last: char| last.is_ascii_digit()) => head,
        _ => name,
    }
}

/// The name without numbers that count lambdas and closures, and without addresses.
fn without_numbers(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let (skip, kept) = match rest {
            _ if rest.starts_with("0x") => ("0x", true),
            _ if rest.starts_with('#') => ("#", true),
            _ if rest.starts_with("$_") => ("$_", true),
            _ => ("", false),
        };
        if kept {
            short.push_str(skip);
            let hex = skip == "0x";
            rest = rest[skip.len()..].trim_start_matches(|digit: char| {
                if hex { digit.is_ascii_hexdigit() } else { digit.is_ascii_digit() }
            });
        } else {
            short.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    short
}

/// The name without what is between `<` and `>`; operators keep theirs.
fn without_arguments(name: &str) -> String {
    if name.contains("operator<") || name.contains("operator>") || name.contains("operator-") {
        return name.to_owned();
    }
    let mut depth = 0_usize;
    let mut short = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => short.push(letter),
            _ => {}
        }
    }
    if short.is_empty() { name.to_owned() } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(name: &str) -> [String; 3] {
        [Spelling::WithoutSuffix, Spelling::WithoutOrdinals, Spelling::WithoutArguments]
            .map(|spelling| spelled(name, spelling).into_owned())
    }

    #[test]
    fn additions_of_compilers_are_left_out() {
        for (name, expected) in [
            ("work.isra.0", "work"),
            ("work.constprop.0.isra.3", "work"),
            ("work.part.1.cold", "work"),
            ("work.cold.2", "work"),
            ("work [clone .isra.0]", "work"),
            ("app::parse::h0123456789abcdef", "app::parse"),
            ("helper.12", "helper"),
            ("main.func1", "main.func1"),
            (".plt", ".plt"),
            ("v1.2", "v1.2"),
        ] {
            assert_eq!(spelled(name, Spelling::WithoutSuffix), expected, "{name}");
        }
    }

    #[test]
    fn ordinals_addresses_and_arguments_are_left_out_step_by_step() {
        assert_eq!(all("run()::{lambda(int)#3}::operator()")[1], "run()::{lambda(int)#}::operator()");
        assert_eq!(all("main::{closure#0}")[1], "main::{closure#}");
        assert_eq!(all("0x7f12 [jit]")[1], "0x [jit]");
        assert_eq!(
            all("fill<int>(int*)"),
            ["fill<int>(int*)", "fill<int>(int*)", "fill(int*)"].map(str::to_owned)
        );
        assert_eq!(all("operator<< <char>")[2], "operator<< <char>");
        assert_eq!(all("<outside of any function>")[2], "<outside of any function>");
    }
}
