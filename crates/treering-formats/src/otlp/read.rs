//! Reads profiles of OpenTelemetry.

use prost::Message as _;
use treering_profile::Profile;

use super::convert::{Converter, missing};
use super::message::{self, ProfilesData};
use super::{OWNERS, version_1_7, version_1_8};
use crate::budget::Budget;
use crate::gzip::unzip;
use crate::label::without_mark;
use crate::{ReadError, ReadReport, pprof};

/// Reads profiles of OpenTelemetry, protobuf or JSON, compressed or not.
///
/// Each type of samples is a metric. Of samples that are counted, with a period of time, that time is a metric
/// too. Attributes for process and thread make threads; others are dropped.
///
/// # Errors
/// When it is damaged or refers to what is missing.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// Reads only the samples that have all of these attributes, of their own, of their profile or of their resource.
/// How many others there are is said.
///
/// # Errors
/// As [`read`], and when no sample has them.
pub fn read_labelled(bytes: &[u8], labels: &[(String, String)]) -> Result<(Profile, ReadReport), ReadError> {
    let named = |key: &String| {
        let owner = OWNERS.iter().find(|(attribute, _)| attribute == key);
        owner.map_or(key.clone(), |(_, label)| (*label).to_owned())
    };
    let labels: Vec<_> = labels.iter().map(|(key, value)| (named(key), value.clone())).collect();
    read_chosen(bytes, &labels, Budget::new(bytes.len()))
}

/// The same as [`read`] with a limit to the memory that it may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    read_chosen(bytes, &[], budget)
}

fn read_chosen(
    bytes: &[u8],
    labels: &[(String, String)],
    mut budget: Budget,
) -> Result<(Profile, ReadReport), ReadError> {
    let unzipped = unzip(bytes)?;
    // A byte may be an empty message of the largest sort.
    let most = unzipped.len().saturating_mul(MOST_PER_BYTE);
    budget.bytes(most as u64)?;
    let text = without_mark(&unzipped).trim_ascii_start();
    let mut converter = Converter::new(&mut budget);
    if text.starts_with(b"{") {
        // Collectors write one message on each line.
        for data in serde_json::Deserializer::from_slice(text).into_iter() {
            converter.add(data?)?;
        }
    } else {
        converter.add(decoded(&unzipped)?)?;
    }
    let (message, notes) = converter.finish()?;
    let (profile, mut report) = pprof::read_message(&message, labels, budget, "OpenTelemetry")?;
    report.notes.extend(notes);
    Ok((profile, report))
}

/// How many bytes in memory one byte of a file may become: a message of two has the size of its fields.
const MOST_PER_BYTE: usize = 64;

/// The message, by the schema that it fits.
///
/// Samples have other numbers for their fields in each of the three, of other types, so that those of one seldom
/// decode by another; where they do, they have no values, or the types of samples have what was dropped since.
fn decoded(bytes: &[u8]) -> Result<ProfilesData, ReadError> {
    let current = ProfilesData::decode(bytes);
    if let Ok(data) = &current
        && has_values(data)
        && !has_temporality(data)
    {
        return current.map_err(undecodable);
    }
    if let Ok(data) = version_1_8::ProfilesData::decode(bytes).map(version_1_8::ProfilesData::into_current)
        && has_values(&data)
    {
        return Ok(data);
    }
    if let Ok(data) = version_1_7::ProfilesData::decode(bytes) {
        let data = data.into_current().ok_or_else(|| missing("location", -1, "a sample"))?;
        if has_values(&data) {
            return Ok(data);
        }
    }
    current.map_err(undecodable)
}

fn undecodable(error: prost::DecodeError) -> ReadError {
    format!("it is no OTLP profile, or damaged or cut short: {error}").into()
}

fn profiles(data: &ProfilesData) -> impl Iterator<Item = &message::Profile> {
    let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    scopes.flat_map(|scope| &scope.profiles)
}

/// Whether every sample has a value or a time, as each must.
fn has_values(data: &ProfilesData) -> bool {
    let mut samples = profiles(data).flat_map(|profile| &profile.samples);
    samples.all(|sample| !sample.values.is_empty() || !sample.timestamps_unix_nano.is_empty())
}

/// Whether a type of samples says how its values follow from each other.
fn has_temporality(data: &ProfilesData) -> bool {
    let mut types = profiles(data).filter_map(|profile| profile.sample_type);
    types.any(|of| of.aggregation_temporality != 0)
}
