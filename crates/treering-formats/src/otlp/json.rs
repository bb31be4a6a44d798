//! How OTLP/JSON writes what JSON has no place for: numbers of 64 bits as texts.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A number, or one as a text.
struct Number<T>(T);

impl<'de, T: FromStr> Deserialize<'de> for Number<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits<T>(PhantomData<T>);
        impl<T: FromStr> Digits<T> {
            fn parse<E: Error>(text: impl Display) -> Result<Number<T>, E> {
                let text = text.to_string();
                text.parse().map(Number).map_err(|_| E::custom(format!("{text} is no number here")))
            }
        }
        impl<T: FromStr> Visitor<'_> for Digits<T> {
            type Value = Number<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, or one as a text")
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Number<T>, E> {
                Self::parse(value)
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Number<T>, E> {
                Self::parse(value)
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Number<T>, E> {
                Self::parse(value)
            }
        }
        deserializer.deserialize_any(Digits(PhantomData))
    }
}

pub(super) fn number<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<T, D::Error> {
    Ok(Number::deserialize(deserializer)?.0)
}

pub(super) fn optional_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<Number<i64>>::deserialize(deserializer)?.map(|number| number.0))
}

pub(super) fn numbers<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Number<T>>::deserialize(deserializer)?.into_iter().map(|number| number.0).collect())
}

pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
    Ok(Vec::<String>::deserialize(deserializer)?.into_iter().map(String::into_bytes).collect())
}

/// Bytes, of which reading needs none.
pub(super) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    serde::de::IgnoredAny::deserialize(deserializer)?;
    Ok(Vec::new())
}
