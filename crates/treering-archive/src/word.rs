//! A word of a command, which need not be text.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::{Deserialize, Serialize};

/// A word of a command. In JSON it is a string, or, if it is not UTF-8, `{"hex": "..."}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Stored", try_from = "Stored")]
pub struct Word(pub OsString);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Bytes { hex: String },
}

impl From<Word> for Stored {
    fn from(Word(word): Word) -> Self {
        match word.into_string() {
            Ok(text) => Self::Text(text),
            Err(word) => {
                Self::Bytes { hex: word.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect() }
            }
        }
    }
}

impl TryFrom<Stored> for Word {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let hex = match stored {
            Stored::Text(text) => return Ok(Self(text.into())),
            Stored::Bytes { hex } => hex,
        };
        let wrong = || format!("{hex:?} is no bytes in hexadecimal digits");
        if !hex.is_ascii() || hex.len() % 2 != 0 {
            return Err(wrong());
        }
        let pairs = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
        let bytes: Result<Vec<u8>, _> = pairs.collect();
        bytes.map(|bytes| Self(OsString::from_vec(bytes))).map_err(|_| wrong())
    }
}

impl<T: AsRef<OsStr>> From<T> for Word {
    fn from(word: T) -> Self {
        Self(word.as_ref().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_text_are_kept_to_the_byte() {
        let words = [OsString::from("it's a\nword"), OsString::from_vec(vec![b'a', 0xff, b'/'])].map(Word);
        let text = serde_json::to_string(&words).unwrap();
        assert_eq!(text, r#"["it's a\nword",{"hex":"61ff2f"}]"#);
        assert_eq!(serde_json::from_str::<Vec<Word>>(&text).unwrap(), words);
        for wrong in [r#"{"hex":"6"}"#, r#"{"hex":"xy"}"#, r#"{"hex":"ä"}"#, "7"] {
            assert!(serde_json::from_str::<Word>(wrong).is_err(), "{wrong}");
        }
    }
}
