//! The sections that hold debug information, of all the files that it is spread over.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{
    Dwarf, DwarfPackage, DwarfPackageSections, DwarfSections, RunTimeEndian, Section as _, SectionId,
};
use object::Object as _;

use crate::debug_file::{Finder, owner_of};
use crate::needed_units;
use crate::object_file::{Object, Slice, Storage, endian};
use crate::{Options, Problem};

/// The sections of a binary's debug information, read and decompressed. Several threads may each
/// make a reader of their own from it.
pub(crate) struct DwarfFile<'a> {
    main: DwarfSections<&'a [u8]>,
    supplementary: Option<DwarfSections<&'a [u8]>>,
    package: Option<DwarfPackageSections<&'a [u8]>>,
    endian: RunTimeEndian,
    size: usize,
    /// The directory of the binary, where parts kept apart are looked for.
    directory: PathBuf,
    /// The owner of the binary.
    owner: Option<u32>,
}

/// The sections that names, lines and inlining need. Types of variables and unwinding stay unread.
const NEEDED: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

impl<'a> DwarfFile<'a> {
    /// Reads the debug information of `debug`, which is the binary at `binary` or the file that
    /// was separated from it and lies at `path`.
    pub(crate) fn read(
        finder: &Finder<'a, '_>,
        debug: &Object<'a>,
        path: &Path,
        binary: &Path,
        problems: &mut Vec<Problem>,
    ) -> object::Result<Self> {
        let storage = finder.storage;
        let supplementary = finder.supplementary(debug, path, problems);
        let supplementary = supplementary.map(|file| sections(storage, &file.object)).transpose()?;
        let package = package_candidates(path, binary);
        let owner = owner_of(binary);
        let has_index = |object: &Object<'_>| object.section_by_name(".debug_cu_index").is_some();
        let package = finder.part(&package, owner, problems, has_index);
        let package = package.map(|file| package_sections(storage, &file.object)).transpose()?;
        let directory = binary.parent().unwrap_or(Path::new("")).to_path_buf();
        let main = sections(storage, debug)?;
        let endian = endian(debug);
        let size = main.debug_info.borrow(|section| Slice::new(section, endian)).reader().len();
        Ok(Self { main, supplementary, package, endian, size, directory, owner })
    }

    /// How many bytes of debug information there are, to judge what reading it costs.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// `.debug_info` of the binary without units that have nothing to do with `addresses`, which
    /// are sorted; nothing where it is as good to read all. See [`needed_units::reduced`].
    pub(crate) fn reduced_info(&self, addresses: &[u64]) -> Option<Vec<u8>> {
        let slice = |section: &&'a [u8]| Slice::new(section, self.endian);
        let sections = &self.main;
        needed_units::reduced(
            sections.debug_info.borrow(slice),
            sections.debug_aranges.borrow(slice),
            addresses,
        )
    }

    /// A view of the sections with the abbreviations shared between units parsed.
    pub(crate) fn dwarf(&self) -> Arc<Dwarf<Slice<'_>>> {
        self.dwarf_with(None)
    }

    /// A view of the sections with `info` in place of `.debug_info`.
    pub(crate) fn dwarf_with<'s>(&'s self, info: Option<&'s [u8]>) -> Arc<Dwarf<Slice<'s>>> {
        let slice = |section: &&'a [u8]| Slice::new(section, self.endian);
        let mut dwarf: Dwarf<Slice<'s>> = self.main.borrow(slice);
        if let Some(info) = info {
            dwarf.debug_info = Slice::new(info, self.endian).into();
        }
        if let Some(supplementary) = &self.supplementary {
            dwarf.set_sup(supplementary.borrow(slice));
        }
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        Arc::new(dwarf)
    }

    /// The package that split units were collected in, if there is one.
    pub(crate) fn package(&self) -> Option<DwarfPackage<Slice<'_>>> {
        let empty = Slice::new(&[], self.endian);
        self.package.as_ref()?.borrow(|section| Slice::new(section, self.endian), empty).ok()
    }

    /// Where the file of a split unit may be: where it was compiled, and beside the binary.
    pub(crate) fn part_candidates(&self, compiled_in: &str, name: &str) -> Vec<PathBuf> {
        let compiled = PathBuf::from(crate::source_path::join(compiled_in, name));
        let file_name = compiled.file_name().map(PathBuf::from).unwrap_or_default();
        vec![compiled, self.directory.join(name), self.directory.join(file_name)]
    }
}

