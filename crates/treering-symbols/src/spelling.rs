//! The spelling of C++ names: without the parts that a compiler filled in by itself.
//!
//! Demanglers write out default arguments of templates of the standard library, inline namespaces, and blanks between
//! closing brackets; debug information has spellings of its own. Here all of them become what people write:
//! `std::vector<std::string>` in place of
//! `std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, std::allocator<...> >`.

/// Templates of the standard library with arguments that are mostly left to the compiler.
const TEMPLATES: [&str; 27] = [
    "basic_filebuf",
    "basic_fstream",
    "basic_ifstream",
    "basic_ios",
    "basic_iostream",
    "basic_istream",
    "basic_istringstream",
    "basic_ofstream",
    "basic_ostream",
    "basic_ostringstream",
    "basic_streambuf",
    "basic_string",
    "basic_string_view",
    "basic_stringbuf",
    "basic_stringstream",
    "deque",
    "forward_list",
    "list",
    "map",
    "multimap",
    "multiset",
    "set",
    "unique_ptr",
    "unordered_map",
    "unordered_multimap",
    "unordered_set",
    "vector",
];

/// The same that have a pair of two arguments as elements.
const OF_PAIRS: [&str; 4] = ["map", "multimap", "unordered_map", "unordered_multimap"];

/// The spelling that people use for a name of C++.
pub(crate) fn spelled(name: &str) -> String {
    if !name.contains('<') && !name.contains("::__") {
        return name.to_owned();
    }
    let plain = ["__cxx11::", "__1::"].iter().fold(name.to_owned(), |name, inline| {
        name.replace(&format!("std::{inline}"), "std::")
            .replace(&format!("experimental::{inline}"), "experimental::")
    });
    let mut text = String::with_capacity(plain.len());
    let mut speller = Speller { rest: &plain, is_broken: false };
    speller.names(&mut text);
    // A text with brackets that do not match is no name.
    if speller.is_broken || !speller.rest.is_empty() { plain } else { text }
}

/// Reads a name up to the end of a list of arguments.
struct Speller<'a> {
    rest: &'a str,
    is_broken: bool,
}

/// The operators that have angle brackets in their names, longer ones first.
const OPERATORS: [&str; 11] = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"];

impl Speller<'_> {
    /// Adds what stands up to the end, or to what closes a list of arguments or divides it.
    fn names(&mut self, text: &mut String) {
        while let Some(at) = self.rest.find(['<', '>', '(', ')', ',']) {
            if let Some(end) = end_of_operator(self.rest, at) {
                text.push_str(&self.rest[..end]);
                self.rest = &self.rest[end..];
                continue;
            }
            text.push_str(&self.rest[..at]);
            match self.rest.as_bytes()[at] {
                b'<' => {
                    self.rest = &self.rest[at + 1..];
                    self.arguments(text);
                }
                b'(' => {
                    text.push('(');
                    self.rest = &self.rest[at + 1..];
                    self.parameters(text);
                }
                _ => {
                    self.rest = &self.rest[at..];
                    return;
                }
            }
        }
        text.push_str(self.rest);
        self.rest = "";
    }

    /// The mark that stands next.
    fn mark(&mut self) -> Option<char> {
        let mark = self.rest.chars().next();
        self.rest = &self.rest[mark.map_or(0, char::len_utf8)..];
        mark
    }

    /// Adds what stands between parentheses, where brackets may be operators, and the closing one.
    fn parameters(&mut self, text: &mut String) {
        loop {
            self.names(text);
            let mark = self.mark();
            text.extend(mark);
            match mark {
                Some(')') => return,
                Some(_) => {}
                None => {
                    self.is_broken = true;
                    return;
                }
            }
        }
    }

    /// Adds a list of arguments behind the name of a template, which is the end of `text`.
    fn arguments(&mut self, text: &mut String) {
        let mut arguments = Vec::new();
        loop {
            let mut argument = String::new();
            self.names(&mut argument);
            arguments.push(argument.trim().to_owned());
            match self.mark() {
                Some(',') => {}
                Some('>') => break,
                _ => {
                    self.is_broken = true;
                    break;
                }
            }
        }
        leave_defaults(text, &mut arguments);
        text.push('<');
        text.push_str(&arguments.join(", "));
        text.push('>');
        abbreviate(text);
    }
}

