//! Names of C++ as `cpp_demangle` reads them, where it spells them otherwise than c++filt and debuggers.
//!
//! Four of its spellings are wrong: the first parameter of a template's constructor is taken for a return type,
//! qualifiers of a nested type stand in its middle, those of an expanded pack of parameters stand at its last member
//! only, and the two types of a construction vtable are swapped.

use cpp_demangle::{DemangleOptions, Symbol};

/// The name of a mangled symbol, or nothing if it cannot be read.
pub(crate) fn cpp_name(symbol: &str, options: DemangleOptions) -> Option<String> {
    let read = |symbol: &str| Symbol::new(symbol).ok()?.demangle_with_options(&options).ok();
    let constructor = with_return_type(symbol);
    let symbol = constructor.as_deref().unwrap_or(symbol);
    let name = with_pack(symbol, read).or_else(|| read(symbol))?;
    Some(literals(&qualifiers_behind(&special(without_empty_packs(name)))))
}

/// Where the name of a function may end and its types begin, the last place first.
fn ends_of_names(symbol: &str) -> impl Iterator<Item = usize> {
    symbol.rmatch_indices('E').map(|(at, _)| at + 1).filter(|&end| end < symbol.len()).take(MOST_ENDS)
}

/// The longest part of a symbol that is a name by itself, without the types that follow it.
pub(crate) fn longest_name(symbol: &str) -> Option<String> {
    ends_of_names(symbol).find_map(|end| {
        let part = Symbol::new(&symbol[..end]).ok()?.demangle().ok()?;
        let name = part.strip_suffix(" const").unwrap_or(&part);
        // With types there would be parameters, and perhaps not all.
        let is_name = !name.ends_with(')') || name.ends_with("operator()");
        is_name.then(|| literals(&qualifiers_behind(&part)))
    })
}

/// In how many places a name is tried to end.
const MOST_ENDS: usize = 256;

/// The symbol of a template's constructor with a return type, as other templates have it and `cpp_demangle` expects it.
fn with_return_type(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_ZN") || !["C1I", "C2I", "C3I"].iter().any(|mark| symbol.contains(mark)) {
        return None;
    }
    let (start, types) = ends_of_names(symbol).map(|end| symbol.split_at(end)).find(|(start, _)| {
        // Without parameters; what ends within the parameters has some.
        let name = Symbol::new(format!("{start}vv")).ok().and_then(|symbol| symbol.demangle().ok());
        name.is_some_and(|name| name.strip_suffix("()").is_some_and(is_constructor))
    })?;
    (types != "v").then(|| format!("{start}v{types}"))
}

/// Whether a name is one such as `space::list<int>::list<long>`.
fn is_constructor(name: &str) -> bool {
    let Some((class, function)) = without_arguments(name).and_then(|name| name.rsplit_once("::")) else {
        return false;
    };
    let class = if class.ends_with('>') { without_arguments(class) } else { Some(class) };
    class.is_some_and(|class| class.rsplit("::").next() == Some(function))
}

/// A name without the arguments of the template at its end.
fn without_arguments(name: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, byte) in name.bytes().enumerate().rev() {
        match byte {
            b'>' => depth += 1,
            b'<' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (byte == b'<').then(|| &name[..at]);
        }
    }
    None
}

/// `manager<unit>` for `manager<unit, >`, and `run(int)` for `run(int, )`, which stand where a pack is empty.
fn without_empty_packs(name: String) -> String {
    match (name.contains(", >") || name.contains(", )")) && !name.contains("operator,") {
        true => name.replace(", >", ">").replace(", )", ")"),
        false => name,
    }
}

/// Tables and thunks as c++filt calls them.
fn special(name: String) -> String {
    if let Some((first, second)) =
        name.strip_prefix("construction vtable for ").and_then(|of| of.split_once("-in-"))
    {
        return format!("construction vtable for {second}-in-{first}");
    }
    let Some((what, rest)) =
        name.strip_prefix('{').and_then(|name| name.strip_suffix(")}")).and_then(|name| name.split_once('('))
    else {
        return name;
    };
    let offsets: Vec<&str> = rest.split("}, ").collect();
    match (what, offsets[..].len()) {
        ("vtable", _) => format!("vtable for {rest}"),
        ("vtt", _) => format!("VTT for {rest}"),
        ("virtual override thunk", 2) if rest.starts_with("{offset(") => {
            format!("non-virtual thunk to {}", offsets[1])
        }
        ("virtual override thunk", 2) => format!("virtual thunk to {}", offsets[1]),
        ("virtual override thunk", 3) if offsets[1].starts_with('{') => {
            format!("covariant return thunk to {}", offsets[2])
        }
        _ => name,
    }
}