/// `program.dwp` beside the program, or beside its debug file.
fn package_candidates(debug: &Path, binary: &Path) -> Vec<PathBuf> {
    let package = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push(".dwp");
        PathBuf::from(name)
    };
    vec![package(binary), package(debug), package(&debug.with_extension(""))]
}

fn sections<'a>(storage: &'a Storage, object: &Object<'a>) -> object::Result<DwarfSections<&'a [u8]>> {
    let contents = storage.sections(object, &NEEDED.map(|id| id.name()))?;
    DwarfSections::load(|id| {
        let at = NEEDED.iter().position(|&needed| needed == id);
        Ok(at.map_or(&[][..], |at| contents[at]))
    })
}

fn package_sections<'a>(
    storage: &'a Storage,
    object: &Object<'a>,
) -> object::Result<DwarfPackageSections<&'a [u8]>> {
    let section = |id: SectionId| match id.dwo_name() {
        Some(name) => storage.section(object, name).or(Err(gimli::Error::Io)),
        None => Ok(&[][..]),
    };
    Ok(DwarfPackageSections::load(section).unwrap_or_else(|_: gimli::Error| {
        DwarfPackageSections::load(|_| Ok::<_, gimli::Error>(&[][..])).unwrap_or_default()
    }))
}

/// Opens the files of split units as they are needed.
pub(crate) struct Parts<'a> {
    file: &'a DwarfFile<'a>,
    options: &'a Options<'a>,
    storage: &'a Storage,
    package: Option<DwarfPackage<Slice<'a>>>,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(file: &'a DwarfFile<'a>, options: &'a Options<'a>, storage: &'a Storage) -> Self {
        Self { file, options, storage, package: file.package() }
    }

    /// The sections of a split unit, from the package or from a file of its own.
    pub(crate) fn load(
        &self,
        part: &addr2line::SplitDwarfLoad<Slice<'a>>,
        problems: &mut Vec<Problem>,
    ) -> Option<Arc<Dwarf<Slice<'a>>>> {
        let packed =
            self.package.as_ref().and_then(|package| package.find_cu(part.dwo_id, &part.parent).ok()?);
        if let Some(packed) = packed {
            return Some(Arc::new(packed));
        }
        let text = |slice: Option<Slice<'a>>| slice.map(|slice| slice.to_string_lossy().into_owned());
        let name = text(part.path)?;
        let candidates = self.file.part_candidates(&text(part.comp_dir).unwrap_or_default(), &name);
        let finder = Finder { storage: self.storage, options: self.options };
        let right = |object: &Object<'a>| self.is_part(object, part.dwo_id);
        let found = finder.part(&candidates, self.file.owner, problems, right);
        let Some(found) = found else {
            problems.push(Problem::MissingPart { path: name.into() });
            return None;
        };
        let mut dwarf = self.dwo_sections(&found.object)?;
        dwarf.make_dwo(&part.parent);
        Some(Arc::new(dwarf))
    }

    fn dwo_sections(&self, object: &Object<'a>) -> Option<Dwarf<Slice<'a>>> {
        let section = |id: SectionId| {
            let data = id.dwo_name().map_or(Ok(&[][..]), |name| self.storage.section(object, name));
            data.map(|data| Slice::new(data, endian(object)))
        };
        Dwarf::load(section).ok()
    }

    /// Whether the first unit of a file is the one that is wanted.
    fn is_part(&self, object: &Object<'a>, id: gimli::DwoId) -> bool {
        let unit = || {
            let dwarf = self.dwo_sections(object)?;
            let header = dwarf.units().next().ok()??;
            dwarf.unit(header).ok()?.dwo_id
        };
        unit() == Some(id)
    }
}
