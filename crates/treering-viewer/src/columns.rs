//! Columns of numbers in the narrowest width that holds them.

use json_slabs::Builder;
use serde::Serialize;
use serde_json::{Value, json};

/// Puts a payload together: columns and texts go into slabs, everything else into the skeleton.
///
/// The only place that knows the container's crate, which is young.
#[derive(Default)]
pub(crate) struct Columns {
    builder: Builder<'static>,
}

impl Columns {
    /// A column of whole numbers. Those beyond 2^32 are stored as floating point numbers, which
    /// are exact up to 2^53; scripts have no others.
    pub(crate) fn add(&mut self, values: &[u64]) -> Value {
        let largest = values.iter().copied().max().unwrap_or(0);
        let slab = if largest <= u64::from(u8::MAX) {
            self.builder.add_slab_from_vec(values.iter().map(|&value| value as u8).collect::<Vec<_>>())
        } else if largest <= u64::from(u16::MAX) {
            self.builder.add_slab_from_vec(values.iter().map(|&value| value as u16).collect::<Vec<_>>())
        } else if largest <= u64::from(u32::MAX) {
            self.builder.add_slab_from_vec(values.iter().map(|&value| value as u32).collect::<Vec<_>>())
        } else {
            self.builder.add_slab_from_vec(values.iter().map(|&value| value as f64).collect::<Vec<_>>())
        };
        json!({ "$s": slab.0 })
    }

    /// A column of indexes.
    pub(crate) fn add_indexes(&mut self, values: impl IntoIterator<Item = u32>) -> Value {
        let values: Vec<u64> = values.into_iter().map(u64::from).collect();
        self.add(&values)
    }

    /// A column of shares; −1 for those that are not known.
    pub(crate) fn add_shares(&mut self, values: Vec<f32>) -> Value {
        json!({ "$s": self.builder.add_slab_from_vec(values).0 })
    }

    /// A part of the skeleton that is large, such as texts.
    pub(crate) fn add_json(&mut self, value: &impl Serialize) -> Value {
        let bytes = serde_json::to_vec(value).expect("values can be written");
        json!({ "$s": self.builder.add_json_slab(bytes).0 })
    }

    /// A text that is read when it is asked for: its number stands in the skeleton as any other.
    pub(crate) fn add_json_apart(&mut self, value: &Value) -> usize {
        let bytes = serde_json::to_vec(value).expect("values can be written");
        self.builder.add_json_slab(bytes).0
    }

    /// The container.
    pub(crate) fn finish(self, skeleton: &Value) -> Vec<u8> {
        self.builder.finish(&serde_json::to_vec(skeleton).expect("values can be written"))
    }
}
