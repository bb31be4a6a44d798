//! Writes profiles of OpenTelemetry.

use std::collections::HashMap;
use std::io::{self, Write};

use prost::Message as _;
use treering_profile as model;

use super::message::{
    AnyValue, Attribute, Dictionary, Function, Line, Location, Mapping, Profile, ProfilesData,
    ResourceProfiles, Sample, Scope, ScopeProfiles, Stack, ValueType,
};
use super::{BUILD_ID, FLAT, OWNERS, SCOPE};
use crate::costs_only::is_flat;
use crate::pprof::message as pprof;
use crate::{Dropped, pprof as pprof_format};

/// Writes a profile as protobuf by the schema of v1.9 and later: a profile of OpenTelemetry for each metric.
///
/// # Errors
/// When the output fails.
pub fn write(profile: &model::Profile, mut output: impl Write) -> io::Result<Dropped> {
    let mut bytes = Vec::new();
    let mut dropped = pprof_format::write_plain(profile, &mut bytes)?;
    let message = pprof::Profile::decode(&*bytes).map_err(io::Error::other)?;
    dropped.note_if(!message.comment.is_empty(), "the command, and which version wrote the profile");
    dropped.note_if(message.sample_type.len() > 1, "which metric is shown first");
    let mut builder = Builder::of(&message);
    let measuring = profile.metadata.parameters.get(model::Metadata::MEASURING);
    builder.statements.extend(measuring.map(|text| (MEASURING, text.as_str())));
    builder.statements.extend(is_flat(profile).then_some((FLAT, "total costs are not known")));
    output.write_all(&builder.data().encode_to_vec())?;
    output.flush()?;
    Ok(dropped)
}

/// The attribute that says whether the cost of measuring was taken out of the costs.
const MEASURING: &str = "treering.cost_of_measuring";

struct Builder<'a> {
    from: &'a pprof::Profile,
    /// Attributes of all profiles, with their texts.
    statements: Vec<(&'static str, &'a str)>,
    dictionary: Dictionary,
    strings: HashMap<Vec<u8>, i32>,
    attributes: HashMap<(i64, i64, i64), i32>,
    stacks: HashMap<&'a [u64], i32>,
    /// By their ids in pprof.
    mappings: HashMap<u64, i32>,
    functions: HashMap<u64, i32>,
    locations: HashMap<u64, i32>,
}

/// An index into a table, which has fewer elements than that in any file that can be written.
fn index(at: usize) -> i32 {
    i32::try_from(at).unwrap_or(i32::MAX)
}

