//! Why an interpreter is refused.

/// Why the interpreter cannot be profiled.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is no library of the interpreter.
    NoInterpreter,
    /// A function is not there.
    Missing { symbol: String, library: String },
    /// Nothing calls the function through a slot.
    NoSlot { symbol: String },
    /// A slot leads into another library.
    Elsewhere { symbol: String, library: String },
    /// A virtual function is not where it should be.
    NotVirtual { symbol: String },
    /// The kernel does not let a slot be written.
    Protected { error: std::io::Error },
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoInterpreter => f.write_str("liboctinterp is not loaded as a library of its own"),
            Self::Missing { symbol, library } => write!(f, "{symbol} is not exported by {library}"),
            Self::NoSlot { symbol } => write!(f, "{symbol} is not called through any slot"),
            Self::Elsewhere { symbol, library } => {
                write!(f, "{symbol} leads into {library}, which has hooked it already")
            }
            Self::NotVirtual { symbol } => write!(f, "{symbol} is not found among the virtual functions"),
            Self::Protected { error } => write!(f, "the slots cannot be written: {error}"),
        }
    }
}
