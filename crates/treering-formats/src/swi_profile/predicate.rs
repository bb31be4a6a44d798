//! Predicates, and those that call them.

use treering_profile::FunctionKind;

use super::term;
use super::value::{DEEPEST, Value};
use crate::budget::{Budget, NestingLimits};

/// A predicate: its name as the pack for SWI-Prolog gives it too, and whether the system has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Predicate {
    pub(super) name: String,
    pub(super) kind: FunctionKind,
}

impl Predicate {
    /// The name in a predicate indicator, as a term or, in JSON, as the text of one. Other terms, which
    /// foreign libraries may have for what they profile, are named as they are written.
    pub(super) fn of(value: &Value) -> Self {
        let parsed = match value {
            Value::Text(text) => {
                term::parse(text.as_bytes(), &mut NestingLimits::new(Budget::new(text.len()), DEEPEST)).ok()
            }
            _ => None,
        };
        let mut parts = Vec::new();
        leaves(parsed.as_ref().unwrap_or(value), &mut parts);
        let (module, name, arity) = match parts[..] {
            [Value::Text(module), Value::Text(name), Value::Integer(arity)] => (Some(module), name, arity),
            [Value::Text(name), Value::Integer(arity)] => (None, name, arity),
            _ => return Self { name: written(value), kind: FunctionKind::Interpreted },
        };
        let is_system = module.is_none_or(|module| module == "system");
        let kind = if is_system { FunctionKind::Builtin } else { FunctionKind::Interpreted };
        let module = module.filter(|module| !matches!(module.as_str(), "user" | "system"));
        let module = module.map_or(String::new(), |module| quoted(module) + ":");
        Self { name: format!("{module}{}/{arity}", quoted(name)), kind }
    }
}

/// The text between `:` and `/`.
fn leaves<'a>(value: &'a Value, into: &mut Vec<&'a Value>) {
    match value {
        Value::Compound(operator, sides) if matches!(operator.as_str(), ":" | "/") && sides.len() == 2 => {
            sides.iter().for_each(|side| leaves(side, into));
        }
        leaf => into.push(leaf),
    }
}

/// Operators that are words.
const WORDS: [&str; 17] = [
    "as",
    "discontiguous",
    "div",
    "divs",
    "dynamic",
    "initialization",
    "is",
    "meta_predicate",
    "mod",
    "module_transparent",
    "multifile",
    "public",
    "rdiv",
    "rem",
    "table",
    "thread_local",
    "xor",
];

/// An atom as SWI-Prolog's `writeq/1` writes it before `/`: operators in parentheses.
fn quoted(name: &str) -> String {
    let is_symbol = !name.is_empty() && name.chars().all(|c| "+-*/\\^<>=~:.?@#&".contains(c));
    if is_symbol || name == ";" || WORDS.contains(&name) {
        return format!("({name})");
    }
    let starts_small = name.starts_with(|c: char| c.is_lowercase());
    let is_word = starts_small && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_word || matches!(name, "[]" | "{}" | "!") {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// A term in one line.
fn written(value: &Value) -> String {
    let list = |values: &[Value]| values.iter().map(written).collect::<Vec<_>>().join(",");
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::List(elements) => format!("[{}]", list(elements)),
        Value::Compound(name, sides) if matches!(name.as_str(), ":" | "/") && sides.len() == 2 => {
            format!("{}{name}{}", written(&sides[0]), written(&sides[1]))
        }
        Value::Compound(name, arguments) => format!("{name}({})", list(arguments)),
        Value::Dict(pairs) => {
            let pairs: Vec<_> =
                pairs.iter().map(|(key, value)| format!("{key}:{}", written(value))).collect();
            format!("_{{{}}}", pairs.join(","))
        }
    }
}

/// A caller of a predicate, and the costs of its calls.
pub(super) struct Caller {
    pub(super) from: From,
    /// How many activations of the predicate were open already when it was called so.
    pub(super) depth: u64,
    pub(super) self_ticks: u64,
    pub(super) children_ticks: u64,
    pub(super) calls: u64,
}

/// Where calls come from.
pub(super) enum From {
    Predicate(Predicate),
    /// The predicate itself, directly or not.
    Recursive,
    /// It is not known.
    Spontaneous,
}

impl Caller {
    /// The node of a term `node(Predicate, Cycle, Ticks, Siblings, Calls, Redos, Exits)`, or of a list of the same.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let parts = match value {
            Value::Compound(name, parts) if name == "node" => parts,
            Value::List(parts) => parts,
            _ => return None,
        };
        let [predicate, numbers @ ..] = &parts[..] else { return None };
        let numbers: Option<Vec<u64>> = numbers.iter().map(Value::count).collect();
        let [depth, self_ticks, children_ticks, calls, _, _] = numbers?[..] else { return None };
        let from = match predicate {
            Value::Text(name) if name.trim_matches('\'') == "<recursive>" => From::Recursive,
            Value::Text(name) if name.trim_matches('\'') == "<spontaneous>" => From::Spontaneous,
            other => From::Predicate(Predicate::of(other)),
        };
        Some(Self { from, depth, self_ticks, children_ticks, calls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_have_the_names_that_the_pack_gives_them() {
        let predicate = |text: &str| Predicate::of(&Value::Text(text.to_owned())).name;
        for (text, name) in [
            ("user:fib/2", "fib/2"),
            (":(user,/(fib,2))", "fib/2"),
            ("system:(>)/2", "(>)/2"),
            ("system: > / 2", "(>)/2"),
            ("system:is/2", "(is)/2"),
            ("'$syspreds':'$hide'/1", "'$syspreds':'$hide'/1"),
            ("user:'my pred'/1", "'my pred'/1"),
            ("user:'it''s'/1", "'it\\'s'/1"),
            ("lists:append/3", "lists:append/3"),
            ("system:(',')/2", "','/2"),
            ("system: !/0", "!/0"),
            ("goal", "goal"),
        ] {
            assert_eq!(predicate(text), name, "{text}");
        }
    }
}
