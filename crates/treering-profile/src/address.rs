//! The three kinds of address, which are easily mixed up and must not be.

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl std::fmt::LowerHex for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

address! {
    /// An address in a running process.
    RuntimeAddress
}
address! {
    /// An address as written in the binary: a symbol's `st_value`, a segment's `p_vaddr`,
    /// a DWARF `DW_AT_low_pc`.
    StatedAddress
}
address! {
    /// A position in a file, as in a segment's `p_offset` or a mapping's page offset.
    FileOffset
}
