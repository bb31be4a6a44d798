//! The names of files: what is in them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a file's content, which is its name in an archive; 64 small hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(String);

/// As many digits as are shown of an identifier at least.
const SHORT: usize = 6;

impl Id {
    /// The id of some content.
    pub fn of(content: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(content))
    }

    pub(crate) fn finish(hash: Sha256) -> Self {
        Self(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// All digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..SHORT]
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is no identifier.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no SHA-256 in small hexadecimal digits")]
pub struct NoId(String);

impl FromStr for Id {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        let is_digit = |letter: u8| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter);
        let is_id = text.len() == 64 && text.bytes().all(is_digit);
        if is_id { Ok(Self(text.to_owned())) } else { Err(NoId(text.to_owned())) }
    }
}

impl TryFrom<String> for Id {
    type Error = NoId;

    fn try_from(text: String) -> Result<Self, NoId> {
        text.parse()
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_sha256_of_the_content() {
        // As `printf abc | sha256sum` prints it.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Id::of(b"abc").as_str(), known);
        assert_eq!(known.parse::<Id>().unwrap(), Id::of(b"abc"));
        for text in ["", "ba78", &known.to_uppercase(), &known.replace('b', "g"), "../../etc/passwd"] {
            assert!(text.parse::<Id>().is_err(), "{text}");
        }
    }
}
