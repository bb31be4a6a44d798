//! Why a file of whatever format could not be read.

use std::fmt;

use crate::format::with_formats;
use crate::{Foreign, Format, GzipError, ReadError};

macro_rules! declare_error {
    ($($(#[$doc:meta])* $format:ident in $module:ident $(($error:ident))?,)*) => {
        /// Why a file could not be read.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Error {
            /// It has no content.
            Empty,
            /// It is of a known sort that is no profile, or one that is not read.
            Foreign(Foreign),
            /// It is gzip data that holds a file of a known sort that is not read.
            CompressedForeign(Foreign),
            /// It is gzip data that cannot be decompressed.
            Gzip(GzipError),
            /// It is of no known sort.
            Unknown {
                /// Its first bytes, at most eight.
                start: Vec<u8>,
            },
            /// Something is wrong with a file of a format.
            Read {
                /// The format.
                format: Format,
                /// The problem, and its place.
                error: ReadError,
            },
            $($(
                #[doc = concat!("Something is wrong with a file of the format [`Format::", stringify!($format), "`].")]
                $format(crate::$module::$error),
            )?)*
        }

        impl Error {
            /// The format that it was taken for, if it was taken for one.
            pub fn format(&self) -> Option<Format> {
                match self {
                    Self::Read { format, .. } => Some(*format),
                    $($(Self::$format(error) => {
                        let _: &crate::$module::$error = error;
                        Some(Format::$format)
                    })?)*
                    Self::Empty
                    | Self::Foreign(_)
                    | Self::CompressedForeign(_)
                    | Self::Gzip(_)
                    | Self::Unknown { .. } => None,
                }
            }
        }

        impl fmt::Display for Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Empty => f.write_str("the file is empty"),
                    Self::Foreign(foreign) => write!(f, "not a profile that can be read: it is {foreign}"),
                    Self::CompressedForeign(foreign) => {
                        write!(f, "not a profile that can be read: compressed with gzip, it is {foreign}")
                    }
                    Self::Gzip(error) => error.fmt(f),
                    Self::Unknown { start } => {
                        let start = start.escape_ascii();
                        write!(f, "not a profile that can be read: it starts with \"{start}\"")
                    }
                    Self::Read { error, .. } => error.fmt(f),
                    $($(Self::$format(error) => <crate::$module::$error as fmt::Display>::fmt(error, f),)?)*
                }
            }
        }

        $($(
            impl From<crate::$module::$error> for Error {
                fn from(error: crate::$module::$error) -> Self {
                    Self::$format(error)
                }
            }
        )?)*
    };
}
with_formats!(declare_error);

impl std::error::Error for Error {}

impl ReadError {
    /// The error of a file that was taken for one of a format.
    pub fn of(self, format: Format) -> Error {
        Error::Read { format, error: self }
    }
}

impl From<GzipError> for Error {
    fn from(error: GzipError) -> Self {
        Self::Gzip(error)
    }
}
