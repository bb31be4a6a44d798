//! Functions whose machine code compilers divided: calls are told from transfers within one function.

use std::collections::{BTreeMap, HashMap};

use object::{Object as _, ObjectSymbol as _, SymbolKind};

use treering_profile::{FunctionId, FunctionKind, Piece, Profile};

use crate::answer::NamedFunction;
use crate::demangle::{piece, whole};
use crate::object_file::Object;

/// The functions of a profile that are pieces of others.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// The pieces that callers do not enter, or not only callers.
    known: HashMap<FunctionId, Piece>,
}

impl Pieces {
    /// Notes what is known of a function.
    pub(crate) fn note(&mut self, function: FunctionId, named: &NamedFunction) {
        if named.piece != Piece::default() {
            self.known.insert(function, named.piece);
        }
    }

    /// Whether control that comes from one function to the beginning of another one stays in one activation: both
    /// are pieces of one function.
    pub(crate) fn stays(&self, profile: &Profile, from: FunctionId, to: FunctionId) -> bool {
        let Some(entered) = self.known.get(&to).filter(|_| from != to) else { return false };
        let left = self.known.get(&from).copied().unwrap_or_default();
        profile.functions[from].is_same_source(&profile.functions[to]) && entered.goes_on_from(left)
    }
}

impl NamedFunction {
    /// Whether control that comes here from another function of the same module stays in one activation.
    pub(crate) fn goes_on_from(&self, other: &Self) -> bool {
        let source = |of: &Self| (of.name.clone(), of.linkage_name.clone(), of.file.clone(), of.line);
        self.start != other.start && source(self) == source(other) && self.piece.goes_on_from(other.piece)
    }
}

/// By where pieces begin: where the functions begin that they are pieces of, by symbols. A local one belongs to the
/// function of its name in the same file of the source, or else to the global one.
pub(crate) fn owners(object: &Object<'_>) -> BTreeMap<u64, (u64, Piece)> {
    let mut wholes: HashMap<(&str, u32), u64> = HashMap::new();
    let (mut pieces, mut file) = (Vec::new(), 0_u32);
    for symbol in object.symbols() {
        file += u32::from(symbol.kind() == SymbolKind::File);
        if symbol.kind() != SymbolKind::Text || !symbol.is_definition() {
            continue;
        }
        let Ok(name) = symbol.name() else { continue };
        let file = if symbol.is_local() { file } else { 0 };
        match piece(name) {
            whole if whole == Piece::default() => _ = wholes.entry((name, file)).or_insert(symbol.address()),
            piece => pieces.push((name, file, symbol.address(), piece)),
        }
    }
    let owner = |(name, file, start, piece)| {
        let names = whole(name);
        let found =
            names.into_iter().find_map(|name| wholes.get(&(name, file)).or(wholes.get(&(name, 0))))?;
        (*found != start).then_some((start, (*found, piece)))
    };
    pieces.into_iter().filter_map(owner).collect()
}

/// Tells the pieces of functions apart by their symbols, of which `symbol` knows those that begin at an address.
pub(crate) fn tell_apart(functions: &mut [NamedFunction], symbol: impl Fn(u64) -> Option<String>) {
    let mut alike: HashMap<(&str, &str, &str, u32), Vec<usize>> = HashMap::new();
    let native =
        |function: &NamedFunction| function.kind == FunctionKind::Native && !function.file.is_empty();
    for (at, function) in functions.iter().enumerate().filter(|(_, function)| native(function)) {
        let NamedFunction { name, linkage_name, file, line, .. } = function;
        alike.entry((name, linkage_name, file, *line)).or_default().push(at);
    }
    let several: Vec<usize> = alike.into_values().filter(|alike| alike.len() > 1).flatten().collect();
    for at in several {
        let symbol = functions[at].start.and_then(&symbol);
        functions[at].piece = symbol.map(|symbol| piece(&symbol)).unwrap_or_default();
    }
}
