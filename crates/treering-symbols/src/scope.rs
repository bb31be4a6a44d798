//! The names of the namespaces and types that a function is declared in.

use gimli::{UnitOffset, UnitRef};

use crate::object_file::Slice;

/// Namespaces, types and functions of a unit, each with the one around it.
///
/// Functions with a linkage name do not need it: that name tells all. Compilers give none to
/// functions that are only ever inlined within one unit, such as C++ lambdas, which would
/// otherwise all be called `operator()`.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    /// Sorted by position in the unit.
    entries: Vec<Scope>,
}

#[derive(Debug)]
struct Scope {
    offset: UnitOffset,
    /// The index of the one around it.
    parent: Option<usize>,
}

impl Scopes {
    /// Reads the unit once through; in languages without nested names nothing is read.
    pub(crate) fn read(unit: UnitRef<'_, Slice<'_>>) -> Self {
        let mut entries = Vec::new();
        if has_nested_names(unit) {
            // An unreadable entry ends the list; names then lack their scope.
            let _ = read_entries(unit, &mut entries);
        }
        Self { entries }
    }

    /// The name of the function at a position of the same unit, after the names of what is around
    /// it. The type that holds the `operator()` of a C++ lambda has no name and is called so.
    pub(crate) fn qualify(&self, unit: UnitRef<'_, Slice<'_>>, offset: UnitOffset, name: &str) -> String {
        match self.around(unit, offset) {
            Some(around) if name.starts_with("operator()") => {
                let outer = around.strip_suffix(UNNAMED_TYPE);
                outer
                    .map_or_else(|| format!("{around}::{name}"), |outer| format!("{outer}{{lambda}}::{name}"))
            }
            Some(around) => format!("{around}::{name}"),
            None => name.to_owned(),
        }
    }

    /// The names around an entry, outermost first, joined by `::`; nothing at the top level.
    fn around(&self, unit: UnitRef<'_, Slice<'_>>, offset: UnitOffset) -> Option<String> {
        let at = self.entries.binary_search_by_key(&offset, |scope| scope.offset).ok()?;
        let parent = |at: &usize| self.entries[*at].parent;
        let around = std::iter::successors(parent(&at), parent);
        let mut names: Vec<String> = around.filter_map(|at| name(unit, self.entries[at].offset)).collect();
        names.reverse();
        (!names.is_empty()).then(|| names.join("::"))
    }
}

/// Stands for the name of a type that has none.
const UNNAMED_TYPE: &str = "{unnamed type}";

/// The name of a namespace, type or function; that of a function's code is in the entry that it
/// is an instance of.
fn name(unit: UnitRef<'_, Slice<'_>>, offset: UnitOffset) -> Option<String> {
    let entry = unit.entry(offset).ok()?;
    if let Some(name) = entry.attr_value(gimli::DW_AT_name) {
        return Some(unit.attr_string(name).ok()?.to_string_lossy().into_owned());
    }
    let origin = entry
        .attr_value(gimli::DW_AT_abstract_origin)
        .or_else(|| entry.attr_value(gimli::DW_AT_specification));
    match (origin, entry.tag()) {
        (Some(gimli::AttributeValue::UnitRef(origin)), _) if origin < offset => name(unit, origin),
        (_, gimli::DW_TAG_namespace) => Some("(anonymous namespace)".to_owned()),
        (_, gimli::DW_TAG_subprogram) => None,
        _ => Some(UNNAMED_TYPE.to_owned()),
    }
}

/// The language that a unit states.
pub(crate) fn language(unit: UnitRef<'_, Slice<'_>>) -> Option<gimli::DwLang> {
    let mut entries = unit.entries();
    entries.next_entry().ok()?;
    match entries.current()?.attr_value(gimli::DW_AT_language)? {
        gimli::AttributeValue::Language(language) => Some(language),
        _ => None,
    }
}

fn has_nested_names(unit: UnitRef<'_, Slice<'_>>) -> bool {
    let flat = [
        gimli::DW_LANG_C,
        gimli::DW_LANG_C89,
        gimli::DW_LANG_C99,
        gimli::DW_LANG_C11,
        gimli::DW_LANG_C17,
        gimli::DW_LANG_Mips_Assembler,
    ];
    language(unit).is_none_or(|language| !flat.contains(&language))
}

fn read_entries(unit: UnitRef<'_, Slice<'_>>, scopes: &mut Vec<Scope>) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    // Depths count from where reading began last.
    let mut base = 0;
    let mut open: Vec<(isize, usize)> = Vec::new();
    while !entries.is_empty() {
        let (offset, depth) = (entries.next_offset(), base + entries.next_depth());
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        if is_scope(abbreviation.tag()) {
            open.truncate(open.partition_point(|&(around, _)| around < depth));
            let parent = open.last().map(|&(_, at)| at);
            open.push((depth, scopes.len()));
            scopes.push(Scope { offset, parent });
        }
        let Some(sibling) = sibling_if_barren(abbreviation, &mut entries)? else { continue };
        if sibling > offset {
            (entries, base) = (unit.entries_raw(Some(sibling))?, depth);
        }
    }
    Ok(())
}

/// Reads past the attributes of an entry; the entry's sibling, where it is stated, if nothing
/// below the entry can declare a function.
///
/// This holds for inlined calls and for code of a function that is described elsewhere, which are
/// most of the debug information of optimised programs.
fn sibling_if_barren<'a>(
    abbreviation: &gimli::Abbreviation,
    entries: &mut gimli::EntriesRaw<'_, Slice<'a>>,
) -> gimli::Result<Option<UnitOffset>> {
    let attributes = abbreviation.attributes();
    let instance = attributes.iter().any(|attribute| attribute.name() == gimli::DW_AT_abstract_origin);
    if !instance || !abbreviation.has_children() {
        entries.skip_attributes(attributes)?;
        return Ok(None);
    }
    let mut sibling = None;
    for &attribute in attributes {
        let attribute = entries.read_attribute(attribute)?;
        if let (gimli::DW_AT_sibling, gimli::AttributeValue::UnitRef(to)) =
            (attribute.name(), attribute.value())
        {
            sibling = Some(to);
        }
    }
    Ok(sibling)
}

fn is_scope(tag: gimli::DwTag) -> bool {
    let scopes = [
        gimli::DW_TAG_namespace,
        gimli::DW_TAG_class_type,
        gimli::DW_TAG_structure_type,
        gimli::DW_TAG_union_type,
        gimli::DW_TAG_subprogram,
    ];
    scopes.contains(&tag)
}
