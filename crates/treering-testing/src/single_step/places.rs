//! Runtime addresses in terms of modules.

use std::collections::HashMap;
use std::path::Path;

use object::{Object as _, ObjectSegment as _, SegmentFlags, elf};
use treering_profile::{
    CodeAddress, CodeBytes, CodeSpace, FileOffset, Module, ModuleId, ModuleKind, Profile, RuntimeAddress,
    Segment, SegmentMap, StatedAddress,
};

use super::process::{Mapping, SteppedProcess};

/// Finds the place of runtime addresses, and keeps the bytes of code that no file holds.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// By image and number of changes of its mappings.
    known: HashMap<(u32, u32, u64), CodeAddress>,
    binaries: HashMap<Vec<u8>, Binary>,
    /// Bytes of instructions that no file holds.
    kept: HashMap<CodeAddress, Vec<u8>>,
    /// By start of its mapping, what code that no file holds was when it was last looked at.
    contents: HashMap<(ModuleId, u64), Content>,
}

/// The bytes of a mapping without a file.
#[derive(Debug, Default)]
struct Content {
    /// At which number of changes it was looked at.
    changes: Option<u32>,
    generation: u32,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Binary {
    segments: SegmentMap,
    build_id: Box<[u8]>,
}

impl Places {
    pub(super) fn place(
        &mut self,
        profile: &mut Profile,
        process: &mut SteppedProcess,
        at: u64,
    ) -> CodeAddress {
        let key = (process.image(), process.changes(), at);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let place = self.find(profile, process, at);
        self.known.insert(key, place);
        place
    }

    fn find(&mut self, profile: &mut Profile, process: &mut SteppedProcess, at: u64) -> CodeAddress {
        let Some(mapping) = process.mapping(at) else {
            let space = profile.code.spaces.intern(CodeSpace { module: None, generation: 0 });
            return CodeAddress { space, address: StatedAddress(at) };
        };
        let (module, bias, in_file) = self.module(profile, process, &mapping);
        let address = StatedAddress(at.wrapping_sub(bias));
        if in_file {
            let space = profile.code.spaces.intern(CodeSpace { module: Some(module), generation: 0 });
            return CodeAddress { space, address };
        }
        let generation = self.generation(process, module, &mapping);
        let space = profile.code.spaces.intern(CodeSpace { module: Some(module), generation });
        let length = process.instruction(at).length;
        let place = CodeAddress { space, address };
        self.kept.entry(place).or_insert_with(|| process.read(at, length.into()));
        place
    }

    /// How often what a mapping holds was found changed.
    fn generation(&mut self, process: &mut SteppedProcess, module: ModuleId, mapping: &Mapping) -> u32 {
        let content = self.contents.entry((module, mapping.start)).or_default();
        if content.changes != Some(process.changes()) {
            let bytes = process.read(mapping.start, (mapping.end - mapping.start) as usize);
            content.generation += u32::from(content.changes.is_some() && bytes != content.bytes);
            content.bytes = bytes;
            content.changes = Some(process.changes());
        }
        content.generation
    }

    /// The module of a mapping, what to subtract from its runtime addresses, and whether a file
    /// holds its code.
    fn module(
        &mut self,
        profile: &mut Profile,
        process: &mut SteppedProcess,
        mapping: &Mapping,
    ) -> (ModuleId, u64, bool) {
        let name = mapping.path.to_string_lossy().into_owned();
        let is_vdso = name == "[vdso]";
        if !is_vdso && !mapping.path.is_absolute() {
            let path = profile.strings.intern(&format!("[jit {}]", process.pid()));
            let module = Module { path, build_id: Box::default(), kind: ModuleKind::Jit };
            return (profile.modules.intern(module), 0, false);
        }
        let binary = self.binary(process, mapping, is_vdso);
        let length = mapping.end - mapping.start;
        let offset = FileOffset(mapping.file_offset);
        let bias = binary.segments.bias(RuntimeAddress(mapping.start), offset, length).unwrap_or(0);
        let path = profile.strings.intern(&name);
        let kind = if is_vdso { ModuleKind::Vdso } else { ModuleKind::Elf };
        (profile.modules.intern(Module { path, build_id: binary.build_id, kind }), bias, !is_vdso)
    }

    fn binary(&mut self, process: &mut SteppedProcess, mapping: &Mapping, is_vdso: bool) -> Binary {
        let key = mapping.path.as_os_str().as_encoded_bytes().to_vec();
        if let Some(known) = self.binaries.get(&key) {
            return known.clone();
        }
        let bytes = if is_vdso {
            process.read(mapping.start, (mapping.end - mapping.start) as usize)
        } else {
            std::fs::read(Path::new(&mapping.path)).unwrap_or_default()
        };
        let binary = parse(&bytes).unwrap_or_default();
        self.binaries.insert(key, binary.clone());
        binary
    }

    /// The kept bytes, in runs without gaps.
    pub(super) fn into_bytes(self) -> Vec<CodeBytes> {
        let mut kept: Vec<_> = self.kept.into_iter().collect();
        kept.sort_unstable();
        let mut runs: Vec<(CodeAddress, Vec<u8>)> = Vec::new();
        for (start, bytes) in kept {
            match runs.last_mut() {
                Some((first, run)) if first.offset(run.len() as u64) == start => run.extend(bytes),
                _ => runs.push((start, bytes)),
            }
        }
        runs.into_iter().map(|(start, bytes)| CodeBytes { start, bytes: bytes.into() }).collect()
    }
}

fn parse(bytes: &[u8]) -> Option<Binary> {
    let object = object::File::parse(bytes).ok()?;
    let segments = object.segments().map(|segment| {
        let (file_offset, file_size) = segment.file_range();
        let executable = match segment.flags() {
            SegmentFlags::Elf { p_flags, .. } => p_flags.contains(elf::PF_X),
            _ => false,
        };
        Segment {
            executable,
            file_offset: FileOffset(file_offset),
            stated_address: StatedAddress(segment.address()),
            file_size,
            memory_size: segment.size(),
        }
    });
    let segments = SegmentMap::new(segments.collect());
    let build_id = object.build_id().ok().flatten().unwrap_or_default().into();
    Some(Binary { segments, build_id })
}
