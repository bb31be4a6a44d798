//! The sections that hold debug information, of all the files that it is spread over.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{DebugAranges, Dwarf, DwarfPackage, DwarfPackageSections, RunTimeEndian, SectionId};
use object::Object as _;
use treering_cache::Cache;
use treering_proc::build_id;

use crate::contents::Contents;
use crate::debug_file::{Finder, owner_of};
use crate::kept_sections::{KeptSections, Origin};
use crate::needed_units;
use crate::object_file::{Object, Slice, Storage, are_compressed, contents, endian};
use crate::section::Section;
use crate::{Options, Problem};

/// The sections of a binary's debug information, read and decompressed. Several threads may each
/// make a reader of their own from it.
pub(crate) struct DwarfFile<'a> {
    main: Sections<'a>,
    supplementary: Option<Sections<'a>>,
    package: Option<DwarfPackageSections<&'a [u8]>>,
    endian: RunTimeEndian,
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
    /// was separated from it and lies at `path`. Sections that have to be decompressed are kept in the
    /// cache, and read from there the next time.
    pub(crate) fn read(
        finder: &Finder<'a, '_>,
        debug: &Object<'a>,
        path: &Path,
        binary: &Path,
        cache: Option<&Cache>,
        problems: &mut Vec<Problem>,
    ) -> object::Result<Self> {
        let supplementary = finder.supplementary(debug, path, problems);
        let supplementary =
            supplementary.map(|file| Sections::read(finder, &file.object, cache)).transpose()?;
        let package = package_candidates(path, binary);
        let owner = owner_of(binary);
        let has_index = |object: &Object<'_>| object.section_by_name(".debug_cu_index").is_some();
        let package = finder.part(&package, owner, problems, has_index);
        let package = package.map(|file| package_sections(finder.storage, &file.object)).transpose()?;
        let directory = binary.parent().unwrap_or(Path::new("")).to_path_buf();
        let main = Sections::read(finder, debug, cache)?;
        Ok(Self { main, supplementary, package, endian: endian(debug), directory, owner })
    }

    /// How many bytes of debug information there are, to judge what reading it costs.
    pub(crate) fn size(&self) -> u64 {
        self.main.info().len()
    }

    /// Whether kept sections turned out not to be as they were written. These are removed from the cache.
    pub(crate) fn forget_damaged(&self, cache: &Cache) -> bool {
        let kept = [Some(&self.main), self.supplementary.as_ref()].into_iter().flatten();
        let kept = kept.filter_map(|sections| sections.kept).filter(|kept| kept.is_damaged());
        kept.map(|kept| kept.forget(cache)).count() > 0
    }

    /// `.debug_info` of the binary without units that have nothing to do with `addresses`, which
    /// are sorted; nothing where it is as good to read all. See [`needed_units::reduced`].
    pub(crate) fn reduced_info(&self, addresses: &[u64]) -> Option<Vec<u8>> {
        let aranges = self.main.whole(SectionId::DebugAranges).ok()?;
        needed_units::reduced(self.main.info(), DebugAranges::new(aranges, self.endian), addresses)
    }

    /// A view of the sections with the abbreviations shared between units parsed.
    pub(crate) fn dwarf(&self) -> gimli::Result<Arc<Dwarf<Slice<'_>>>> {
        self.dwarf_with(None)
    }

    /// A view of the sections with `info` in place of `.debug_info`.
    pub(crate) fn dwarf_with<'s>(&'s self, info: Option<&'s [u8]>) -> gimli::Result<Arc<Dwarf<Slice<'s>>>> {
        let mut dwarf = self.main.dwarf(info, self.endian)?;
        if let Some(supplementary) = &self.supplementary {
            dwarf.set_sup(supplementary.dwarf(None, self.endian)?);
        }
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        Ok(Arc::new(dwarf))
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

/// The sections of one file, in the order of [`NEEDED`].
struct Sections<'a> {
    sections: Vec<Section<'a>>,
    kept: Option<&'a KeptSections>,
}

impl<'a> Sections<'a> {
    fn read(finder: &Finder<'a, '_>, object: &Object<'a>, cache: Option<&Cache>) -> object::Result<Self> {
        let names = NEEDED.map(|id| id.name());
        let origin = || Origin::of(build_id(object), contents(object).and_then(Contents::metadata));
        let place = cache.filter(|_| are_compressed(object, &names)).zip(origin());
        if let Some(kept) = place.as_ref().and_then(|(cache, origin)| KeptSections::open(cache, origin)) {
            let kept = finder.storage.take_kept(kept);
            let section = |name| kept.section(name).map(|(start, length)| Section::kept(kept, start, length));
            let sections = names.map(|name| section(name).unwrap_or_default()).into();
            return Ok(Self { sections, kept: Some(kept) });
        }
        let read = Self { sections: finder.storage.sections(object, &names)?, kept: None };
        if let Some((cache, origin)) = place {
            // Sections that cannot be kept are decompressed again next time.
            let _ = read.keep(cache, &origin);
        }
        Ok(read)
    }

    fn keep(&self, cache: &Cache, origin: &Origin) -> io::Result<()> {
        let bytes: Vec<_> = self.sections.iter().map(Section::whole).collect::<Result<_, _>>()?;
        let sections: Vec<_> = NEEDED.iter().map(|id| id.name()).zip(bytes).collect();
        KeptSections::keep(cache, origin, &sections, needed_units::lengths(self.info()).unwrap_or_default())
    }

    fn section(&self, id: SectionId) -> Option<&Section<'a>> {
        self.sections.get(NEEDED.iter().position(|&needed| needed == id)?)
    }

    fn info(&self) -> &Section<'a> {
        self.section(SectionId::DebugInfo).expect("it is among those that are needed")
    }

    fn whole(&self, id: SectionId) -> gimli::Result<&[u8]> {
        self.section(id).map_or(Ok(&[]), |section| section.whole().or(Err(gimli::Error::Io)))
    }

    fn dwarf<'s>(&'s self, info: Option<&'s [u8]>, endian: RunTimeEndian) -> gimli::Result<Dwarf<Slice<'s>>> {
        Dwarf::load(|id| {
            let bytes = match info.filter(|_| id == SectionId::DebugInfo) {
                Some(info) => info,
                None => self.whole(id)?,
            };
            Ok(Slice::new(bytes, endian))
        })
    }
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
