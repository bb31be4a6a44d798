//! The columns that entries of frames are stored in: how each is written, read, shown and described.

use std::ops::Deref;

use serde_json::{Value, json};
use treering_profile::{
    BlockId, BranchKind, CodeAddress, CodeSpaceId, FunctionId, LineId, MarkKind, MetricId, ModuleId,
    ModuleKind, NodeId, ProcessId, RunId, StatedAddress, StringId, ThreadId, UncountedReason, WakerKind,
};

use crate::trg::Damage;
use crate::trg::varint::{Decoder, Encoder, narrow, text};

/// A way to store the values of one field of all entries.
pub(crate) trait Column<T> {
    fn encode<'a>(to: &mut Encoder, values: impl Iterator<Item = &'a T> + Clone)
    where
        T: 'a;

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<T>, Damage>;

    /// The value in JSON.
    fn show(value: &T) -> Value;

    /// The words of the format's page behind the name of the field.
    fn described() -> String;
}

/// A varint each.
pub(crate) enum Plain {}

/// The difference from the value before.
pub(crate) enum Delta {}

/// A byte each.
pub(crate) enum Bytes {}

/// Eight bytes each.
pub(crate) enum Float {}

/// Bytes behind their number, shown as hexadecimal digits.
pub(crate) enum Block {}

/// Bytes behind their number, shown as numbers.
pub(crate) enum Numbers {}

/// UTF-8 behind its number of bytes.
pub(crate) enum Text {}

/// The space and the address of code, each as a column of differences.
pub(crate) enum Place {}

/// A power of two below 2^64, by its exponent.
pub(crate) enum Bucket {}

/// Values of metrics: how many in each entry, then all metrics, then all values.
pub(crate) enum Values {}

/// The numbers that a varint can hold.
pub(crate) trait Number: Sized {
    /// The words of the format's page.
    const DESCRIBED: &'static str = "";

    fn stored(&self) -> u64;
    fn of_stored(stored: u64) -> Result<Self, Damage>;
    fn show(&self) -> Value;
}

macro_rules! numbers {
    ($($number:ty: $show:expr, $stored:expr, $of_stored:expr;)*) => {$(
        impl Number for $number {
            #[inline]
            fn stored(&self) -> u64 {
                let stored: fn(&Self) -> u64 = $stored;
                stored(self)
            }

            #[inline]
            fn of_stored(stored: u64) -> Result<Self, Damage> {
                let of_stored: fn(u64) -> Result<Self, Damage> = $of_stored;
                of_stored(stored)
            }

            fn show(&self) -> Value {
                let show: fn(&Self) -> Value = $show;
                show(self)
            }
        }
    )*};
}

numbers! {
    u64: |number| json!(number), |number| *number, Ok;
    u32: |number| json!(number), |number| u64::from(*number), narrow;
    i64: |number| json!(number), |number| number.cast_unsigned(), |stored| Ok(stored.cast_signed());
    StatedAddress: |address| json!(address.0), |address| address.0, |stored| Ok(Self(stored));
}

impl Number for Option<u64> {
    const DESCRIBED: &'static str = " plus 1 or 0";

    #[inline]
    fn stored(&self) -> u64 {
        self.map_or(0, |number| number.saturating_add(1))
    }

    #[inline]
    fn of_stored(stored: u64) -> Result<Self, Damage> {
        Ok(stored.checked_sub(1))
    }

    fn show(&self) -> Value {
        json!(self)
    }
}

/// Indexes of tables, and those that may be missing, which are stored as the index plus 1, or 0.
macro_rules! indexes {
    ($($index:ident)*) => {$(
        numbers! {
            $index: |index| json!(index.raw()), |index| index.raw().into(), |stored| narrow(stored).map(Self::new);
        }

        impl Number for Option<$index> {
            const DESCRIBED: &'static str = " plus 1 or 0";

            #[inline]
            fn stored(&self) -> u64 {
                self.map_or(0, |index| u64::from(index.raw()) + 1)
            }

            #[inline]
            fn of_stored(stored: u64) -> Result<Self, Damage> {
                Ok(stored.checked_sub(1).map(narrow).transpose()?.map($index::new))
            }

            fn show(&self) -> Value {
                json!(self.map($index::raw))
            }
        }
    )*};
}

indexes! {
    StringId ModuleId FunctionId LineId RunId ProcessId ThreadId NodeId MetricId CodeSpaceId BlockId
}

impl<T: Number> Column<T> for Plain {
    fn encode<'a>(to: &mut Encoder, values: impl Iterator<Item = &'a T> + Clone)
    where
        T: 'a,
    {
        to.column(values.map(|value| value.stored()));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<T>, Damage> {
        from.column(count, T::of_stored)
    }

    fn show(value: &T) -> Value {
        value.show()
    }

    fn described() -> String {
        T::DESCRIBED.to_owned()
    }
}

