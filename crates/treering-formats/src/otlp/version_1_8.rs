//! The schema of v1.8, of September 2025: that of today with other numbers for the fields of samples.

use prost::Message;

use super::message::{self, Dictionary, Resource, Scope, ValueType};

/// A file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfilesData {
    #[prost(message, repeated, tag = "1")]
    resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    dictionary: Option<Dictionary>,
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
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    profiles: Vec<Profile>,
}

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, optional, tag = "1")]
    sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    period: i64,
    #[prost(int32, repeated, tag = "12")]
    attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(int32, tag = "1")]
    stack_index: i32,
    #[prost(int64, repeated, tag = "2")]
    values: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    attribute_indices: Vec<i32>,
    #[prost(int32, tag = "4")]
    link_index: i32,
    #[prost(fixed64, repeated, tag = "5")]
    timestamps_unix_nano: Vec<u64>,
}

impl ProfilesData {
    /// The same by the schema of today.
    pub(super) fn into_current(self) -> message::ProfilesData {
        let resources = self.resource_profiles.into_iter().map(|resource| message::ResourceProfiles {
            resource: resource.resource,
            scope_profiles: resource.scope_profiles.into_iter().map(ScopeProfiles::into_current).collect(),
        });
        message::ProfilesData { resource_profiles: resources.collect(), dictionary: self.dictionary }
    }
}

impl ScopeProfiles {
    fn into_current(self) -> message::ScopeProfiles {
        let profiles = self.profiles.into_iter().map(Profile::into_current).collect();
        message::ScopeProfiles { scope: self.scope, profiles }
    }
}

impl Profile {
    fn into_current(self) -> message::Profile {
        let samples = self.samples.into_iter().map(|sample| message::Sample {
            stack_index: sample.stack_index,
            attribute_indices: sample.attribute_indices,
            link_index: sample.link_index,
            values: sample.values,
            timestamps_unix_nano: sample.timestamps_unix_nano,
        });
        message::Profile {
            sample_type: self.sample_type,
            samples: samples.collect(),
            time_unix_nano: self.time_unix_nano,
            duration_nano: self.duration_nano,
            period_type: self.period_type,
            period: self.period,
            profile_id: Vec::new(),
            attribute_indices: self.attribute_indices,
        }
    }
}
