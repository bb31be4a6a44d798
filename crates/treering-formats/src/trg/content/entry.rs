//! Entries of frames, whose fields are declared once: how they are written, read, shown and described follows.

use serde::Serializer;
use serde::ser::{Serialize, SerializeMap as _};
use serde_json::{Map, Value, json};
use treering_profile::{MetricId, NodeId};

use super::column::{Column as _, Delta};
use crate::trg::Damage;
use crate::trg::varint::{Decoder, Encoder};

/// An entry of a frame.
pub(crate) trait Entry: Sized {
    /// The name of a list of them, where it stands beside a metric.
    const LIST: &'static str = "rows";

    /// Writes entries behind their number.
    fn encode<'a>(to: &mut Encoder, entries: impl Iterator<Item = &'a Self> + Clone)
    where
        Self: 'a;

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, Damage>;

    /// Takes the memory of so many entries, before they are made.
    fn announce(from: &mut Decoder<'_>, count: usize) -> Result<(), Damage> {
        from.rows::<Self>(count)
    }

    fn show(&self) -> Value;

    /// The fields as the page of the format describes them.
    #[cfg_attr(not(test), allow(dead_code, reason = "a test compares it with the page"))]
    fn described() -> String;
}

/// An entry shown with the names of its fields.
pub(super) fn object(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// An entry shown as a list of its fields.
pub(super) fn list(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    fields.into_iter().map(|(_, value)| value).collect()
}

/// Declares an entry: how it is shown, how entries are stored, and its fields in the order in which they are stored, each
/// with its column and, where that is not the field's, its name in JSON. Stored as `columns`, each field of all entries
/// comes before the next field; stored as `each`, each entry comes before the next entry.
macro_rules! entry {
    ($entry:ident: $shape:ident, $order:ident { $($field:ident: $column:ident $(as $shown:literal)?),* $(,)? }) => {
        impl Entry for $entry {
            fn encode<'a>(to: &mut Encoder, entries: impl Iterator<Item = &'a Self> + Clone) {
                entry!(@encode $order to, entries, $($field: $column),*);
            }

            fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, Damage> {
                entry!(@decode $order from, count, $($field: $column),*)
            }

            fn show(&self) -> Value {
                entry::$shape([$(([$($shown,)? stringify!($field)][0], $column::show(&self.$field))),*])
            }

            fn described() -> String {
                fn of<T, C: Column<T>>(_: fn(&$entry) -> &T, _: PhantomData<C>) -> String {
                    C::described()
                }
                let fields = [$(
                    stringify!($field).replace('_', " ") + &of(|entry| &entry.$field, PhantomData::<$column>)
                ),*];
                let order = if stringify!($order) == "each" { "for each" } else { "columns" };
                format!("{order}: {}", fields.join(", "))
            }
        }
    };
    (@encode columns $to:ident, $entries:ident, $($field:ident: $column:ident),*) => {
        $($column::encode($to, $entries.clone().map(|entry| &entry.$field));)*
    };
    (@encode each $to:ident, $entries:ident, $($field:ident: $column:ident),*) => {
        for entry in $entries {
            $($column::encode($to, std::iter::once(&entry.$field));)*
        }
    };
    (@decode columns $from:ident, $count:ident, $($field:ident: $column:ident),*) => {{
        $(let mut $field = $column::decode($from, $count)?.into_iter();)*
        (0..$count).map(|_| Ok(Self { $($field: $field.next().ok_or(CUT_SHORT)?),* })).collect()
    }};
    (@decode each $from:ident, $count:ident, $($field:ident: $column:ident),*) => {
        (0..$count).map(|_| Ok(Self { $($field: $column::decode($from, 1)?.pop().ok_or(CUT_SHORT)?),* })).collect()
    };
}
pub(super) use entry;

/// Nodes, each with a statement about it.
pub(crate) type Rows<T> = Vec<(NodeId, T)>;