/// Where the name of an operator ends that a bracket is part of.
fn end_of_operator(text: &str, bracket: usize) -> Option<usize> {
    let start = text[..bracket].rfind("operator")? + "operator".len();
    let is_near = text[start..bracket].chars().all(|mark| "-".contains(mark));
    let operator =
        OPERATORS.iter().find(|operator| text[start..].starts_with(**operator)).filter(|_| is_near)?;
    Some(start + operator.len())
}

/// Leaves out arguments that the compiler filled in.
fn leave_defaults(text: &str, arguments: &mut Vec<String>) {
    let Some(template) = TEMPLATES
        .iter()
        .find(|name| text.strip_suffix(**name).is_some_and(|before| before.ends_with("std::")))
    else {
        return;
    };
    let first = arguments[0].clone();
    let mut elements = vec![first.clone()];
    if let Some(second) = arguments.get(1).filter(|_| OF_PAIRS.contains(template)) {
        elements.push(format!("std::pair<{first} const, {second}>"));
        elements.push(format!("std::pair<const {first}, {second}>"));
    }
    let needed = if OF_PAIRS.contains(template) { 2 } else { 1 };
    let by_default = ["allocator", "char_traits", "less", "hash", "equal_to", "default_delete"];
    while arguments.len() > needed {
        let last = arguments.last().map_or("", String::as_str);
        let is_default =
            by_default.iter().any(|name| elements.iter().any(|of| *last == format!("std::{name}<{of}>")));
        if !is_default {
            return;
        }
        arguments.pop();
    }
}

/// Gives templates of characters their short names.
fn abbreviate(text: &mut String) {
    for (characters, prefix) in [("<char>", ""), ("<wchar_t>", "w")] {
        let Some(before) = text.strip_suffix(characters) else { continue };
        let Some(at) = before.rfind("std::basic_") else { continue };
        let name = &before[at + "std::basic_".len()..];
        if TEMPLATES.iter().any(|template| template.strip_prefix("basic_") == Some(name)) {
            let short = format!("std::{prefix}{name}");
            text.truncate(at);
            text.push_str(&short);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn default_arguments_of_templates_are_left_out() {
        let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        assert_eq!(spelled(string), "std::string");
        assert_eq!(
            spelled(&format!(
                "std::vector<{string}, std::allocator<{string} > >::push_back({string} const&)"
            )),
            "std::vector<std::string>::push_back(std::string const&)"
        );
        let map = "std::map<int, A<B<C> >, std::less<int>, std::allocator<std::pair<int const, A<B<C> > > > >::find(int)";
        assert_eq!(spelled(map), "std::map<int, A<B<C>>>::find(int)");
        assert_eq!(
            spelled(
                "std::unordered_set<K, std::hash<K>, std::equal_to<K>, std::allocator<K> >::size() const"
            ),
            "std::unordered_set<K>::size() const"
        );
        assert_eq!(
            spelled("f(std::unique_ptr<T, std::default_delete<T> >, T*)"),
            "f(std::unique_ptr<T>, T*)"
        );
        assert_eq!(
            spelled(
                "std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> >(int)"
            ),
            "std::ostream& std::operator<< <std::char_traits<char>>(int)"
        );
    }

    #[test]
    fn chosen_arguments_of_templates_stay() {
        for name in [
            "std::vector<int, my::allocator<int>>::size()",
            "std::set<int, std::greater<int>>::size()",
            "std::map<std::string, int, std::less<void>>::find(int)",
            "my::vector<int, std::allocator<int>>::size()",
            "std::allocator_traits<std::allocator<int>>::allocate(int)",
            "a::operator<(b)",
            "a::operator->()",
            "a::operator>>(b)",
            "a::operator<=>(b)",
            "f(void (*)(int, char))",
            "bool operator<<int>(int)",
            "f<(E)1>(g<(a>b)>)",
            "<core::option::Option<T> as core::fmt::Debug>::fmt",
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "x < y",
            "broken<",
            "broken>",
            "broken<a, (b",
            "",
        ] {
            assert_eq!(spelled(name), name);
        }
    }
}
