//! The sections that hold debug information, of all the files that it is spread over.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gimli::{Dwarf, DwarfPackage, DwarfPackageSections, RunTimeEndian, SectionId};
use object::{Object as _, ObjectSection as _};
use treering_cache::Cache;
use treering_proc::build_id;

use crate::contents::Contents;
use crate::debug_file::{Finder, owner_of};
use crate::kept_sections::{KeptSections, Origin};
use crate::needed_units::{self, NeededUnits, WORTH_REDUCING};
use crate::object_file::{Object, Slice, Storage, are_compressed, contents, endian};
use crate::section::Section;
use crate::unit_index::UnitIndex;
use crate::{Options, Problem};

/// The sections of a binary's debug information, read and decompressed. Several threads may each
/// make a reader of their own from it.
pub(crate) struct DwarfFile<'a> {
    main: Sections<'a>,
    supplementary: Option<Sections<'a>>,
    package: Option<DwarfPackageSections<&'a [u8]>>,
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
    /// cache, and so is what units describe if they had to be asked for it.
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
        Ok(Self { main, supplementary, package, directory, owner })
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

    /// The units that have to do with `addresses`, which are sorted; nothing where it is as good to read all. See
    /// [`needed_units::needed`].
    pub(crate) fn needed_units(&self, addresses: &[u64]) -> Option<NeededUnits> {
        let abbreviations =
            Slice::new(self.main.whole(SectionId::DebugAbbrev).ok()?, self.main.endian).into();
        let lines = self.main.section(SectionId::DebugLine)?;
        needed_units::needed(self.main.info(), lines, self.main.units()?, addresses, &abbreviations)
    }

    /// A view of the sections with the abbreviations shared between units parsed.
    pub(crate) fn dwarf(&self) -> gimli::Result<Arc<Dwarf<Slice<'_>>>> {
        self.dwarf_with(None)
    }

    /// The same, with some units alone.
    pub(crate) fn dwarf_with<'s>(
        &'s self,
        units: Option<&'s NeededUnits>,
    ) -> gimli::Result<Arc<Dwarf<Slice<'s>>>> {
        let mut dwarf = self.main.dwarf(units)?;
        if let Some(supplementary) = &self.supplementary {
            dwarf.set_sup(supplementary.dwarf(None)?);
        }
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        Ok(Arc::new(dwarf))
    }

    /// The package that split units were collected in, if there is one.
    pub(crate) fn package(&self) -> Option<DwarfPackage<Slice<'_>>> {
        let endian = self.main.endian;
        let empty = Slice::new(&[], endian);
        self.package.as_ref()?.borrow(|section| Slice::new(section, endian), empty).ok()
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
    endian: RunTimeEndian,
    /// The units, once they were asked for; nothing if it would not help to know them.
    units: OnceLock<Option<UnitIndex>>,
}

/// The sections from which an index of units is made, apart from `.debug_info`.
const INDEXED: [SectionId; 5] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
];

/// More units than that, if they have to be asked for their code, are worth a file that holds the answers.
const WORTH_KEEPING: usize = 32;

impl<'a> Sections<'a> {
    fn read(finder: &Finder<'a, '_>, object: &Object<'a>, cache: Option<&Cache>) -> object::Result<Self> {
        let names = NEEDED.map(|id| id.name());
        let (storage, endian) = (finder.storage, endian(object));
        let are_compressed = are_compressed(object, &names);
        let is_large = || {
            let info = object.section_by_name(SectionId::DebugInfo.name());
            info.is_some_and(|info| info.size() > WORTH_REDUCING)
        };
        let origin = || Origin::of(build_id(object), contents(object).and_then(Contents::metadata));
        let place = cache.filter(|_| are_compressed || is_large()).zip(origin());
        let kept = place.as_ref().and_then(|(cache, origin)| KeptSections::open(cache, origin));
        let kept = kept.map(|kept| storage.take_kept(kept));
        let sections = match kept.filter(|kept| kept.has_sections()) {
            Some(kept) => {
                let section =
                    |name| kept.section(name).map(|(start, length)| Section::kept(kept, start, length));
                names.map(|name| section(name).unwrap_or_default()).into()
            }
            None => storage.sections(object, &names)?,
        };
        let read = Self { sections, kept, endian, units: OnceLock::new() };
        if let (Some((cache, origin)), None) = (place, kept) {
            // An index that cannot be kept is made again next time.
            let _ = read.keep(cache, &origin, are_compressed);
        }
        Ok(read)
    }

    fn keep(&self, cache: &Cache, origin: &Origin, are_compressed: bool) -> io::Result<()> {
        let units = self.units();
        if !are_compressed && units.is_none_or(|units| units.asked() < WORTH_KEEPING) {
            return Ok(());
        }
        let mut sections = Vec::new();
        if are_compressed {
            for (id, section) in NEEDED.iter().zip(&self.sections) {
                sections.push((id.name(), section.whole()?));
            }
        }
        KeptSections::keep(cache, origin, &sections, units)
    }

    /// The code that the units describe; nothing where it is as good to read all of them.
    fn units(&self) -> Option<&UnitIndex> {
        if self.info().len() < WORTH_REDUCING || self.endian != RunTimeEndian::Little {
            return None;
        }
        let kept = self.kept.and_then(KeptSections::units);
        let is_right = |units: &&UnitIndex| units.section_length() == self.info().len();
        kept.filter(is_right).or_else(|| self.units.get_or_init(|| self.read_units()).as_ref())
    }

    fn read_units(&self) -> Option<UnitIndex> {
        let needed = |id| -> gimli::Result<_> {
            let bytes = if INDEXED.contains(&id) { self.whole(id)? } else { &[] };
            Ok(Slice::new(bytes, self.endian))
        };
        UnitIndex::read(self.info(), &Dwarf::load(needed).ok()?)
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

    fn dwarf<'s>(&'s self, units: Option<&'s NeededUnits>) -> gimli::Result<Dwarf<Slice<'s>>> {
        Dwarf::load(|id| {
            let needed = units.and_then(|units| match id {
                SectionId::DebugInfo => Some(&*units.info),
                SectionId::DebugLine => units.lines.as_deref(),
                _ => None,
            });
            let bytes = needed.map_or_else(|| self.whole(id), Ok)?;
            Ok(Slice::new(bytes, self.endian))
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
