//! From messages of OpenTelemetry to one of pprof.

use std::collections::HashMap;

use super::message::{
    AnyValue, Attribute, Dictionary, KeyValue, Location, Mapping, Profile, ProfilesData, Sample, ValueType,
};
use super::{BUILD_ID, FLAT, OWNERS};
use crate::budget::Budget;
use crate::label::text_of;
use crate::pprof::{FLAT as FLAT_COMMENT, message as pprof};
use crate::read_error::LARGE_SUM;
use crate::{Problem, ReadError, unit};

/// Puts messages together.
pub(super) struct Converter<'a> {
    message: pprof::Profile,
    strings: HashMap<Vec<u8>, i64>,
    /// By name and unit, which stand in the table of strings: which value of samples it is.
    types: HashMap<(i64, i64), usize>,
    /// The mapping for code of the kernel.
    kernel: Option<u64>,
    budget: &'a mut Budget,
    has_dictionary: bool,
    links: bool,
    timestamps: bool,
    /// How many profiles have samples, and how many of them say that they have no stacks.
    profiles: [usize; 2],
}

/// Labels of a sample, by key.
type Labels = Vec<pprof::Label>;

/// The tables of one OTLP message, converted to those of pprof.
struct Tables<'a> {
    dictionary: &'a Dictionary,
    /// By index: its id in the message of pprof; 0 for what stands for nothing.
    mappings: Vec<u64>,
    functions: Vec<u64>,
    locations: Vec<u64>,
    attributes: Vec<Option<pprof::Label>>,
}

impl Dictionary {
    fn text(&self, index: i32, user: &str) -> Result<&[u8], ReadError> {
        match get(&self.string_table, index) {
            Some(text) => Ok(text),
            None if index == 0 => Ok(b""),
            None => Err(missing("text", index, user)),
        }
    }
}

fn get<T>(table: &[T], index: i32) -> Option<&T> {
    usize::try_from(index).ok().and_then(|at| table.get(at))
}

/// The error of an element that refers to one which is not there.
pub(super) fn missing(element: &str, index: i32, user: &str) -> ReadError {
    ReadError::at(user, Problem::missing(format!("{element} {index} is missing")))
}

impl<'a> Converter<'a> {
    pub(super) fn new(budget: &'a mut Budget) -> Self {
        let mut converter = Self {
            message: pprof::Profile::default(),
            strings: HashMap::new(),
            types: HashMap::new(),
            kernel: None,
            budget,
            has_dictionary: false,
            links: false,
            timestamps: false,
            profiles: [0; 2],
        };
        converter.string(b"");
        converter
    }

