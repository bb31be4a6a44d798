//! The names of functions, and the choice of those that are recorded.

use treering_runtime::events::function_kind;
use treering_runtime::{Filter, Function};

use crate::definition::Definitions;

/// The sort of function that an object is, as far as its hook tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Defined in Octave's language; anonymous functions as well.
    User,
    /// A script file.
    Script,
    /// Part of the interpreter.
    Builtin,
    /// An operator.
    Operator,
    /// A MEX or oct file.
    Extension,
}

/// An object, as it tells about itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description<'a> {
    /// The name that Octave's profiler would use; empty for anonymous functions that were made
    /// at a place that is known.
    pub(crate) name: &'a [u8],
    /// The file that defines it, or nothing.
    pub(crate) file: &'a [u8],
    /// The sort of function.
    pub(crate) sort: Sort,
    /// Of anonymous functions: line and column of the `@`, where known.
    pub(crate) made_at: Option<(u32, u32)>,
}

/// The treatment of a function's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// They are recorded.
    Function(Function),
    /// They are their callers'.
    Ignored,
    /// It is a command of ours; nothing is recorded while it runs.
    Own,
}

/// Gives functions their names.
#[derive(Debug)]
pub(crate) struct Namer {
    filter: Filter,
    /// Whether the functions of the interpreter are left out.
    without_builtins: bool,
    /// The folder of our own commands.
    home: Vec<u8>,
    definitions: Definitions,
}

/// Our commands in the language of Octave.
const OWN: [&[u8]; 5] =
    [b"treering", b"profile", b"treering_mark", b"treering_native_profile", b"treering>__treering_workers__"];

impl Namer {
    /// One that records everything.
    pub(crate) const fn new() -> Self {
        let filter = Filter { only: Vec::new(), ignored: Vec::new() };
        Self { filter, without_builtins: false, home: Vec::new(), definitions: Definitions::new() }
    }

    /// A namer that records the functions that `filter` keeps, and leaves out our own commands in the
    /// folder `home`.
    pub(crate) fn with(filter: Filter, home: &str) -> Self {
        Self { filter, home: home.as_bytes().to_vec(), ..Self::new() }
    }

    /// A namer that leaves out the functions of the interpreter, if `without_builtins` says so.
    pub(crate) fn without_builtins(self, without_builtins: bool) -> Self {
        Self { without_builtins, ..self }
    }

    /// Decides about the calls of a new object.
    pub(crate) fn known(&mut self, about: &Description) -> Known {
        if self.is_own(about) {
            return Known::Own;
        }
        let name = full_name(about);
        if !self.filter.keeps(&name) || self.without_builtins && about.sort == Sort::Builtin {
            return Known::Ignored;
        }
        let is_anonymous = is_anonymous(about);
        let (kind, line) = match about.sort {
            Sort::User if is_anonymous => (function_kind::ANONYMOUS, about.made_at.map_or(0, |at| at.0)),
            Sort::User => (function_kind::INTERPRETED, self.definitions.line(about.file, about.name)),
            Sort::Script => (function_kind::SCRIPT, 1),
            Sort::Builtin => (function_kind::BUILTIN, 0),
            Sort::Operator => (function_kind::OPERATOR, 0),
            Sort::Extension => (function_kind::EXTENSION, 0),
        };
        let function = Function::of_kind(kind, &name, about.file, line);
        if function.is_recorded() { Known::Function(function) } else { Known::Ignored }
    }

    fn is_own(&self, about: &Description) -> bool {
        let is_here = || about.file.strip_prefix(&self.home[..]).is_some_and(|rest| rest.starts_with(b"/"));
        match about.sort {
            Sort::Extension => about.name == b"__treering__",
            Sort::User => OWN.contains(&about.name) && !self.home.is_empty() && is_here(),
            _ => false,
        }
    }
}

/// Octave's name for anonymous functions, which goes on with the file and two zeros.
const ANONYMOUS: &[u8] = b"anonymous@";

fn is_anonymous(about: &Description) -> bool {
    about.made_at.is_some() || about.name.starts_with(ANONYMOUS)
}

/// The name for reports: that of Octave, with the packages of package functions in front, and
/// for anonymous functions the place where they were made.
fn full_name(about: &Description) -> Vec<u8> {
    if is_anonymous(about) {
        let (line, column) = about.made_at.unwrap_or_default();
        let file = String::from_utf8_lossy(last_part(about.file)).into_owned();
        return format!("anonymous@{file}:{line}:{column}").into_bytes();
    }
    let packages = packages(about.file);
    match about.name.strip_prefix(b"@") {
        // Octave has the packages of a class in the names of methods already, but not of constructors.
        Some(class) if class.starts_with(&packages) => about.name.to_vec(),
        Some(class) => [b"@", &packages[..], class].concat(),
        None => [&packages[..], about.name].concat(),
    }
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// The packages that a file's folders stand for, each followed by a dot: those that start with a
/// plus sign, directly above the file.
fn packages(path: &[u8]) -> Vec<u8> {
    let folders = path.rsplit(|&byte| byte == b'/').skip(1);
    let mut names: Vec<&[u8]> = folders.map_while(|folder| folder.strip_prefix(b"+")).collect();
    names.reverse();
    names.iter().flat_map(|name| [name, &b"."[..]].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str, file: &str, made_at: Option<(u32, u32)>) -> String {
        let about = Description { name: name.as_bytes(), file: file.as_bytes(), sort: Sort::User, made_at };
        String::from_utf8(full_name(&about)).unwrap()
    }

    #[test]
    fn names_tell_packages_and_places() {
        assert_eq!(name("fib", "/m/fib.m", None), "fib");
        assert_eq!(name("file>part", "/m/file.m", None), "file>part");
        assert_eq!(name("solve", "/m/+outer/+inner/solve.m", None), "outer.inner.solve");
        assert_eq!(name("@containers.Map/keys", "/m/+containers/Map.m", None), "@containers.Map/keys");
        assert_eq!(name("@Map", "/m/+containers/Map.m", None), "@containers.Map");
        assert_eq!(name("@Counter/inc", "/m/Counter.m", None), "@Counter/inc");
        assert_eq!(name("", "/m/a.m", Some((12, 5))), "anonymous@a.m:12:5");
        assert_eq!(name("anonymous@/m/a.m:0:0", "/m/a.m", None), "anonymous@a.m:0:0");
    }

    #[test]
    fn only_commands_in_their_folder_are_our_own() {
        let namer = Namer::with(Filter::default(), "/packages/treering");
        let is_own = |name: &str, file: &str| {
            namer.is_own(&Description {
                name: name.as_bytes(),
                file: file.as_bytes(),
                sort: Sort::User,
                made_at: None,
            })
        };
        assert!(is_own("profile", "/packages/treering/profile.m"));
        assert!(!is_own("profile", "/packages/treering-other/profile.m"));
        assert!(!is_own("profile", "/usr/share/profile.m") && !is_own("other", "/packages/treering/other.m"));
    }
}