impl<T: Entry> Entry for (NodeId, T) {
    const LIST: &'static str = "nodes";

    fn encode<'a>(to: &mut Encoder, entries: impl Iterator<Item = &'a Self> + Clone)
    where
        Self: 'a,
    {
        Delta::encode(to, entries.clone().map(|(node, _)| node));
        T::encode(to, entries.map(|(_, row)| row));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, Damage> {
        let nodes: Vec<NodeId> = Delta::decode(from, count)?;
        Ok(nodes.into_iter().zip(T::decode(from, count)?).collect())
    }

    /// They become tables, which count their memory themselves.
    fn announce(from: &mut Decoder<'_>, count: usize) -> Result<(), Damage> {
        from.scratch::<Self>(count)
    }

    fn show(&self) -> Value {
        json!([self.0.raw(), self.1.show()])
    }

    fn described() -> String {
        T::described().replacen("columns: ", "columns: node (differences), ", 1)
    }
}

/// The content of a frame.
pub(crate) trait Frame: Sized {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damage>;

    fn show<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;

    /// The payload as the page of the format describes it; nothing where the page has its own words.
    #[cfg_attr(not(test), allow(dead_code, reason = "a test compares it with the page"))]
    fn described() -> Option<String> {
        None
    }
}

/// A piece of a table: entries `first`, `first + 1` and so on.
#[derive(Debug)]
pub(crate) struct Table<T> {
    pub(crate) first: u64,
    pub(crate) entries: Vec<T>,
}

/// Rows that are measured in one metric.
#[derive(Debug)]
pub(crate) struct InMetric<T> {
    pub(crate) metric: MetricId,
    pub(crate) rows: Vec<T>,
}

pub(crate) fn encode_table<T: Entry>(to: &mut Encoder, first: usize, entries: &[T]) {
    to.number(first as u64);
    encode_rows(to, entries);
}

pub(crate) fn encode_in_metric<T: Entry>(to: &mut Encoder, metric: MetricId, rows: &[T]) {
    to.number(metric.raw().into());
    encode_rows(to, rows);
}

pub(crate) fn encode_rows<T: Entry>(to: &mut Encoder, rows: &[T]) {
    to.number(rows.len() as u64);
    T::encode(to, rows.iter());
}

impl<T: Entry> Frame for Vec<T> {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damage> {
        let count = from.count()?;
        T::announce(from, count)?;
        T::decode(from, count)
    }

    fn show<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(T::show))
    }

    fn described() -> Option<String> {
        Some(format!("count; {}", T::described()))
    }
}

impl<T: Entry> Frame for Table<T> {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damage> {
        Ok(Self { first: from.number()?, entries: Frame::decode(from)? })
    }

    fn show<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        pair(to, ("entries", &Each(&self.entries, T::show)), ("first", &self.first))
    }

    fn described() -> Option<String> {
        Some(format!("first, count; {}", T::described()))
    }
}

impl<T: Entry> Frame for InMetric<T> {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damage> {
        Ok(Self { metric: MetricId::new(from.number32()?), rows: Frame::decode(from)? })
    }

    fn show<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        pair(to, ("metric", &self.metric.raw()), (T::LIST, &Each(&self.rows, T::show)))
    }

    fn described() -> Option<String> {
        Some(format!("metric, count; {}", T::described()))
    }
}

/// Entries, each turned into JSON when it is written: a frame of millions takes no memory for each.
pub(super) struct Each<'a, T, F>(pub(super) &'a [T], pub(super) F);

impl<T, J: Serialize, F: Fn(&T) -> J> Serialize for Each<'_, T, F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(&self.1))
    }
}

/// An object of two members.
pub(super) fn pair<S: Serializer>(
    to: S,
    first: (&str, &impl Serialize),
    second: (&str, &impl Serialize),
) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(2))?;
    map.serialize_entry(first.0, first.1)?;
    map.serialize_entry(second.0, second.1)?;
    map.end()
}
