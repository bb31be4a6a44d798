//! The functions that were seen, each with a number.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::OnceLock;

use treering_events::cells::{Function, Module};
use treering_events::{Ref, function_kind};

use crate::filter::Filter;
use crate::store::{self, STORE, Store};
use crate::table::{Table, hash};
use crate::{record, sys};

/// The number of a function that is not recorded.
pub(crate) const IGNORED: u32 = u32::MAX;

/// Function numbers by the hash of name, file and line, and by address in memory. The upper halves of
/// the latter are marks of the libraries.
static BY_NAME: Table = Table::new();
static BY_ADDRESS: Table = Table::new();

/// Function numbers by the address that their module states; those of all modules.
static BY_STATED: Table = Table::new();

/// Where the functions' records stand, by number; read without a lock.
static PLACES: OnceLock<Option<&'static [AtomicU32]>> = OnceLock::new();
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The most functions there can be; addresses for their places are reserved at once.
const MOST: usize = 1 << 22;

/// The description of a new function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) file: &'a [u8],
    pub(crate) line: u32,
    pub(crate) kind: u32,
    pub(crate) timed_one_in: u32,
}

impl<'a> Described<'a> {
    /// A task, of which only the name is known.
    pub(crate) fn task(name: &'a [u8]) -> Self {
        Self { name, file: b"", line: 0, kind: function_kind::TASK, timed_one_in: 1 }
    }
}

/// The number of a function, given to it if it is new. Filters are asked only then.
///
/// Returns [`IGNORED`] for one that is filtered, and when there is no room; then the call counts as one that was
/// dropped.
pub(crate) fn number(described: Described, filter: &Filter) -> u32 {
    let key = hash(&[described.name, described.file, &described.line.to_le_bytes()]);
    if let Some(known) = find(key, &described) {
        return known;
    }
    let mut store = STORE.hold();
    if let Some(known) = find(key, &described) {
        return known;
    }
    if !filter.keeps(described.name) {
        store::change_header(|header| {
            header.ignored_functions.update(|count| count + treering_events::CODE as u32);
        });
        BY_NAME.insert(!key, u64::from(IGNORED));
        return IGNORED;
    }
    let Some(number) = add(&mut store, &described, 0, 0) else { return without_room() };
    BY_NAME.insert(key, u64::from(number));
    number
}

/// A function for which there is no room. It is not remembered, so that each of its calls comes here and is counted.
fn without_room() -> u32 {
    store::add_to_header(|header| &header.dropped_events, 1);
    IGNORED
}

fn find(key: u64, described: &Described) -> Option<u32> {
    let is_it = |number: u64| is_described(number as u32, described);
    let known = BY_NAME.find(key, is_it).map(|number| number as u32);
    // Those that are not recorded have no record to compare with; their hashes are all.
    known.or_else(|| BY_NAME.find(!key, |number| number == u64::from(IGNORED)).map(|_| IGNORED))
}

fn is_described(number: u32, described: &Described) -> bool {
    let function = record(number);
    function.line == described.line
        && record::text(store::base(), function.name) == described.name
        && record::text(store::base(), function.file) == described.file
}

/// The number of a function that is known already.
pub(crate) fn known(described: &Described) -> Option<u32> {
    find(hash(&[described.name, described.file, &described.line.to_le_bytes()]), described)
}

/// Another number of a function, for calls that are made from a line of their caller. Returns the
/// function's own where there is no room.
pub(crate) fn number_for_line(function: u32, call_line: u32) -> u32 {
    let mut store = STORE.hold();
    let known = *record(function);
    publish(&mut store, |next, id| treering_events::Function { next, id, call_line, ..known }).unwrap_or(function)
}

/// The number of the code at an address in memory, if it is known already.
#[inline]
pub(crate) fn known_at(address: u64) -> Option<u32> {
    let known = BY_ADDRESS.find(address, |_| true)?;
    if UNLOADS_UNSEEN.load(Ordering::Relaxed) && !is_of_same_library(address, known) {
        return None;
    }
    Some(known as u32)
}

/// Whether libraries may be unloaded without our [`dlclose`](crate::c_abi::dlclose): then each event
/// has to ask which one stands at its address.
static UNLOADS_UNSEEN: AtomicBool = AtomicBool::new(false);

/// From here on, or never, each event asks which library stands at its address.
pub(crate) fn watch_libraries(unloads_unseen: bool) {
    UNLOADS_UNSEEN.store(unloads_unseen, Ordering::Relaxed);
}

/// Whether the library at an address is the one for which the number was given. Where it is not, the
/// addresses of all are forgotten.
#[cold]
fn is_of_same_library(address: u64, known: u64) -> bool {
    if known >> 32 == u64::from(sys::library_mark(address)) {
        return true;
    }
    let _store = STORE.hold();
    BY_ADDRESS.clear();
    false
}

