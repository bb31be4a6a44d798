//! Text that is safe on a terminal. Programs name things as they like, and files hold anything: a name
//! with escape sequences could clear the screen, or show another number than the one that is there; one with
//! characters that nobody sees could pass for another name.

use std::borrow::Cow;

use treering_profile::character::{is_obeyed, is_unseen};
use treering_profile::{Profile, StringTable};

/// A text with what a terminal would obey, what would break a line, and what nobody sees escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) || is_unseen(c))
}

/// The same for a text of several lines, but for ends of lines and tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t') || is_unseen(c))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if is_escaped(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// The profile with every name and text in it [`printable`]: whatever a listing shows of it is then.
pub(crate) fn printable_profile(profile: &Profile) -> Cow<'_, Profile> {
    let fits = |text: &str| matches!(printable(text), Cow::Borrowed(_));
    let strings = profile.strings.iter().all(|(_, text)| fits(text));
    let names = profile.metrics.iter().map(|metric| &metric.name);
    let names = names.chain(profile.processes.iter().map(|process| &process.name));
    let mut names = names.chain(profile.threads.iter().map(|thread| &thread.name));
    let sources = || profile.sources.iter().all(|of| matches!(printable_lines(&of.text), Cow::Borrowed(_)));
    if strings && names.all(|name| fits(name)) && sources() {
        return Cow::Borrowed(profile);
    }
    let mut shown = profile.clone();
    let texts = profile.strings.iter().map(|(_, text)| printable(text).into_owned().into());
    shown.strings = StringTable::from_entries(texts.collect()).unwrap_or_default();
    let names = shown.metrics.iter_mut().map(|metric| &mut metric.name);
    let names = names.chain(shown.processes.iter_mut().map(|process| &mut process.name));
    for name in names.chain(shown.threads.iter_mut().map(|thread| &mut thread.name)) {
        *name = printable(name).into_owned();
    }
    for source in &mut shown.sources {
        source.text = printable_lines(&source.text).into_owned().into();
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use treering_profile::{Function, Metric, Module, ModuleKind, Unit};

    use super::*;

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(printable("a\nb\t\u{1b}[1m"), "a\\nb\\t\\u{1b}[1m");
        assert_eq!(printable("a\u{202e}b\u{9b}1m"), "a\\u{202e}b\\u{9b}1m");
        assert_eq!(printable_lines("a\u{2066}b\u{2069}"), "a\\u{2066}b\\u{2069}");
        assert!(matches!(printable("naïve \"name\""), Cow::Borrowed(_)));
        assert_eq!(printable_lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
    }

    /// `user` and `admin` with a space of no width in between were shown as one word, like another function's name.
    #[test]
    fn characters_that_nobody_sees_are_shown() {
        for unseen in
            ["\u{200b}", "\u{200d}", "\u{2060}", "\u{feff}", "\u{ad}", "\u{fe0f}", "\u{3164}", "\u{e0041}"]
        {
            let escaped = unseen.escape_unicode().to_string();
            assert_eq!(printable(&format!("user{unseen}admin")), format!("user{escaped}admin"));
            assert_eq!(printable_lines(&format!("a\n{unseen}")), format!("a\n{escaped}"));
        }
        for seen in ["e\u{301}", "日本語", "🙂", "a\u{a0}b", "ﺩ"] {
            assert!(matches!(printable(seen), Cow::Borrowed(_)), "{seen}");
        }
    }

    #[test]
    fn no_name_of_a_profile_reaches_a_terminal_as_it_is() {
        let mut profile = treering_testing::stacks("main 10");
        let evil = "\u{1b}]0;evil\u{7}\u{202e}\u{200b}";
        let path = profile.strings.intern(&format!("/lib/{evil}.so"));
        let module = profile.modules.intern(Module { path, build_id: Box::default(), kind: ModuleKind::Elf });
        let name = profile.strings.intern(evil);
        let function = Function { module: Some(module), file: path, ..Function::named(name) };
        let function = profile.functions.intern(function);
        let root = profile.threads[0].root;
        let node = profile.tree.child(root, function, None);
        let metric = profile.add_metric(Metric::exact(evil, Unit::Count));
        profile.tree.add_self_cost(metric, node, 7);
        profile.threads[0].name = evil.to_owned();
        profile.runs[0].command = vec![evil.to_owned()];
        profile.metadata.note(evil);
        let basis = treering_analysis::Basis::of(&profile, metric);
        let graph =
            treering_analysis::CallGraph::of(&profile, &basis, treering_analysis::Presentation::Contexts);
        let (style, options) = Default::default();
        let texts = [
            crate::flat_text(&profile, &graph, &style, &options),
            crate::call_graph_text(&profile, &graph, &style, &options),
            crate::summary(&profile, &style, 5),
        ];
        for text in texts {
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{200b}']), "{text:?}");
        }
    }
}
