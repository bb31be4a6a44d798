//! The schema up to v1.7, and some weeks of August 2025, in which samples name a part of a list of locations.

use prost::Message;

use super::message::{
    self, AnyValue, Attribute, Function, KeyValue, Line, Mapping, Resource, Stack, ValueType,
};

/// A file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfilesData {
    #[prost(message, repeated, tag = "1")]
    resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    dictionary: Option<Dictionary>,
}

#[derive(Clone, PartialEq, Message)]
struct Dictionary {
    #[prost(message, repeated, tag = "1")]
    mapping_table: Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    location_table: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    function_table: Vec<Function>,
    #[prost(bytes = "vec", repeated, tag = "5")]
    string_table: Vec<Vec<u8>>,
    /// Up to v1.7 with their key as a text, then with its index.
    #[prost(bytes = "vec", repeated, tag = "6")]
    attribute_table: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_profiles: Vec<ScopeProfiles>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    scope: Option<message::Scope>,
    #[prost(message, repeated, tag = "2")]
    profiles: Vec<Profile>,
}

/// Times have been of two types, and attributes of profiles in two places: neither are read.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(int32, repeated, tag = "3")]
    location_indices: Vec<i32>,
    #[prost(message, optional, tag = "6")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "7")]
    period: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(int32, tag = "1")]
    locations_start_index: i32,
    #[prost(int32, tag = "2")]
    locations_length: i32,
    #[prost(int64, repeated, tag = "3")]
    values: Vec<i64>,
    #[prost(int32, repeated, tag = "4")]
    attribute_indices: Vec<i32>,
    #[prost(int32, tag = "5")]
    link_index: i32,
    #[prost(uint64, repeated, tag = "6")]
    timestamps: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    /// Up to v1.7 the first mapping was one.
    #[prost(int32, optional, tag = "1")]
    mapping_index: Option<i32>,
    #[prost(uint64, tag = "2")]
    address: u64,
    #[prost(message, repeated, tag = "3")]
    lines: Vec<Line>,
    #[prost(int32, repeated, tag = "5")]
    attribute_indices: Vec<i32>,
}

impl ProfilesData {
    /// The same by the schema of today; nothing if a sample names locations that are not there.
    pub(super) fn into_current(self) -> Option<message::ProfilesData> {
        let mut dictionary = self.dictionary.unwrap_or_default();
        let none = i32::try_from(dictionary.mapping_table.len()).ok()?;
        dictionary.mapping_table.push(Mapping::default());
        let locations = dictionary.location_table.into_iter();
        let mut current = message::Dictionary {
            mapping_table: dictionary.mapping_table,
            location_table: locations.map(|location| location.into_current(none)).collect(),
            function_table: dictionary.function_table,
            string_table: dictionary.string_table,
            attribute_table: Vec::new(),
            stack_table: vec![Stack::default()],
        };
        for bytes in &dictionary.attribute_table {
            let attribute = attribute(bytes, &mut current.string_table);
            current.attribute_table.push(attribute);
        }
        let mut resource_profiles = Vec::new();
        for resource in self.resource_profiles {
            let mut scope_profiles = Vec::new();
            for scope in resource.scope_profiles {
                let mut profiles = Vec::new();
                for profile in scope.profiles {
                    profile.into_current(&mut current.stack_table, &mut profiles)?;
                }
                scope_profiles.push(message::ScopeProfiles { scope: scope.scope, profiles });
            }
            resource_profiles.push(message::ResourceProfiles { resource: resource.resource, scope_profiles });
        }
        Some(message::ProfilesData { resource_profiles, dictionary: Some(current) })
    }
}

/// An attribute whose key is an index or a text.
fn attribute(bytes: &[u8], strings: &mut Vec<Vec<u8>>) -> Attribute {
    if let Ok(attribute) = Attribute::decode(bytes) {
        return attribute;
    }
    let KeyValue { key, value } = KeyValue::decode(bytes).unwrap_or_default();
    strings.push(key.into_bytes());
    let value: Option<AnyValue> = value;
    Attribute { key_strindex: i32::try_from(strings.len() - 1).unwrap_or(0), value }
}

impl Location {
    /// With the index of what stands for no mapping.
    fn into_current(self, none: i32) -> message::Location {
        let Self { mapping_index, address, lines, attribute_indices } = self;
        let mapping_index = mapping_index.unwrap_or(none);
        message::Location { mapping_index, address, lines, attribute_indices }
    }
}

impl Profile {
    /// One profile for each type of its samples.
    fn into_current(self, stacks: &mut Vec<Stack>, profiles: &mut Vec<message::Profile>) -> Option<()> {
        let types = self.sample_type.len();
        let first = profiles.len();
        profiles.extend(self.sample_type.iter().map(|sample_type| message::Profile {
            sample_type: Some(*sample_type),
            period_type: self.period_type,
            period: self.period,
            ..message::Profile::default()
        }));
        for sample in self.sample {
            let start = usize::try_from(sample.locations_start_index).ok()?;
            let length = usize::try_from(sample.locations_length).ok()?;
            let locations = self.location_indices.get(start..start.checked_add(length)?)?;
            let stack_index = i32::try_from(stacks.len()).ok()?;
            stacks.push(Stack { location_indices: locations.to_vec() });
            for (at, profile) in profiles[first..].iter_mut().enumerate() {
                // With one type there is a value for each time stamp, with several one for each type.
                let values = match types {
                    1 => sample.values.clone(),
                    _ => sample.values.get(at).copied().into_iter().collect(),
                };
                profile.samples.push(message::Sample {
                    stack_index,
                    attribute_indices: sample.attribute_indices.clone(),
                    link_index: sample.link_index,
                    values,
                    timestamps_unix_nano: sample.timestamps.clone(),
                });
            }
        }
        Some(())
    }
}
