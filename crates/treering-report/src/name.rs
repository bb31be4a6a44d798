//! Names of functions in the room that a line leaves them.
//!
//! A name is shortened by its own structure: what a compiler added to it goes, then the place behind
//! it, arguments, template arguments, the leading parts of its qualifier, its module, and only then the
//! middle of what is left.

use std::borrow::Cow;

/// A name without what only a compiler means by it: Rust's hash, numbers of copies that were made for
/// some arguments, and parts that were split off.
pub(crate) fn plain(name: &str) -> &str {
    const SUFFIXES: [&str; 6] = [".llvm", ".isra", ".constprop", ".part", ".cold", ".lto_priv"];
    let mut name = name;
    loop {
        let shorter = without_hash(name)
            .or_else(|| name.strip_suffix(']').and_then(|rest| Some(rest.rsplit_once(" [clone ")?.0)))
            .or_else(|| {
                let numberless = name.trim_end_matches(|c: char| c.is_ascii_digit());
                let base =
                    numberless.strip_suffix('.').filter(|_| numberless.len() < name.len()).unwrap_or(name);
                SUFFIXES.iter().find_map(|suffix| base.strip_suffix(suffix))
            });
        match shorter {
            Some(shorter) if !shorter.is_empty() => name = shorter,
            _ => return name,
        }
    }
}

