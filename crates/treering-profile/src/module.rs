//! Bodies of code: executables, libraries, the kernel.

use crate::StringId;

/// A body of code that functions belong to. Modules are interned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Its path as the profiled process saw it, or a name in brackets, such as `[kernel]`.
    pub path: StringId,
    /// Its build-id note, or empty.
    pub build_id: Box<[u8]>,
    /// The kind of the module.
    pub kind: ModuleKind,
}

/// The kind of a module. The stored number is the discriminant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ModuleKind {
    /// An ELF file: executable or shared library.
    #[default]
    Elf = 0,
    /// The kernel itself.
    Kernel = 1,
    /// The code that the kernel maps into every process (vDSO).
    Vdso = 2,
    /// Memory without a file that held code, as JIT compilers make it.
    Jit = 3,
    /// Named by a foreign file, of unknown sort.
    Other = 4,
}

impl ModuleKind {
    /// Every kind, in the order of the stored numbers.
    pub const ALL: [Self; 5] = [Self::Elf, Self::Kernel, Self::Vdso, Self::Jit, Self::Other];

    /// The kind stored as `number`, or nothing for a number that is not in use.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}
