//! Functions, to which costs are charged.

use crate::{ModuleId, StatedAddress, StringId};

/// Something that can be entered and left: a function of a program, a predicate, a task.
///
/// Functions are interned: two that agree in every field are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// The name a person reads, demangled. Empty for [`FunctionKind::Address`].
    pub name: StringId,
    /// The name in the symbol table where it differs from `name`, else the empty string.
    pub linkage_name: StringId,
    /// The binary or other body of code that holds it, where known.
    pub module: Option<ModuleId>,
    /// The file that defines it, or the empty string.
    pub file: StringId,
    /// The line of its definition, or 0.
    pub line: u32,
    /// Where it starts in its module, where known. For [`FunctionKind::Address`], the address
    /// to be resolved.
    pub address: Option<StatedAddress>,
    /// The kind of the function.
    pub kind: FunctionKind,
}

impl Function {
    /// A native function of which only the name is known.
    pub fn named(name: StringId) -> Self {
        Self {
            name,
            linkage_name: StringId::new(0),
            module: None,
            file: StringId::new(0),
            line: 0,
            address: None,
            kind: FunctionKind::Native,
        }
    }

    /// The function of a thread's root node, which calls what was entered first.
    pub fn root() -> Self {
        Self { kind: FunctionKind::Root, ..Self::named(StringId::new(0)) }
    }

    /// Whether two entries are of one function of the source: equal in all but place and kind. One that the compiler
    /// copied, divided, or inlined here and there has several.
    pub fn is_same_source(&self, other: &Self) -> bool {
        let Self { name, linkage_name, module, file, line, address: _, kind: _ } = *self;
        let known = name != StringId::new(0) && file != StringId::new(0);
        known
            && (name, linkage_name, module, file, line)
                == (other.name, other.linkage_name, other.module, other.file, other.line)
    }

    /// An address in a module that has not been resolved to a function.
    pub fn at_address(module: Option<ModuleId>, address: StatedAddress) -> Self {
        Self { module, address: Some(address), kind: FunctionKind::Address, ..Self::named(StringId::new(0)) }
    }
}

/// The kind of a function. The stored number is the discriminant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum FunctionKind {
    /// Machine code made by a compiler.
    #[default]
    Native = 0,
    /// A native function that was inlined into its caller.
    Inlined = 1,
    /// A function of the kernel.
    Kernel = 2,
    /// The root of a thread; not a function of the program.
    Root = 3,
    /// An address that has not been resolved yet. Only recordings that were cut short hold any.
    Address = 4,
    /// Code whose function could not be found; one for each module, named after it.
    Unresolved = 5,
    /// Code made while the program ran, named by its compiler.
    Jit = 6,
    /// A function of an interpreted language.
    Interpreted = 7,
    /// A task of an instrumented program.
    Task = 8,
    /// A function that an interpreter brings with it.
    Builtin = 9,
    /// An operator of an interpreted language.
    Operator = 10,
    /// A file of statements of an interpreted language.
    Script = 11,
    /// Compiled code that an interpreter has loaded.
    Extension = 12,
    /// A function without a name, told by the place where it was made.
    Anonymous = 13,
}

impl FunctionKind {
    /// Every kind, in the order of the stored numbers.
    pub const ALL: [Self; 14] = [
        Self::Native,
        Self::Inlined,
        Self::Kernel,
        Self::Root,
        Self::Address,
        Self::Unresolved,
        Self::Jit,
        Self::Interpreted,
        Self::Task,
        Self::Builtin,
        Self::Operator,
        Self::Script,
        Self::Extension,
        Self::Anonymous,
    ];

    /// The kind stored as `number`, or nothing for a number that is not in use.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// The word for this kind in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Inlined => "inlined",
            Self::Kernel => "kernel",
            Self::Root => "root",
            Self::Address => "address",
            Self::Unresolved => "unresolved",
            Self::Jit => "jit",
            Self::Interpreted => "interpreted",
            Self::Task => "task",
            Self::Builtin => "builtin",
            Self::Operator => "operator",
            Self::Script => "script",
            Self::Extension => "extension",
            Self::Anonymous => "anonymous",
        }
    }
}
