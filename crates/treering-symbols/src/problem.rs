//! Why addresses of a module could not be resolved as well as one would wish.

use std::io;
use std::path::{Path, PathBuf};

/// Why addresses of a module could not be resolved, or not as well as one would wish.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Problem {
    /// The file is not there.
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file was deleted, replaced or written to while the program ran.
    Deleted {
        /// Where it had been.
        path: PathBuf,
    },
    /// The file cannot be read.
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// The file is not an object file.
    NotAnObject {
        /// Its path.
        path: PathBuf,
    },
    /// The file is not the one that ran: its build-id is another. Nothing was resolved from it.
    OtherBuild {
        /// Its path.
        path: PathBuf,
        /// The build-id of what ran, in hexadecimal.
        expected: String,
        /// The build-id of the file, in hexadecimal, or nothing.
        found: Option<String>,
    },
    /// The checksum of a separate debug file is not the one that the binary asks for.
    OtherChecksum {
        /// The debug file's path.
        path: PathBuf,
    },
    /// A file with debug information belongs neither to root, nor to the present user, nor to the owner of the
    /// binary, so its contents cannot be trusted.
    ForeignOwner {
        /// The file's path.
        path: PathBuf,
        /// The number of that user.
        owner: u32,
    },
    /// Neither the binary nor any debug file that was found has debug information.
    NoDebugInformation,
    /// The functions of debug information are in `.dwo` files, which are not read for this.
    SplitDebugInformation,
    /// Neither the binary nor any debug file that was found has names of functions.
    NoSymbols,
    /// Debug information that is kept apart (split DWARF or dwz) was not found.
    MissingPart {
        /// Its path as the binary states it.
        path: PathBuf,
    },
    /// Debug information could not be read.
    Damaged {
        /// The fault in it.
        reason: String,
    },
    /// The list of kernel symbols was not given or has its addresses hidden.
    KernelSymbolsHidden,
    /// No list of the functions that were made while the program ran was given.
    NoJitSymbols,
}

impl Problem {
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let path = path.to_path_buf();
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            _ => Self::Unreadable { path, reason: error.to_string() },
        }
    }

    pub(crate) fn damaged(error: impl std::fmt::Display) -> Self {
        Self::Damaged { reason: error.to_string() }
    }

    pub(crate) fn other_build(path: &Path, expected: &[u8], found: Option<&[u8]>) -> Self {
        Self::OtherBuild { path: path.into(), expected: hexadecimal(expected), found: found.map(hexadecimal) }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { path } => write!(f, "{} is not there", path.display()),
            Self::Deleted { path } => {
                write!(f, "{} was deleted, replaced or written to while the program ran", path.display())
            }
            Self::Unreadable { path, reason } => write!(f, "{} cannot be read: {reason}", path.display()),
            Self::NotAnObject { path } => write!(f, "{} is not an object file", path.display()),
            Self::OtherBuild { path, expected, found } => {
                let found = found.as_deref().unwrap_or("none");
                write!(f, "{} is not what ran: its build-id is {found}, not {expected}", path.display())
            }
            Self::OtherChecksum { path } => {
                write!(f, "{} belongs to another binary: its checksum differs", path.display())
            }
            Self::ForeignOwner { path, owner } => {
                write!(
                    f,
                    "{} was not read: it belongs to user {owner}, not to the binary's owner",
                    path.display()
                )
            }
            Self::NoDebugInformation => {
                f.write_str("no debug information: neither lines nor inlined functions")
            }
            Self::SplitDebugInformation => {
                f.write_str("its debug information is split (-gsplit-dwarf), which is not read for this")
            }
            Self::NoSymbols => f.write_str("no names of functions: it was stripped"),
            Self::MissingPart { path } => {
                write!(f, "{} is not there: it holds part of the debug information", path.display())
            }
            Self::Damaged { reason } => write!(f, "debug information cannot be read: {reason}"),
            Self::KernelSymbolsHidden => f.write_str("kernel symbols are hidden from this user"),
            Self::NoJitSymbols => f.write_str("no list of the functions made while the program ran"),
        }
    }
}

impl std::error::Error for Problem {}

/// Two digits for each byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