    fn string(&mut self, text: &[u8]) -> i64 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let index = self.message.string_table.len() as i64;
        self.message.string_table.push(text.to_vec());
        self.strings.insert(text.to_vec(), index);
        index
    }

    /// Adds a message.
    pub(super) fn add(&mut self, data: ProfilesData) -> Result<(), ReadError> {
        let Some(dictionary) = &data.dictionary else { return Ok(()) };
        self.has_dictionary = true;
        let tables = self.tables(dictionary)?;
        for resource in &data.resource_profiles {
            let attributes = resource.resource.iter().flat_map(|resource| &resource.attributes);
            let attributes: Vec<&KeyValue> = attributes.collect();
            let outer: Labels =
                attributes.into_iter().filter_map(|attribute| self.resource(attribute)).collect();
            for profile in resource.scope_profiles.iter().flat_map(|scope| &scope.profiles) {
                self.profile(&tables, profile, &outer)?;
            }
        }
        Ok(())
    }

    fn resource(&mut self, attribute: &KeyValue) -> Option<pprof::Label> {
        self.label(attribute.key.as_bytes(), attribute.value.as_ref())
    }

    /// A label; nothing for values that no label can have.
    fn label(&mut self, key: &[u8], value: Option<&AnyValue>) -> Option<pprof::Label> {
        let owner = OWNERS.iter().find(|(attribute, _)| attribute.as_bytes() == key);
        let key = self.string(owner.map_or(key, |(_, label)| label.as_bytes()));
        let value = value?;
        let (str, num) = match value {
            AnyValue { string_value: Some(text), .. } => (self.string(text.as_bytes()), 0),
            AnyValue { int_value: Some(number), .. } => (0, *number),
            AnyValue { bool_value: Some(truth), .. } => (self.string(truth.to_string().as_bytes()), 0),
            AnyValue { double_value: Some(number), .. } => (self.string(number.to_string().as_bytes()), 0),
            _ => return None,
        };
        Some(pprof::Label { key, str, num })
    }

    fn tables<'b>(&mut self, dictionary: &'b Dictionary) -> Result<Tables<'b>, ReadError> {
        let mut tables = Tables {
            dictionary,
            mappings: Vec::new(),
            functions: Vec::new(),
            locations: Vec::new(),
            attributes: Vec::new(),
        };
        for (at, Attribute { key_strindex, value }) in dictionary.attribute_table.iter().enumerate() {
            let key = dictionary.text(*key_strindex, &format!("attribute {at}"))?;
            let label = if key.is_empty() { None } else { self.label(key, value.as_ref()) };
            tables.attributes.push(label);
        }
        for (at, mapping) in dictionary.mapping_table.iter().enumerate() {
            let id = self.mapping(&tables, at, mapping)?;
            tables.mappings.push(id);
        }
        for (at, function) in dictionary.function_table.iter().enumerate() {
            let user = format!("function {at}");
            let mut text = |index| dictionary.text(index, &user).map(|text| self.string(text));
            let (name, system_name) = (text(function.name_strindex)?, text(function.system_name_strindex)?);
            let filename = text(function.filename_strindex)?;
            // The first element stands for nothing, and has nothing.
            let is_none = (name, system_name, filename, function.start_line) == (0, 0, 0, 0);
            let id = if is_none { 0 } else { self.message.function.len() as u64 + 1 };
            tables.functions.push(id);
            if !is_none {
                let start_line = function.start_line;
                self.message.function.push(pprof::Function { id, name, system_name, filename, start_line });
            }
        }
        for (at, location) in dictionary.location_table.iter().enumerate() {
            let id = self.location(&tables, at, location)?;
            tables.locations.push(id);
        }
        Ok(tables)
    }

    fn mapping(&mut self, tables: &Tables<'_>, at: usize, mapping: &Mapping) -> Result<u64, ReadError> {
        if *mapping == Mapping::default() {
            return Ok(0);
        }
        let user = format!("mapping {at}");
        let filename = self.string(tables.dictionary.text(mapping.filename_strindex, &user)?);
        let mut build_id = 0;
        for &index in &mapping.attribute_indices {
            let label = get(&tables.attributes, index).ok_or_else(|| missing("attribute", index, &user))?;
            let is_id = |label: &&pprof::Label| self.strings.get(BUILD_ID.as_bytes()) == Some(&label.key);
            build_id = label.as_ref().filter(is_id).map_or(build_id, |label| label.str);
        }
        let id = self.message.mapping.len() as u64 + 1;
        let Mapping { memory_start, memory_limit, file_offset, .. } = *mapping;
        let known = pprof::Mapping {
            id,
            memory_start,
            memory_limit,
            file_offset,
            filename,
            build_id,
            ..Default::default()
        };
        self.message.mapping.push(known);
        Ok(id)
    }

    /// The mapping of code of the kernel that has none.
    fn kernel(&mut self) -> u64 {
        if let Some(known) = self.kernel {
            return known;
        }
        let filename = self.string(crate::label::KERNEL.as_bytes());
        let id = self.message.mapping.len() as u64 + 1;
        self.message.mapping.push(pprof::Mapping { id, filename, ..Default::default() });
        self.kernel = Some(id);
        id
    }

    fn location(&mut self, tables: &Tables<'_>, at: usize, location: &Location) -> Result<u64, ReadError> {
        let user = format!("location {at}");
        if *location == Location::default() {
            return Ok(0);
        }
        let mut mapping_id = match get(&tables.mappings, location.mapping_index) {
            Some(&id) => id,
            None if location.mapping_index == 0 => 0,
            None => return Err(missing("mapping", location.mapping_index, &user)),
        };
        if mapping_id == 0 && self.is_kernel(tables, location) {
            mapping_id = self.kernel();
        }
        let mut line = Vec::with_capacity(location.lines.len());
        for of in &location.lines {
            let function_id = match get(&tables.functions, of.function_index) {
                Some(&id) => id,
                None if of.function_index == 0 => 0,
                None => return Err(missing("function", of.function_index, &user)),
            };
            line.push(pprof::Line { function_id, line: of.line });
        }
        let id = self.message.location.len() as u64 + 1;
        let address = location.address;
        self.message.location.push(pprof::Location { id, mapping_id, address, line });
        Ok(id)
    }

    /// Whether a frame says that it is of the kernel.
    fn is_kernel(&self, tables: &Tables<'_>, location: &Location) -> bool {
        let known = |text: &[u8]| self.strings.get(text).copied();
        let (key, kernel) = (known(b"profile.frame.type"), known(b"kernel"));
        location
            .attribute_indices
            .iter()
            .filter_map(|&index| get(&tables.attributes, index)?.as_ref())
            .any(|label| Some(label.key) == key && Some(label.str) == kernel)
    }

    /// The place of a type among the values of samples.
    fn value(&mut self, tables: &Tables<'_>, of: &ValueType, user: &str) -> Result<usize, ReadError> {
        let name = self.string(tables.dictionary.text(of.type_strindex, user)?);
        let unit = self.string(tables.dictionary.text(of.unit_strindex, user)?);
        Ok(self.type_of(name, unit))
    }

    fn type_of(&mut self, r#type: i64, unit: i64) -> usize {
        let next = self.types.len();
        let at = *self.types.entry((r#type, unit)).or_insert(next);
        if at == next {
            self.message.sample_type.push(pprof::ValueType { r#type, unit });
        }
        at
    }

    fn profile(&mut self, tables: &Tables<'_>, profile: &Profile, outer: &Labels) -> Result<(), ReadError> {
        if profile.samples.is_empty() {
            return Ok(());
        }
        let user = "a profile";
        let of = profile.sample_type.unwrap_or_default();
        let value = self.value(tables, &of, user)?;
        // Costs that are periods themselves were sampled, and another profile counts their samples.
        if profile.period_type.is_some_and(|period| period.type_strindex == of.type_strindex) {
            self.message.period_type.get_or_insert(self.message.sample_type[value]);
        }
        let period = self.period(tables, profile, value)?;
        self.times(profile);
        let mut labels = outer.clone();
        labels.extend(labels_of(tables, &profile.attribute_indices, user)?);
        self.profiles[0] += 1;
        let flat = self.strings.get(FLAT.as_bytes()).copied();
        self.profiles[1] += labels.extract_if(.., |label| Some(label.key) == flat).count().min(1);
        for (at, sample) in profile.samples.iter().enumerate() {
            self.sample(tables, at, sample, value, period, &labels)?;
        }
        Ok(())
    }

    /// Where samples are counted, once for each period of a time: which value that time is, and how long it is.
    fn period(
        &mut self,
        tables: &Tables<'_>,
        profile: &Profile,
        counted: usize,
    ) -> Result<Option<(usize, i64)>, ReadError> {
        let Some(of) = profile.period_type.filter(|_| profile.period > 0) else { return Ok(None) };
        let counts = self.message.sample_type[counted].unit;
        let counts = text_of(&self.message.string_table[counts as usize]).into_owned();
        let unit = text_of(tables.dictionary.text(of.unit_strindex, "a profile")?);
        let is_time = unit::known(&unit).is_some_and(|(unit, _)| unit == treering_profile::Unit::Nanoseconds);
        if !is_time || !matches!(counts.as_str(), "count" | "") {
            return Ok(None);
        }
        let value = self.value(tables, &of, "a profile")?;
        let period_type = self.message.sample_type[value];
        self.message.period_type.get_or_insert(period_type);
        self.message.default_sample_type = period_type.r#type;
        Ok(Some((value, profile.period)))
    }

    /// From the first start to the last end.
    fn times(&mut self, profile: &Profile) {
        let start = i64::try_from(profile.time_unix_nano).unwrap_or(0);
        if start == 0 {
            return;
        }
        let message = &mut self.message;
        let end = start.saturating_add_unsigned(profile.duration_nano);
        let until = message.time_nanos.saturating_add(message.duration_nanos).max(end);
        message.time_nanos = if message.time_nanos == 0 { start } else { message.time_nanos.min(start) };
        message.duration_nanos = until.saturating_sub(message.time_nanos);
    }

    fn sample(
        &mut self,
        tables: &Tables<'_>,
        at: usize,
        sample: &Sample,
        value: usize,
        period: Option<(usize, i64)>,
        outer: &Labels,
    ) -> Result<(), ReadError> {
        let user = || format!("sample {at}");
        self.links |= sample.link_index != 0;
        self.timestamps |= !sample.timestamps_unix_nano.is_empty();
        let stack = match get(&tables.dictionary.stack_table, sample.stack_index) {
            Some(stack) => stack.location_indices.as_slice(),
            None if sample.stack_index == 0 => &[],
            None => return Err(missing("stack", sample.stack_index, &user())),
        };
        let (locations, labels) = (stack.len(), outer.len() + sample.attribute_indices.len());
        self.budget.numbers(1, 16 + locations + 3 * labels)?;
        let mut location_id = Vec::with_capacity(locations);
        for &index in stack {
            match get(&tables.locations, index) {
                Some(0) => {}
                Some(&id) => location_id.push(id),
                None => return Err(missing("location", index, &user())),
            }
        }
        let cost = match sample.values.is_empty() {
            true => sample.timestamps_unix_nano.len() as i64,
            false => {
                let sum = sample.values.iter().try_fold(0_i64, |sum, value| sum.checked_add(*value));
                sum.ok_or_else(|| ReadError::at(user(), LARGE_SUM))?
            }
        };
        let mut values = vec![0; value + 1];
        values[value] = cost;
        if let Some((at, period)) = period {
            values.resize(values.len().max(at + 1), 0);
            values[at] = cost.checked_mul(period).ok_or_else(|| ReadError::at(user(), LARGE_SUM))?;
        }
        let mut label = outer.clone();
        label.extend(labels_of(tables, &sample.attribute_indices, "a sample")?);
        self.message.sample.push(pprof::Sample { location_id, value: values, label });
        Ok(())
    }

    /// The message, and what there is to note.
    pub(super) fn finish(mut self) -> Result<(pprof::Profile, Vec<String>), ReadError> {
        if !self.has_dictionary {
            let text = "OTLP without a dictionary of profiles, by the schema of 2024 or of another signal, is not read";
            return Err(Problem::unsupported(text).into());
        }
        if self.message.sample.is_empty() {
            return Err(Problem::Empty("samples").into());
        }
        if self.profiles[0] == self.profiles[1] {
            let comment = self.string(FLAT_COMMENT.as_bytes());
            self.message.comment.push(comment);
        }
        let types = self.message.sample_type.len();
        let short = self.message.sample.iter().map(|sample| types - sample.value.len()).sum();
        self.budget.numbers(short, 1)?;
        self.message.sample.iter_mut().for_each(|sample| sample.value.resize(types, 0));
        if self.message.default_sample_type == 0 {
            self.message.default_sample_type = self.message.sample_type[0].r#type;
        }
        let mut notes = Vec::new();
        if self.links {
            notes.push("which traces and spans samples belong to is not kept".to_owned());
        }
        if self.timestamps {
            notes.push("when single samples were taken is not kept".to_owned());
        }
        Ok((self.message, notes))
    }
}

fn labels_of(tables: &Tables<'_>, indices: &[i32], user: &str) -> Result<Labels, ReadError> {
    let mut labels = Vec::new();
    for &index in indices {
        let label = get(&tables.attributes, index).ok_or_else(|| missing("attribute", index, user))?;
        labels.extend(label.clone());
    }
    Ok(labels)
}