/// The name before `::h0123456789abcdef`.
fn without_hash(name: &str) -> Option<&str> {
    let (rest, hash) = name.rsplit_once("::h")?;
    (hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(rest)
}

/// A name with what follows it in a listing, in at most `room` characters.
pub(crate) fn fit(text: &str, room: usize) -> String {
    if length(text) <= room {
        return text.to_owned();
    }
    // `name [module]  file:line`.
    let text = text.split_once("  ").map_or(text, |(label, _)| label);
    if length(text) <= room {
        return text.to_owned();
    }
    let (name, module) = match text.rfind(" [") {
        Some(at) if text.ends_with(']') => text.split_at(at),
        _ => (text, ""),
    };
    let left = room.saturating_sub(length(module));
    match fit_name(name, left) {
        Some(short) => short + module,
        None => fit_name(name, room).unwrap_or_else(|| cut(name, room)),
    }
}

/// The name by itself; nothing if its last part would have to be cut.
fn fit_name(name: &str, room: usize) -> Option<String> {
    let arguments = without_groups(name, '(', ')');
    let both = without_groups(&arguments, '<', '>');
    let starts = parts(&both).into_iter().map(|at| format!("…{}", &both[at..]));
    let shorter = short_impl(&both).into_iter().chain(starts).chain(declared(&both));
    let fits = |name: &String| length(name) <= room;
    [name, &arguments, &both].into_iter().map(str::to_owned).chain(shorter).find(fits)
}

/// `<Vec<…> as Drop>::drop` of a function of a trait in Rust: the type and the trait without their paths.
fn short_impl(name: &str) -> Option<String> {
    let (implementation, function) = name.strip_prefix('<')?.split_once(">::")?;
    let (of, implemented) = implementation.split_once(" as ")?;
    let bare = |path: &str| path[last_part(path)..].to_owned();
    Some(format!("<{} as {}>::{function}", bare(of), bare(implemented)))
}

/// `…signal(…)` of `void (*signal(…))(…)`, a function of C that returns the address of another.
fn declared(name: &str) -> Option<String> {
    let (_, function) = name.split_once(" (*")?;
    let (function, _) = function.split_once(')')?;
    function.contains('(').then(|| format!("…{function})"))
}

/// Names that are called one after the other, in at most `room` characters: the first and the last stay.
pub(crate) fn fit_chain(names: &[String], room: usize) -> String {
    let Some((last, others)) = names.split_last() else { return String::new() };
    let Some(first) = others.first() else { return fit(last, room) };
    let whole = names.join(ARROW);
    if length(&whole) <= room {
        return whole;
    }
    // As many as there is room for, from the last one on: that is where the costs are.
    let gap = |hidden: usize| if hidden > 0 { format!(" → …{hidden}… → ") } else { ARROW.to_owned() };
    let with = |kept: usize| {
        let hidden = names.len() - 1 - kept;
        format!("{first}{}{}", gap(hidden), names[names.len() - kept..].join(ARROW))
    };
    if let Some(text) = (1..names.len()).rev().map(with).find(|text| length(text) <= room) {
        return text;
    }
    let middle = gap(names.len() - 2);
    let left = room.saturating_sub(length(&middle));
    // The module of the last goes before the first is cut.
    let bare = last.split_once("  ").map_or(last.as_str(), |(label, _)| label);
    let bare = bare.rfind(" [").filter(|_| bare.ends_with(']')).map_or(bare, |at| &bare[..at]);
    let first = fit(first, left.saturating_sub(length(bare)).max(left / 3));
    let last = fit(last, left.saturating_sub(length(&first)));
    format!("{first}{middle}{last}")
}

/// Between a function and the only one that it calls.
pub(crate) const ARROW: &str = " → ";

/// Shortens all texts, so that two which differ still do.
pub(crate) fn fit_all(texts: &[Cow<'_, str>], rooms: &[usize]) -> Vec<String> {
    let mut short: Vec<String> = texts.iter().zip(rooms).map(|(text, &room)| fit(text, room)).collect();
    let mut same: std::collections::BTreeMap<String, Vec<usize>> = Default::default();
    for (at, text) in short.iter().enumerate() {
        same.entry(text.clone()).or_default().push(at);
    }
    for group in same.into_values() {
        let differ = group.iter().any(|&at| texts[at] != texts[group[0]]);
        if differ {
            let whole: Vec<&str> = group.iter().map(|&at| &*texts[at]).collect();
            for (&at, text) in group.iter().zip(around_difference(&whole, rooms[group[0]])) {
                short[at] = text;
            }
        }
    }
    short
}

/// The part of each text in which they differ, with as much around it as there is room for.
fn around_difference(texts: &[&str], room: usize) -> Vec<String> {
    let all: Vec<Vec<char>> = texts.iter().map(|text| text.chars().collect()).collect();
    let shortest = all.iter().map(Vec::len).min().unwrap_or(0);
    let agrees = |at: usize| all.iter().all(|text| text[at] == all[0][at]);
    let before = (0..shortest).take_while(|&at| agrees(at)).count();
    let agrees = |back: usize| all.iter().all(|text| text[text.len() - back] == all[0][all[0].len() - back]);
    let behind = (1..=shortest - before).take_while(|&back| agrees(back)).count();
    let show = |text: &Vec<char>| {
        let core = text.len() - before - behind;
        let spare = room.saturating_sub(core + 2);
        let mut start = before.saturating_sub(spare / 2);
        let end = (before + core + spare - (before - start)).min(text.len());
        // Room that the part behind it does not need goes to the part before it.
        start = start.saturating_sub(spare.saturating_sub((before - start) + (end - before - core)));
        let inner: String = text[start..end].iter().collect();
        let (head, tail) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
        cut(&format!("{head}{inner}{tail}"), room)
    };
    all.iter().map(show).collect()
}

/// The name with `…` in place of what is between outermost brackets. Those that are names themselves,
/// as in `operator()` and `<T as Trait>::f`, stay.
fn without_groups(name: &str, open: char, close: char) -> String {
    let mut short = String::with_capacity(name.len());
    let mut depth = 0_usize;
    let mut started = 0;
    for (at, c) in name.char_indices() {
        let follows_name = name[..at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '>' | ')' | ']'));
        if c == open && (depth > 0 || follows_name && !name[..at].ends_with("operator")) {
            depth += 1;
            if depth == 1 {
                short.push(open);
                started = at + open.len_utf8();
            }
        } else if c == close && depth > 0 && !name[..at].ends_with('-') {
            depth -= 1;
            if depth == 0 {
                if at > started {
                    short.push('…');
                }
                short.push(close);
            }
        } else if depth == 0 {
            short.push(c);
        }
    }
    if depth > 0 { name.to_owned() } else { short }
}

/// Where the parts of a qualified name or path begin, but for the first.
fn parts(name: &str) -> Vec<usize> {
    let mut depth = 0_i32;
    let (mut parts, is_dotted) = (Vec::new(), has_dotted_parts(name));
    let bytes = name.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b':' if depth <= 0 && bytes.get(at + 1) == Some(&b':') => parts.push(at + 2),
            b'/' if depth <= 0 => parts.push(at + 1),
            b'.' if depth <= 0 && is_dotted && is_part(&name[at + 1..]) => parts.push(at + 1),
            _ => {}
        }
    }
    // The target of a conversion is no part of its path, and a closure says nothing by itself.
    let conversion = name.find("operator ").unwrap_or(name.len());
    parts.retain(|&at| at < name.len() && at <= conversion && !name[at..].starts_with('{'));
    parts
}