/// The number of the code at an address in memory, given to it if it is new. Code that was loaded
/// before, at whatever address, keeps its number.
#[cold]
pub(crate) fn number_at(address: u64, filter: &Filter) -> u32 {
    let found = sys::find_code(address);
    let kept = filter.is_open() || filter.keeps(&sys::symbol_name(address));
    let mark = u64::from(sys::library_mark(address)) << 32;
    let mut store = STORE.hold();
    if let Some(known) = BY_ADDRESS.find(address, |_| true) {
        return known as u32;
    }
    let module = module(&mut store, &found);
    let stated = found.stated_address;
    let is_it = |number: u64| {
        let function = record(number as u32);
        function.module == module && function.address == stated
    };
    let number = match BY_STATED.find(stated, is_it) {
        Some(known) => known as u32,
        None if kept => {
            let described = Described { kind: function_kind::NATIVE, ..Described::task(b"") };
            let Some(number) = add(&mut store, &described, stated, module) else { return without_room() };
            BY_STATED.insert(stated, u64::from(number));
            number
        }
        None => IGNORED,
    };
    BY_ADDRESS.insert(address, mark | u64::from(number));
    number
}

/// Forgets which code stood at addresses of libraries that are there no more: `is_gone` tells.
pub(crate) fn forget_addresses(is_gone: impl Fn(u64) -> bool) {
    let _store = STORE.hold();
    BY_ADDRESS.retain(|address, _| !is_gone(address));
}

/// The record of a module, made if it is new.
fn module(store: &mut Store, found: &sys::Code) -> Ref {
    let mut at = store.newest(|header| &header.modules);
    while at != 0 {
        let known = record::module(store::base(), at);
        let build_id = &known.build_id[..known.build_id_length as usize];
        if build_id == found.build_id() && record::text(store::base(), known.path) == found.path.as_bytes() {
            return at;
        }
        at = known.next;
    }
    let path = store.text(found.path.as_bytes());
    let (build_id, build_id_length) = (found.build_id, found.build_id_length);
    let module = |next| treering_events::Module { next, path, build_id, build_id_length, ..Default::default() };
    store.add::<Module>(|header| &header.modules, module).unwrap_or(0)
}

/// Adds a function.
fn add(store: &mut Store, described: &Described, address: u64, module: Ref) -> Option<u32> {
    let (name, file) = (store.text(described.name), store.text(described.file));
    let &Described { line, kind, timed_one_in, .. } = described;
    publish(store, |next, id| treering_events::Function {
        next,
        id,
        kind,
        line,
        name,
        file,
        address,
        module,
        timed_one_in,
        ..Default::default()
    })
}

/// Gives the next number to a function. `record` makes its record, with the place of the next one and the number.
fn publish(store: &mut Store, record: impl FnOnce(Ref, u32) -> treering_events::Function) -> Option<u32> {
    let number = COUNT.load(Ordering::Relaxed) + 1;
    let slot = places()?.get(number as usize)?;
    let place = store.add::<Function>(|header| &header.functions, |next| record(next, number))?;
    slot.store(place, Ordering::Relaxed);
    COUNT.store(number, Ordering::Release);
    Some(number)
}

/// The places of all functions by number; nothing without addresses for them.
fn places() -> Option<&'static [AtomicU32]> {
    *PLACES.get_or_init(|| sys::map_numbers(MOST))
}

/// Whether functions can have numbers.
pub(crate) fn has_room() -> bool {
    places().is_some()
}

/// The record of a function, which has a number.
pub(crate) fn record(number: u32) -> &'static treering_events::Function {
    let place = places().map_or(0, |places| places[number as usize].load(Ordering::Acquire));
    record::function(store::base(), place)
}

/// How many functions there are.
pub(crate) fn count() -> u32 {
    COUNT.load(Ordering::Acquire)
}

/// Writes all functions to a new store, under their numbers; their records and texts are still
/// mapped at `old`.
pub(crate) fn carry_over(store: &mut Store, old: *const u8) {
    let slots = places().unwrap_or_default();
    for slot in slots.iter().skip(1).take(count() as usize) {
        let before = *record::function(old, slot.load(Ordering::Relaxed));
        let module = match before.module {
            0 => 0,
            place => {
                let module = record::module(old, place);
                let path = String::from_utf8_lossy(record::text(old, module.path)).into_owned();
                let (build_id, build_id_length) = (module.build_id, module.build_id_length);
                self::module(store, &sys::Code { path, stated_address: 0, build_id, build_id_length })
            }
        };
        let name = store.text(record::text(old, before.name));
        let file = store.text(record::text(old, before.file));
        let again = |next| treering_events::Function { next, name, file, module, ..before };
        let Some(place) = store.add::<Function>(|header| &header.functions, again) else { return };
        slot.store(place, Ordering::Relaxed);
    }
}
