//! Indexes into a profile's tables, each a type of its own.

use std::num::NonZeroU32;

/// Defines a 32-bit index type; the documentation says what it indexes.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The index as stored.
            pub const fn new(index: u32) -> Self {
                Self(index)
            }

            /// The index of an entry of a `Vec`.
            ///
            /// # Panics
            /// When the table holds more than 2^32 entries, which is over 64 GB of any of ours.
            pub fn from_usize(index: usize) -> Self {
                Self(u32::try_from(index).expect("a profile table holds at most 2^32 entries"))
            }

            /// The index as stored.
            pub const fn raw(self) -> u32 {
                self.0
            }

            /// The index for use with a slice.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<$name> for usize {
            fn from(id: $name) -> usize {
                id.index()
            }
        }
    };
}

index! {
    /// A string in [`Profile::strings`](crate::Profile::strings). String 0 is the empty string.
    StringId
}
index! {
    /// A function in [`Profile::functions`](crate::Profile::functions). Function 0 is the root.
    FunctionId
}
index! {
    /// A source line in [`Profile::lines`](crate::Profile::lines).
    LineId
}
index! {
    /// A binary or other body of code in [`Profile::modules`](crate::Profile::modules).
    ModuleId
}
index! {
    /// A column of costs, described in [`Profile::metrics`](crate::Profile::metrics).
    MetricId
}
index! {
    /// A node of [`Profile::tree`](crate::Profile::tree).
    NodeId
}
index! {
    /// A run in [`Profile::runs`](crate::Profile::runs).
    RunId
}
index! {
    /// A process in [`Profile::processes`](crate::Profile::processes).
    ProcessId
}
index! {
    /// A thread in [`Profile::threads`](crate::Profile::threads).
    ThreadId
}

/// The place of code addresses: an entry of [`CodeCounts::spaces`](crate::CodeCounts::spaces).
///
/// Kept as one more than the index, so that an address that may be missing takes no more room: tables of branches,
/// which have two each, are large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeSpaceId(NonZeroU32);

impl CodeSpaceId {
    /// The index as stored. 2^32 − 1 becomes 2^32 − 2: no table has either.
    pub const fn new(index: u32) -> Self {
        match NonZeroU32::new(index.wrapping_add(1)) {
            Some(more) => Self(more),
            None => Self(NonZeroU32::MAX),
        }
    }

    /// The index of an entry of a `Vec`.
    ///
    /// # Panics
    /// When the table holds more than 2^32 entries.
    pub fn from_usize(index: usize) -> Self {
        Self::new(u32::try_from(index).expect("a profile table holds at most 2^32 entries"))
    }

    /// The index as stored.
    pub const fn raw(self) -> u32 {
        self.0.get() - 1
    }

    /// The index for use with a slice.
    pub const fn index(self) -> usize {
        self.raw() as usize
    }
}

impl From<CodeSpaceId> for usize {
    fn from(id: CodeSpaceId) -> usize {
        id.index()
    }
}

index! {
    /// A basic block in [`CodeCounts::blocks`](crate::CodeCounts::blocks).
    BlockId
}