/// Whether dots are between the parts of a name, as in Go, Java and Python, and not in a path.
fn has_dotted_parts(name: &str) -> bool {
    let is_path = name.starts_with('/') || name.contains(" /") || name.contains(":/");
    !is_path && !name.contains("::") && !name.starts_with(['[', '<', '-', '+'])
}

/// Whether what follows a dot can be a part by itself: a name, a type in brackets, and no number or end of a file's name.
fn is_part(rest: &str) -> bool {
    let is_extension = ["so", "py", "js", "rs", "c", "cc", "cpp", "go"].iter().any(|known| {
        rest.strip_prefix(known)
            .is_some_and(|behind| !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    });
    !is_extension && rest.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '(' | '<'))
}

/// A name in a place that may be narrower than any name: in the end the middle of its last part is left out,
/// and nothing is left where that would be less than two letters.
pub(crate) fn fit_narrow(name: &str, room: usize) -> String {
    if let Some(short) = fit_name(name, room) {
        return short;
    }
    let short = without_groups(&without_groups(name, '(', ')'), '<', '>');
    let mut last = short[last_part(&short)..].trim_end_matches(" const");
    while let Some(bare) = ["(…)", "<…>", "()"].iter().find_map(|group| last.strip_suffix(group)) {
        if matches!(bare, "" | "operator") {
            break;
        }
        last = bare;
    }
    let cut = cut(last, room);
    if length(&cut) < 3 && cut.contains('…') { String::new() } else { cut }
}

/// Where the last part of a qualified name begins.
pub(crate) fn last_part(name: &str) -> usize {
    let arguments = name.split(" [").next().unwrap_or(name);
    parts(arguments).into_iter().rfind(|&at| name[..at].ends_with("::")).unwrap_or(0)
}