/// `outer::inner const&` for `outer const::inner&`.
fn qualifiers_behind(name: &str) -> String {
    let mut name = name.to_owned();
    for qualifier in ["&&", "&", "*", " const", " volatile"] {
        let wrong = format!("{qualifier}::");
        let mut from = 0;
        while let Some(at) = name[from..].find(&wrong).map(|at| from + at) {
            from = at + wrong.len();
            // A suffix of parameters belongs to a member function, in which something else is.
            if name[..at].trim_end().ends_with([')', ':']) || name[..at].ends_with("operator") {
                continue;
            }
            let end = at + qualifier.len() + end_of_nested(&name[at + qualifier.len()..]);
            name.insert_str(end, qualifier);
            name.replace_range(at..at + qualifier.len(), "");
            from = at;
        }
    }
    name
}

/// Where the rest of a nested name ends, such as `::entry<int>::key`.
fn end_of_nested(rest: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            b'>' | b')' | b'}' | b']' if depth > 0 => depth -= 1,
            b'_' | b':' | b'~' | b'$' | b'.' => {}
            byte if depth == 0 && !byte.is_ascii_alphanumeric() => return at,
            _ => {}
        }
    }
    rest.len()
}

/// Types of integers, and the suffixes of their literals.
const SUFFIXES: [(&str, &str); 5] = [
    ("(unsigned int)", "u"),
    ("(long)", "l"),
    ("(unsigned long)", "ul"),
    ("(long long)", "ll"),
    ("(unsigned long long)", "ull"),
];

/// `16u` for `(unsigned int)16`.
fn literals(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('(') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let literal = SUFFIXES.iter().find_map(|(cast, suffix)| {
            let number = from.strip_prefix(cast)?;
            let sign = usize::from(number.starts_with('-'));
            let digits = number[sign..].bytes().take_while(u8::is_ascii_digit).count();
            (digits > 0 && before.ends_with(['<', ' '])).then(|| (number.split_at(sign + digits), suffix))
        });
        match literal {
            Some(((number, after), suffix)) => {
                text.push_str(number);
                text.push_str(suffix);
                rest = after;
            }
            None => {
                text.push('(');
                rest = &from[1..];
            }
        }
    }
    text + rest
}

/// The text around each member of a pack of parameters, as mangled, and how it is written behind a type.
const PATTERNS: [(&str, &str); 5] =
    [("RK", " const&"), ("R", "&"), ("O", "&&"), ("PK", " const*"), ("P", "*")];

/// The name of a function whose last parameter is an expanded pack of references or pointers. It is put together from
/// two names that are read well: that of the same function without this parameter, and with the pack alone.
fn with_pack(symbol: &str, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (start, parameter, pattern, suffix) = PATTERNS.iter().find_map(|&(pattern, suffix)| {
        let at = symbol.rfind("Dp")?;
        let parameter = symbol[at + 2..].strip_prefix(pattern)?;
        Some((&symbol[..at], parameter, pattern, suffix))
    })?;
    let number = parameter.strip_prefix('T')?.strip_suffix('_')?;
    if !number.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let (alone, without) = (read(&format!("{start}Dp{parameter}"))?, read(&format!("{start}v"))?);
    // `f<int>(long, void)`, where there are other parameters.
    let close = without.rfind(')')?;
    let qualifiers = &without[close..];
    let before = without[..close].strip_suffix("void").unwrap_or(&without[..close]);
    let pack = alone.strip_prefix(before)?.strip_suffix(qualifiers)?;
    let members: Vec<String> =
        members(pack).into_iter().map(|of| with_suffix(of, pattern, suffix)).collect::<Option<_>>()?;
    let before = if members.is_empty() { before.strip_suffix(", ").unwrap_or(before) } else { before };
    Some(format!("{before}{}{qualifiers}", members.join(", ")))
}

/// The members of a list, at the commas that stand in no brackets.
fn members(list: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0_usize, 0);
    let mut members = Vec::new();
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            // An arrow is no bracket.
            b'>' if list[..at].ends_with('-') => {}
            b'>' | b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                members.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(list[start..].trim());
    members.retain(|member| !member.is_empty());
    members
}