impl<T: Number> Column<T> for Delta {
    fn encode<'a>(to: &mut Encoder, values: impl Iterator<Item = &'a T> + Clone)
    where
        T: 'a,
    {
        to.delta_column(values.map(|value| value.stored()));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<T>, Damage> {
        from.delta_column(count, T::of_stored)
    }

    fn show(value: &T) -> Value {
        value.show()
    }

    fn described() -> String {
        format!("{} (differences)", T::DESCRIBED)
    }
}

/// The values that a byte stands for.
pub(crate) trait OneByte: Copy {
    fn number(self) -> u8;
    fn of_number(number: u8) -> Result<Self, Damage>;
    fn show(self) -> Value;
}

impl OneByte for ModuleKind {
    fn number(self) -> u8 {
        self as u8
    }

    fn of_number(number: u8) -> Result<Self, Damage> {
        Self::from_number(number).ok_or(Damage::Content("a module is of an unknown kind"))
    }

    fn show(self) -> Value {
        json!(self as u8)
    }
}

impl OneByte for BranchKind {
    fn number(self) -> u8 {
        self as u8
    }

    fn of_number(number: u8) -> Result<Self, Damage> {
        Self::from_number(number).ok_or(Damage::Content("a kind of branch is unknown"))
    }

    fn show(self) -> Value {
        json!(self.as_str())
    }
}

impl OneByte for UncountedReason {
    fn number(self) -> u8 {
        self as u8
    }

    fn of_number(number: u8) -> Result<Self, Damage> {
        Ok(Self::from_number(number).unwrap_or(Self::Other))
    }

    fn show(self) -> Value {
        json!(self.as_str())
    }
}

impl OneByte for MarkKind {
    fn number(self) -> u8 {
        self as u8
    }

    fn of_number(number: u8) -> Result<Self, Damage> {
        [Self::Mark, Self::Exec]
            .into_iter()
            .find(|&kind| kind as u8 == number)
            .ok_or(Damage::Content("a mark is of an unknown kind"))
    }

    fn show(self) -> Value {
        json!(self as u8)
    }
}

impl OneByte for WakerKind {
    fn number(self) -> u8 {
        self as u8
    }

    fn of_number(number: u8) -> Result<Self, Damage> {
        let mut kinds = Self::ALL.into_iter();
        kinds.find(|&kind| kind as u8 == number).ok_or(Damage::Content("a waker is of an unknown kind"))
    }

    fn show(self) -> Value {
        json!(self.as_str())
    }
}

impl OneByte for bool {
    fn number(self) -> u8 {
        self.into()
    }

    fn of_number(number: u8) -> Result<Self, Damage> {
        Ok(number != 0)
    }

    fn show(self) -> Value {
        json!(self)
    }
}

impl<T: OneByte> Column<T> for Bytes {
    fn encode<'a>(to: &mut Encoder, values: impl Iterator<Item = &'a T> + Clone)
    where
        T: 'a,
    {
        values.for_each(|value| to.byte(value.number()));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<T>, Damage> {
        from.raw(count)?.iter().map(|&byte| T::of_number(byte)).collect()
    }

    fn show(value: &T) -> Value {
        value.show()
    }

    fn described() -> String {
        " (a byte)".to_owned()
    }
}

impl Column<f64> for Float {
    fn encode<'a>(to: &mut Encoder, values: impl Iterator<Item = &'a f64> + Clone) {
        values.for_each(|value| to.float(*value));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<f64>, Damage> {
        from.floats(count)
    }

    fn show(value: &f64) -> Value {
        json!(value)
    }

    fn described() -> String {
        " (floats)".to_owned()
    }
}

/// Columns of bytes that are stored alike and shown otherwise.
macro_rules! blocks {
    ($($column:ident<$value:ty>: $bytes:expr, $read:expr, $show:expr, $described:literal;)*) => {$(
        impl Column<$value> for $column {
            fn encode<'a>(to: &mut Encoder, values: impl Iterator<Item = &'a $value> + Clone) {
                let bytes: fn(&$value) -> &[u8] = $bytes;
                values.for_each(|value| to.block(bytes(value)));
            }

            fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<$value>, Damage> {
                let read: fn(&[u8]) -> Result<$value, Damage> = $read;
                (0..count).map(|_| read(from.block()?)).collect()
            }

            fn show(value: &$value) -> Value {
                let show: fn(&$value) -> Value = $show;
                show(value)
            }

            fn described() -> String {
                $described.to_owned()
            }
        }
    )*};
}

blocks! {
    Block<Box<[u8]>>: |bytes| bytes, |bytes| Ok(bytes.into()), |bytes| json!(hexadecimal(bytes)),
        " (of each its length and its bytes)";
    Text<String>: |text| text.as_bytes(), |bytes| Ok(text(bytes)?.to_owned()), |text| json!(text), " (a text)";
    Text<Box<str>>: |text| text.as_bytes(), |bytes| Ok(text(bytes)?.into()), |text| json!(text), " (a text)";
}

