//! Bytes of code, out of the files that a profile names.

use std::collections::HashMap;

use object::{Object as _, ObjectSegment as _};
use treering_profile::{CodeAddress, Profile};

/// A reader of the code of a profile's modules, by stated address: what
/// [`StepCounts`](super::StepCounts) counted is read with it.
pub fn code_files(profile: &Profile) -> impl FnMut(CodeAddress, usize) -> Option<Vec<u8>> + use<> {
    let path = |module| profile.strings[profile.modules[module].path].to_owned();
    let spaces = profile.code.spaces.entries().iter();
    let paths: Vec<String> = spaces.map(|space| space.module.map_or_else(String::new, path)).collect();
    let mut files: HashMap<u32, Vec<u8>> = HashMap::new();
    move |at, length| {
        let path = paths.get(at.space.index())?;
        let bytes = files.entry(at.space.raw()).or_insert_with(|| std::fs::read(path).unwrap_or_default());
        let object = object::File::parse(&**bytes).ok()?;
        let segment = object.segments().find(|segment| {
            let size = segment.file_range().1;
            at.address.0.checked_sub(segment.address()).is_some_and(|into| into < size)
        })?;
        let data = segment.data().ok()?.get((at.address.0 - segment.address()) as usize..)?;
        Some(data[..data.len().min(length)].to_vec())
    }
}