impl<'a> Builder<'a> {
    fn of(from: &'a pprof::Profile) -> Self {
        let dictionary = Dictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![Function::default()],
            string_table: Vec::new(),
            attribute_table: vec![Attribute::default()],
            stack_table: vec![Stack::default()],
        };
        let mut builder = Self {
            from,
            statements: Vec::new(),
            dictionary,
            strings: HashMap::new(),
            attributes: HashMap::new(),
            stacks: HashMap::new(),
            mappings: HashMap::from([(0, 0)]),
            functions: HashMap::from([(0, 0)]),
            locations: HashMap::new(),
        };
        builder.text(b"");
        builder
    }

    fn text(&mut self, text: &[u8]) -> i32 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let at = index(self.dictionary.string_table.len());
        self.dictionary.string_table.push(text.to_vec());
        self.strings.insert(text.to_vec(), at);
        at
    }

    /// A text of pprof's table.
    fn string(&mut self, at: i64) -> i32 {
        let text = usize::try_from(at).ok().and_then(|at| self.from.string_table.get(at));
        self.text(text.map_or(&[], Vec::as_slice))
    }

    fn data(mut self) -> ProfilesData {
        self.tables();
        let profiles = (0..self.from.sample_type.len()).map(|at| self.profile(at)).collect();
        let scope = Scope { name: SCOPE.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let scope_profiles = vec![ScopeProfiles { scope: Some(scope), profiles }];
        ProfilesData {
            resource_profiles: vec![ResourceProfiles { resource: None, scope_profiles }],
            dictionary: Some(self.dictionary),
        }
    }

    fn tables(&mut self) {
        let from = self.from;
        for mapping in &from.mapping {
            let filename_strindex = self.string(mapping.filename);
            let attribute_indices = match mapping.build_id {
                0 => Vec::new(),
                id => vec![self.attribute(BUILD_ID, (-1, id, 0))],
            };
            let pprof::Mapping { memory_start, memory_limit, file_offset, .. } = *mapping;
            self.mappings.insert(mapping.id, index(self.dictionary.mapping_table.len()));
            let mapping =
                Mapping { memory_start, memory_limit, file_offset, filename_strindex, attribute_indices };
            self.dictionary.mapping_table.push(mapping);
        }
        for function in &from.function {
            let written = Function {
                name_strindex: self.string(function.name),
                system_name_strindex: self.string(function.system_name),
                filename_strindex: self.string(function.filename),
                start_line: function.start_line,
            };
            self.functions.insert(function.id, index(self.dictionary.function_table.len()));
            self.dictionary.function_table.push(written);
        }
        for location in &from.location {
            let line = |line: &pprof::Line| Line {
                function_index: self.functions[&line.function_id],
                line: line.line,
            };
            let written = Location {
                mapping_index: self.mappings[&location.mapping_id],
                address: location.address,
                lines: location.line.iter().map(line).collect(),
                attribute_indices: Vec::new(),
            };
            self.locations.insert(location.id, index(self.dictionary.location_table.len()));
            self.dictionary.location_table.push(written);
        }
    }

    /// An attribute with a text of pprof's table or a number; `of` tells it from others.
    fn attribute(&mut self, key: &str, of: (i64, i64, i64)) -> i32 {
        if let Some(&known) = self.attributes.get(&of) {
            return known;
        }
        let (_, text, number) = of;
        let value = match text {
            0 => AnyValue { int_value: Some(number), ..AnyValue::default() },
            text => {
                let text = &self.from.string_table[text as usize];
                AnyValue {
                    string_value: Some(String::from_utf8_lossy(text).into_owned()),
                    ..AnyValue::default()
                }
            }
        };
        let key_strindex = self.text(key.as_bytes());
        let at = index(self.dictionary.attribute_table.len());
        self.dictionary.attribute_table.push(Attribute { key_strindex, value: Some(value) });
        self.attributes.insert(of, at);
        at
    }

    fn value_type(&mut self, of: &pprof::ValueType) -> ValueType {
        let (type_strindex, unit_strindex) = (self.string(of.r#type), self.string(of.unit));
        ValueType { type_strindex, unit_strindex, ..ValueType::default() }
    }

    fn profile(&mut self, at: usize) -> Profile {
        let from = self.from;
        let of = from.sample_type[at];
        let samples = from.sample.iter().filter(|sample| sample.value[at] != 0);
        let samples = samples.map(|sample| self.sample(sample, sample.value[at])).collect();
        let of_period = from.period_type.filter(|period| period.r#type == of.r#type);
        Profile {
            sample_type: Some(self.value_type(&of)),
            samples,
            time_unix_nano: from.time_nanos.try_into().unwrap_or(0),
            duration_nano: from.duration_nanos.try_into().unwrap_or(0),
            period_type: of_period.map(|period| self.value_type(&period)),
            period: if of_period.is_some() { from.period } else { 0 },
            profile_id: id(from.time_nanos, at),
            attribute_indices: self.statement_attributes(),
        }
    }

    fn statement_attributes(&mut self) -> Vec<i32> {
        let mut indices = Vec::new();
        for (number, (key, text)) in self.statements.clone().into_iter().enumerate() {
            let key_strindex = self.text(key.as_bytes());
            let of = (-2, 0, number as i64);
            let table = &mut self.dictionary.attribute_table;
            let at = *self.attributes.entry(of).or_insert_with(|| {
                let value = AnyValue { string_value: Some(text.to_owned()), ..AnyValue::default() };
                table.push(Attribute { key_strindex, value: Some(value) });
                index(table.len() - 1)
            });
            indices.push(at);
        }
        indices
    }

    fn sample(&mut self, sample: &'a pprof::Sample, value: i64) -> Sample {
        let attribute_indices = sample.label.iter().map(|label| self.label(label)).collect();
        let stack_index = match self.stacks.get(sample.location_id.as_slice()) {
            Some(&known) => known,
            None => {
                let locations = sample.location_id.iter().map(|id| self.locations[id]).collect();
                let at = index(self.dictionary.stack_table.len());
                // A sample without a stack has the one that stands for nothing.
                let at = if sample.location_id.is_empty() { 0 } else { at };
                if at > 0 {
                    self.dictionary.stack_table.push(Stack { location_indices: locations });
                }
                self.stacks.insert(&sample.location_id, at);
                at
            }
        };
        Sample { stack_index, attribute_indices, values: vec![value], ..Sample::default() }
    }

    fn label(&mut self, label: &pprof::Label) -> i32 {
        let key = self.from.string_table[label.key as usize].as_slice();
        let owner = OWNERS.iter().find(|(_, known)| known.as_bytes() == key);
        let key =
            owner.map_or_else(|| String::from_utf8_lossy(key).into_owned(), |(key, _)| (*key).to_owned());
        self.attribute(&key, (label.key, label.str, label.num))
    }
}

/// Sixteen bytes that tell the profiles of a file apart, and those of files by their start. They must not be all zeros.
fn id(time_nanos: i64, at: usize) -> Vec<u8> {
    let mut id = time_nanos.to_be_bytes().to_vec();
    id.extend((at as u64 + 1).to_be_bytes());
    id
}