/// `text` with its middle left out, if it has more than `room` characters.
pub(crate) fn cut(text: &str, room: usize) -> String {
    let count = length(text);
    if count <= room {
        return text.to_owned();
    }
    let tail = room.saturating_sub(1) / 2;
    let head = room.saturating_sub(1) - tail;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_of_compilers_are_removed() {
        for (name, expected) in [
            ("serde_json::value::visit.llvm.13301181075638380001", "serde_json::value::visit"),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("f.isra.0.constprop.1", "f"),
            ("f.part.0.cold", "f"),
            ("f [clone .isra.0]", "f"),
            ("main.area", "main.area"),
            ("lib.so.6", "lib.so.6"),
            ("x::hash", "x::hash"),
            (".cold", ".cold"),
        ] {
            assert_eq!(plain(name), expected, "{name}");
        }
    }

    #[test]
    fn names_are_shortened_by_their_structure() {
        let name = "ink::parser::Parser<char, std::less<char>>::expression(int, char const*) [libink.so]  parser.cpp:345";
        for (room, expected) in [
            (200, name),
            (90, "ink::parser::Parser<char, std::less<char>>::expression(int, char const*) [libink.so]"),
            (70, "ink::parser::Parser<char, std::less<char>>::expression(…) [libink.so]"),
            (55, "ink::parser::Parser<…>::expression(…) [libink.so]"),
            (45, "…parser::Parser<…>::expression(…) [libink.so]"),
            (38, "…Parser<…>::expression(…) [libink.so]"),
            (30, "…expression(…) [libink.so]"),
            (16, "…expression(…)"),
        ] {
            let short = fit(name, room);
            assert!(length(&short) <= room, "{short}");
            assert_eq!(short, expected, "{room}");
        }
        assert_eq!(fit("/usr/lib/python3/dist-packages/a.py", 12), "…a.py");
        assert_eq!(fit("A::operator()(int, int)", 20), "A::operator()(…)");
        assert_eq!(fit("<alloc::vec::Vec<T> as core::iter::Iterator>::next", 20), "…next");
        assert_eq!(fit("a_name_of_twenty_char", 20), "a_name_of_…enty_char");
    }

    /// Names of Go, Java and Python lost their middle, a conversion its `operator`, and a closure its function.
    #[test]
    fn names_of_every_language_are_shortened_by_their_structure() {
        for (name, expected) in [
            (
                "encoding/json.(*decodeState).object",
                &["…json.(*decodeState).object", "…(*decodeState).object", "…object"][..],
            ),
            ("fmt.(*pp).doPrintf", &["…(*pp).doPrintf", "…doPrintf"]),
            ("main.Work.func1.2", &["…Work.func1.2", "…func1.2"]),
            (
                "com.example.Foo$Bar.lambda$main$0(java.lang.String)",
                &["com.example.Foo$Bar.lambda$main$0(…)", "…Foo$Bar.lambda$main$0(…)", "…lambda$main$0(…)"],
            ),
            ("main.<locals>.<lambda>", &["…<locals>.<lambda>", "…<lambda>"]),
            ("void (*signal(int, void (*)(int)))(int)", &["void (*signal(…))(…)", "…signal(…)"]),
            (
                "A::operator std::vector<int>() const",
                &["A::operator std::vector<…>() const", "…operator std::vector<…>() const"],
            ),
            ("operator new[](unsigned long)", &["operator new[](…)"]),
            (
                "hashbrown::raw::RawTable<T,A>::reserve::{{closure}}",
                &["…RawTable<…>::reserve::{{closure}}", "…reserve::{{closure}}"],
            ),
            (
                "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
                &["<alloc::vec::Vec<…> as core::ops::drop::Drop>::drop", "<Vec<…> as Drop>::drop", "…drop"],
            ),
            ("JS:*mul /tmp/w.js:3:5", &["…tmp/w.js:3:5", "…w.js:3:5"]),
        ] {
            for short in expected {
                assert_eq!(fit(name, length(short)), *short);
            }
        }
        assert_eq!(fit("libsomething_long.so.6", 12), "libsom….so.6");
    }

    #[test]
    fn in_narrow_places_the_last_part_is_left() {
        let name = "std::vector<double>::_M_realloc_insert<double>(double&&)";
        for (room, expected) in [
            (40, "std::vector<…>::_M_realloc_insert<…>(…)"),
            (28, "…_M_realloc_insert<…>(…)"),
            (18, "_M_realloc_insert"),
            (9, "_M_r…sert"),
            (3, "_…t"),
            (2, ""),
            (0, ""),
        ] {
            assert_eq!(fit_narrow(name, room), expected, "{room}");
        }
        assert_eq!(fit_narrow("f", 1), "f");
        assert_eq!(fit_narrow("A::operator()(int)", 10), "operator()");
        assert_eq!(fit_narrow("<alloc::vec::Vec<T> as core::iter::Iterator>::next", 4), "next");
    }

    #[test]
    fn names_that_differ_stay_different() {
        let texts = ["a::f(int, int, int, long)", "a::f(int, int, int, char)", "a::g"].map(Cow::Borrowed);
        let short = fit_all(&texts, &[18; 3]);
        assert!(short[0] != short[1] && short.iter().all(|text| length(text) <= 18), "{short:?}");
    }

    #[test]
    fn a_chain_keeps_its_ends() {
        let names = ["_start", "__libc_start_main", "main", "work::run"].map(str::to_owned);
        assert_eq!(fit_chain(&names, 60), "_start → __libc_start_main → main → work::run");
        assert_eq!(fit_chain(&names, 40), "_start → …1… → main → work::run");
        assert_eq!(fit_chain(&names, 30), "_start → …2… → work::run");
        assert_eq!(fit_chain(&names, 20), "_…t → …2… → …run");
        assert_eq!(fit_chain(&names[..1], 30), "_start");
        let names = ["_dl_relocate_object", "elf_dynamic_do_Rela [ld-linux-x86-64.so.2]"].map(str::to_owned);
        assert_eq!(fit_chain(&names, 45), "_dl_relocate_object → elf_dynamic_do_Rela");
    }
}