/// A type with the suffix of a reference or a pointer to it; nothing where it stands in the middle of the type.
fn with_suffix(of: &str, pattern: &str, suffix: &str) -> Option<String> {
    // References to references: `&` wins, and what is referred to keeps its qualifiers.
    if of.ends_with('&') && !pattern.starts_with('P') {
        let rvalue = of.ends_with("&&") && !pattern.starts_with('O');
        return Some(if rvalue { of[..of.len() - 1].to_owned() } else { of.to_owned() });
    }
    let suffix =
        if of.ends_with(" const") { suffix.strip_prefix(" const").unwrap_or(suffix) } else { suffix };
    if let Some((element, length)) = of.split_once(" [").filter(|_| of.ends_with(']')) {
        let (qualifier, mark) = suffix.split_at(suffix.find(['&', '*'])?);
        return Some(format!("{element}{qualifier} ({mark}) [{length}"));
    }
    // Functions, and what is local to one.
    let is_function = of.ends_with(')') || of.contains("(*");
    (!is_function).then(|| format!("{of}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symbols of LLVM, Octave, Qt and libstdc++, as c++filt prints them.
    #[test]
    fn names_are_as_cxxfilt_prints_them() {
        for (symbol, name) in [
            ("_ZTV5QDial", "vtable for QDial"),
            ("_ZTT1D", "VTT for D"),
            ("_ZThn16_N5QDialD0Ev", "non-virtual thunk to QDial::~QDial()"),
            ("_ZTv0_n24_N1AD1Ev", "virtual thunk to A::~A()"),
            ("_ZTch0_h16_N1D1fEv", "covariant return thunk to D::f()"),
            ("_ZTC1D16_1B", "construction vtable for B-in-D"),
            ("_Z1gR6vectorILj16EE", "g(vector<16u>&)"),
            ("_Z1gR6vectorILln3ELm4096EE", "g(vector<-3l, 4096ul>&)"),
            (
                "_ZNK5clang9ModuleMap13resolveExportEPNS_6ModuleERKNS1_20UnresolvedExportDeclEb",
                "clang::ModuleMap::resolveExport(clang::Module*, clang::Module::UnresolvedExportDecl const&, bool) const",
            ),
            (
                "_ZN4llvm12hash_combineIJPvjjEEENS_9hash_codeEDpRKT_",
                "llvm::hash_code llvm::hash_combine<void*, unsigned int, unsigned int>(void* const&, unsigned int const&, unsigned int const&)",
            ),
            (
                "_ZN4llvm12hash_combineIJNS_9hash_codeES1_EEES1_DpRKT_",
                "llvm::hash_code llvm::hash_combine<llvm::hash_code, llvm::hash_code>(llvm::hash_code const&, llvm::hash_code const&)",
            ),
            (
                "_Z3ovlIJA8_c6MatrixEE17octave_value_listDpRKT_",
                "octave_value_list ovl<char [8], Matrix>(char const (&) [8], Matrix const&)",
            ),
            ("_Z1fIJRiOlEEvbDpOT_", "void f<int&, long&&>(bool, int&, long&&)"),
            (
                "_ZN6octave6Object10propertiesINS_6figureEEERNT_10propertiesEv",
                "octave::figure::properties& octave::Object::properties<octave::figure>()",
            ),
            ("_ZN5QListIiEC1IPKiLb1EEET_S4_", "QList<int>::QList<int const*, true>(int const*, int const*)"),
            ("_ZN10dim_vectorC1IJilEEEllDpT_", "dim_vector::dim_vector<int, long>(long, long, int, long)"),
            ("_ZN10dim_vectorC1IJEEEllDpT_", "dim_vector::dim_vector<>(long, long)"),
            ("_ZN1AC1IiEET_", "A::A<int>(int)"),
            ("_ZN1AC2IiEEv", "A::A<int>()"),
            ("_Z1fIJEEvbDpOT_", "void f<>(bool)"),
            ("_ZNK1S1fIJiKcEEEvDpPKT_", "void S::f<int, char const>(int const*, char const*) const"),
        ] {
            assert_eq!(cpp_name(symbol, DemangleOptions::new()).as_deref(), Some(name));
        }
    }
}