impl<T: Deref<Target = [u8]> + for<'b> From<&'b [u8]>> Column<T> for Numbers {
    fn encode<'a>(to: &mut Encoder, values: impl Iterator<Item = &'a T> + Clone)
    where
        T: 'a,
    {
        values.for_each(|value| to.block(value));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<T>, Damage> {
        (0..count).map(|_| Ok(from.block()?.into())).collect()
    }

    fn show(value: &T) -> Value {
        json!(value[..])
    }

    fn described() -> String {
        " (of each how many, and a byte for each)".to_owned()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Column<CodeAddress> for Place {
    fn encode<'a>(to: &mut Encoder, places: impl Iterator<Item = &'a CodeAddress> + Clone) {
        Delta::encode(to, places.clone().map(|place| &place.space));
        Delta::encode(to, places.map(|place| &place.address));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<CodeAddress>, Damage> {
        let spaces: Vec<CodeSpaceId> = Delta::decode(from, count)?;
        let addresses: Vec<StatedAddress> = Delta::decode(from, count)?;
        from.scratch::<CodeAddress>(count)?;
        Ok(spaces.into_iter().zip(addresses).map(|(space, address)| CodeAddress { space, address }).collect())
    }

    fn show(place: &CodeAddress) -> Value {
        json!([place.space.raw(), place.address])
    }

    fn described() -> String {
        " as space and address (both differences)".to_owned()
    }
}

impl Column<Option<CodeAddress>> for Place {
    fn encode<'a>(to: &mut Encoder, places: impl Iterator<Item = &'a Option<CodeAddress>> + Clone) {
        to.delta_column(places.clone().map(|place| place.map(|place| place.space).stored()));
        to.delta_column(places.map(|place| place.map_or(0, |place| place.address.0)));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<Option<CodeAddress>>, Damage> {
        let spaces: Vec<Option<CodeSpaceId>> = Delta::decode(from, count)?;
        let addresses: Vec<StatedAddress> = Delta::decode(from, count)?;
        from.scratch::<Option<CodeAddress>>(count)?;
        let place =
            |(space, address): (Option<CodeSpaceId>, _)| space.map(|space| CodeAddress { space, address });
        Ok(spaces.into_iter().zip(addresses).map(place).collect())
    }

    fn show(place: &Option<CodeAddress>) -> Value {
        json!(place.as_ref().map(<Self as Column<CodeAddress>>::show))
    }

    fn described() -> String {
        " as space plus 1 or 0 and address (both differences)".to_owned()
    }
}

impl Column<u8> for Bucket {
    fn encode<'a>(to: &mut Encoder, values: impl Iterator<Item = &'a u8> + Clone) {
        to.column(values.map(|value| (*value).into()));
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<u8>, Damage> {
        from.column(count, |bucket| {
            let bucket = u8::try_from(bucket).ok().filter(|&bucket| bucket < 64);
            bucket.ok_or(Damage::Content("an argument is larger than any can be"))
        })
    }

    fn show(value: &u8) -> Value {
        json!(value)
    }

    fn described() -> String {
        String::new()
    }
}

impl Column<Vec<(MetricId, u64)>> for Values {
    fn encode<'a>(to: &mut Encoder, lists: impl Iterator<Item = &'a Vec<(MetricId, u64)>> + Clone) {
        to.column(lists.clone().map(|list| list.len() as u64));
        for list in lists.clone() {
            to.column(list.iter().map(|(metric, _)| metric.raw().into()));
        }
        for list in lists {
            to.column(list.iter().map(|(_, value)| *value));
        }
    }

    fn decode(from: &mut Decoder<'_>, count: usize) -> Result<Vec<Vec<(MetricId, u64)>>, Damage> {
        let widths: Vec<u32> = Plain::decode(from, count)?;
        let values: u64 = widths.iter().map(|&width| u64::from(width)).sum();
        let values = usize::try_from(values).map_err(|_| Damage::Content("there are too many values"))?;
        widths.iter().try_for_each(|&width| from.boxed(width as usize * size_of::<(MetricId, u64)>()))?;
        from.scratch::<Vec<(MetricId, u64)>>(count)?;
        let metrics: Vec<MetricId> = Plain::decode(from, values)?;
        let mut values = metrics.into_iter().zip(from.column(values, Ok)?);
        Ok(widths.iter().map(|&width| values.by_ref().take(width as usize).collect()).collect())
    }

    fn show(list: &Vec<(MetricId, u64)>) -> Value {
        list.iter().map(|(metric, value)| json!([metric.raw(), value])).collect()
    }

    fn described() -> String {
        ": how many of each, then the metrics of all, then the values of all".to_owned()
    }
}
