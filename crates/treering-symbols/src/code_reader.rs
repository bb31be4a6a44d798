//! The bytes of code that was executed.

use std::collections::HashMap;

use object::{Object as _, ObjectSegment as _, SegmentFlags, elf};
use treering_profile::{CodeAddress, CodeBytes, Module, ModuleId, ModuleKind, Profile};

use crate::elf_module::ElfModule;
use crate::object_file::{Object, Storage};
use crate::{Options, Problem, vdso};

/// Reads the code of a profile: what the profile kept itself, else the files of its modules, if they
/// are still what was executed.
///
/// A file is opened at the first question for its code, and what it maps as code is kept.
#[derive(Debug)]
pub struct CodeReader<'o> {
    options: &'o Options<'o>,
    /// By space, its module.
    spaces: Vec<Option<ModuleId>>,
    modules: Vec<(String, Module)>,
    /// Sorted by address.
    kept: Vec<CodeBytes>,
    code: HashMap<ModuleId, Result<Segments, Problem>>,
}

/// Stated address and contents of what is mapped as code.
type Segments = Vec<(u64, Vec<u8>)>;

impl<'o> CodeReader<'o> {
    /// For the code of `profile`; of `options`, only where files are counts.
    pub fn new(profile: &Profile, options: &'o Options<'o>) -> Self {
        let modules = profile.modules.entries().iter();
        let mut kept = profile.code.bytes.clone();
        kept.sort_by_key(|row| row.start);
        Self {
            options,
            spaces: profile.code.spaces.entries().iter().map(|space| space.module).collect(),
            modules: modules.map(|m| (profile.strings[m.path].to_owned(), m.clone())).collect(),
            kept,
            code: HashMap::new(),
        }
    }

    /// The bytes from an address on: at least one, at most `length`. Nothing where they are not
    /// known; [`problems`](Self::problems) says why.
    pub fn read(&mut self, at: CodeAddress, length: usize) -> Option<Vec<u8>> {
        if let Some(kept) = self.kept(at) {
            return Some(kept[..kept.len().min(length)].to_vec());
        }
        let module = (*self.spaces.get(at.space.index())?)?;
        if !self.code.contains_key(&module) {
            let read = self.open(module);
            self.code.insert(module, read);
        }
        let segments = self.code.get(&module)?.as_ref().ok()?;
        let found = segments.iter().find_map(|(start, bytes)| {
            let skipped = usize::try_from(at.address.0.checked_sub(*start)?).ok()?;
            bytes.get(skipped..).filter(|rest| !rest.is_empty())
        })?;
        Some(found[..found.len().min(length)].to_vec())
    }

    /// Why files could not be read, each once.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<_> =
            self.code.values().filter_map(|read| read.as_ref().err().cloned()).collect();
        problems.sort();
        problems.dedup();
        problems
    }

    fn kept(&self, at: CodeAddress) -> Option<&[u8]> {
        let after = self.kept.partition_point(|row| row.start <= at);
        let row = self.kept.get(after.checked_sub(1)?)?;
        let skipped = usize::try_from(at.address.0.checked_sub(row.start.address.0)?).ok()?;
        let rest = row.bytes.get(skipped..).filter(|rest| !rest.is_empty())?;
        (row.start.space == at.space).then_some(rest)
    }

    fn open(&self, module: ModuleId) -> Result<Segments, Problem> {
        let (path, module) = &self.modules[module.index()];
        let storage = Storage::default();
        if module.kind == ModuleKind::Vdso {
            let missing = || Problem::NotAnObject { path: path.into() };
            let image = vdso::image().ok_or_else(missing)?;
            return storage.take(image).map(|object| code_segments(&object)).map_err(|_| missing());
        }
        let elf = ElfModule { path, build_id: &module.build_id };
        elf.open(&storage, self.options).map(|(object, _)| code_segments(&object))
    }
}

fn code_segments(object: &Object<'_>) -> Segments {
    let executable =
        |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(elf::PF_X));
    let segments = object.segments().filter(|segment| executable(segment.flags()));
    segments.filter_map(|segment| Some((segment.address(), segment.data().ok()?.to_vec()))).collect()
}
