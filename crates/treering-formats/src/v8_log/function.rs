//! Functions as the names of code tell them.

use treering_profile::{Function, FunctionKind, Profile, StringId};

use crate::cpuprofile::node::ANONYMOUS;

/// The function of code that V8 made. `state` tells how a function of JavaScript is executed: `~` interpreted, `^`
/// compiled without optimisation, `+` and `*` optimised. It stands before the name, as `node --prof-process` prints it.
pub(super) fn function(profile: &mut Profile, kind: &str, name: &str, state: Option<&str>) -> Function {
    let strings = &mut profile.strings;
    let Some(state) = state else {
        let is_builtin = matches!(kind, "Builtin" | "Stub");
        let name = if is_builtin { name.to_owned() } else { format!("{kind}: {name}") };
        return Function { kind: FunctionKind::Builtin, ..Function::named(strings.intern(&name)) };
    };
    let (name, file, line) = place(name).unwrap_or((name, "", 0));
    let name = format!("{state}{}", if name.is_empty() { ANONYMOUS } else { name });
    let kind = if matches!(state, "" | "~") { FunctionKind::Interpreted } else { FunctionKind::Jit };
    let file = if file.is_empty() { StringId::new(0) } else { strings.intern(file) };
    Function { file, line, kind, ..Function::named(strings.intern(&name)) }
}

/// `leaf /src/a.js:2:14`: name, file and line. The name is empty, one word, or that of a getter or setter.
fn place(text: &str) -> Option<(&str, &str, u32)> {
    let (rest, column) = text.rsplit_once(':')?;
    let (rest, line) = rest.rsplit_once(':')?;
    column.parse::<u32>().ok()?;
    let line = line.parse().ok()?;
    let first = rest.find(' ')?;
    let accessor = matches!(&rest[..first], "get" | "set").then(|| rest[first + 1..].find(' ')).flatten();
    let end = accessor.map_or(first, |second| first + 1 + second);
    Some((&rest[..end], &rest[end + 1..], line))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn names_are_told_from_files() {
        for (text, expected) in [
            ("leaf /my work/a.js:2:14", Some(("leaf", "/my work/a.js", 2))),
            (" node:internal/main:1:1", Some(("", "node:internal/main", 1))),
            ("get size /a.js:3:4", Some(("get size", "/a.js", 3))),
            ("get /a.js:3:4", Some(("get", "/a.js", 3))),
            ("leaf", None),
            ("f a:b", None),
        ] {
            assert_eq!(place(text), expected, "{text}");
        }
    }
}
