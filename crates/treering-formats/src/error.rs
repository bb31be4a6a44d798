//! Why a file of whatever format could not be read.

use std::fmt;

use crate::format::with_formats;
use crate::{
    Foreign, Format, GzipError, austin, callgrind, cbs_xml, chrome_trace, cpuprofile, firefox, folded, gmon,
    gperftools, gprof, jfr_text, live, octave, otlp, perf_data, perf_script, pprof, prolog, pstats,
    pyinstrument, speedscope, stackprof, swi_profile, trg, v8_log,
};

macro_rules! declare_error {
    ($($(#[$doc:meta])* $format:ident in $module:ident,)*) => {
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
            $(
                #[doc = concat!("Something is wrong with a file of the format [`Format::", stringify!($format), "`].")]
                $format($module::ReadError),
            )*
        }

        impl Error {
            /// The format that it was taken for, if it was taken for one.
            pub fn format(&self) -> Option<Format> {
                match self {
                    $(Self::$format(_) => Some(Format::$format),)*
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
                    $(Self::$format(error) => error.fmt(f),)*
                }
            }
        }

        $(
            impl From<$module::ReadError> for Error {
                fn from(error: $module::ReadError) -> Self {
                    Self::$format(error)
                }
            }
        )*
    };
}
with_formats!(declare_error);

impl std::error::Error for Error {}

impl From<GzipError> for Error {
    fn from(error: GzipError) -> Self {
        Self::Gzip(error)
    }
}
