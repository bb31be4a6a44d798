//! The functions that were seen, each with a number.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use treering_events::{Function, Module, Ref, function_kind};

use crate::filter::Filter;
use crate::store::{self, LOCK};
use crate::sys;
use crate::table::{Table, hash};

/// The number of a function that is not recorded.
pub(crate) const IGNORED: u32 = u32::MAX;

/// Function numbers by the hash of name, file and line, and by address in memory. The upper halves of
/// the latter are marks of the libraries.
static BY_NAME: Table = Table::new();
static BY_ADDRESS: Table = Table::new();

/// Function numbers by the address that their module states; those of all modules.
static BY_STATED: Table = Table::new();

/// Where the functions' records stand, by number; read without a lock.
static PLACES: AtomicPtr<u32> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The most functions there can be; addresses for their places are reserved at once.
const MOST: usize = 1 << 22;

/// What is to be known of a function that is new.
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
/// Returns [`IGNORED`] for one that is filtered, and when there is no room.
pub(crate) fn number(described: Described, filter: &Filter) -> u32 {
    let key = hash(&[described.name, described.file, &described.line.to_le_bytes()]);
    if let Some(known) = find(key, &described) {
        return known;
    }
    let _held = LOCK.hold();
    if let Some(known) = find(key, &described) {
        return known;
    }
    let number = if filter.keeps(described.name) { add(&described, 0, 0) } else { None };
    if number.is_none() {
        // SAFETY: the header is mapped and the lock is held.
        unsafe { (*store::header()).ignored_functions += treering_events::CODE as u32 };
        BY_NAME.insert(!key, u64::from(IGNORED));
    } else {
        BY_NAME.insert(key, u64::from(number.unwrap_or(IGNORED)));
    }
    number.unwrap_or(IGNORED)
}

fn find(key: u64, described: &Described) -> Option<u32> {
    let is_it = |number: u64| is_described(number as u32, described);
    let known = BY_NAME.find(key, is_it).map(|number| number as u32);
    // Those that are not recorded have no record to compare with; their hashes are all.
    known.or_else(|| BY_NAME.find(!key, |number| number == u64::from(IGNORED)).map(|_| IGNORED))
}

fn is_described(number: u32, described: &Described) -> bool {
    // SAFETY: numbers in the table have records, which are never changed.
    let function = unsafe { &*record(number) };
    function.line == described.line
        && store::text(function.name) == described.name
        && store::text(function.file) == described.file
}

/// The number of a function that is known already.
pub(crate) fn known(described: &Described) -> Option<u32> {
    find(hash(&[described.name, described.file, &described.line.to_le_bytes()]), described)
}

/// Another number of a function, for calls that are made from a line of their caller. Returns the
/// function's own where there is no room.
pub(crate) fn number_for_line(function: u32, call_line: u32) -> u32 {
    let _held = LOCK.hold();
    // SAFETY: the function has a number, so it has a record; the new one was allocated for this, and is not published
    // yet.
    unsafe {
        let known = &*record(function);
        let number = COUNT.load(Ordering::Relaxed) + 1;
        let place = if (number as usize) < MOST { store::allocate(Function::BYTES as u64) } else { None };
        let Some(place) = place.map(to_ref) else { return function };
        let next = treering_events::first((*store::header()).functions);
        let function = store::at::<Function>(place);
        function.write(Function { next, id: number, call_line, ..*known });
        store::seal::<Function>(place, function.cast());
        PLACES.load(Ordering::Relaxed).add(number as usize).write(place);
        store::list(&raw mut (*store::header()).functions, place);
        COUNT.store(number, Ordering::Release);
        number
    }
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
    let _held = LOCK.hold();
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
    let _held = LOCK.hold();
    if let Some(known) = BY_ADDRESS.find(address, |_| true) {
        return known as u32;
    }
    let module = module(&found);
    let stated = found.stated_address;
    let is_it = |number: u64| {
        // SAFETY: numbers in the table have records.
        let function = unsafe { &*record(number as u32) };
        function.module == module && function.address == stated
    };
    let number = match BY_STATED.find(stated, is_it) {
        Some(known) => known as u32,
        None => {
            let described = Described { kind: function_kind::NATIVE, ..Described::task(b"") };
            let number = if kept { add(&described, stated, module) } else { None };
            if let Some(number) = number {
                BY_STATED.insert(stated, u64::from(number));
            }
            number.unwrap_or(IGNORED)
        }
    };
    BY_ADDRESS.insert(address, mark | u64::from(number));
    number
}

/// Forgets which code stood at addresses of libraries that are there no more: `is_gone` tells.
pub(crate) fn forget_addresses(is_gone: impl Fn(u64) -> bool) {
    let _held = LOCK.hold();
    BY_ADDRESS.retain(|address, _| !is_gone(address));
}

/// The record of a module, made if it is new. The lock is held.
fn module(found: &sys::Code) -> Ref {
    // SAFETY: the header is mapped; records of the list are whole.
    unsafe {
        let header = store::header();
        let mut at = treering_events::first((*header).modules);
        while at != 0 {
            let known = store::at::<Module>(at);
            let length = (*known).build_id_length as usize;
            let same_build = (&(*known).build_id)[..length] == *found.build_id();
            if same_build && store::text((*known).path) == found.path.as_bytes() {
                return at;
            }
            at = (*known).next;
        }
        let path = store::store_text(found.path.as_bytes());
        let Some(place) = store::allocate(Module::BYTES as u64) else { return 0 };
        let place = to_ref(place);
        let module = store::at::<Module>(place);
        (*module).path = path;
        (*module).build_id = found.build_id;
        (*module).build_id_length = found.build_id_length;
        (*module).next = treering_events::first((*header).modules);
        store::seal::<Module>(place, module.cast());
        store::list(&raw mut (*header).modules, place);
        place
    }
}

/// Adds a function. The lock is held.
fn add(described: &Described, address: u64, module: Ref) -> Option<u32> {
    let number = COUNT.load(Ordering::Relaxed) + 1;
    if number as usize >= MOST {
        return None;
    }
    if PLACES.load(Ordering::Relaxed).is_null() {
        PLACES.store(sys::map_private(MOST * 4).cast(), Ordering::Release);
    }
    let places = PLACES.load(Ordering::Relaxed);
    if places.is_null() {
        return None;
    }
    let name = store::store_text(described.name);
    let file = store::store_text(described.file);
    let place = to_ref(store::allocate(Function::BYTES as u64)?);
    // SAFETY: the record was allocated for this, and is not published yet; there is room for the places of all
    // functions.
    unsafe {
        let function = store::at::<Function>(place);
        let next = treering_events::first((*store::header()).functions);
        let &Described { line, kind, timed_one_in, .. } = described;
        let base = Function { next, id: number, kind, line, name, file, ..Function::default() };
        function.write(Function { address, module, timed_one_in, ..base });
        store::seal::<Function>(place, function.cast());
        places.add(number as usize).write(place);
        store::list(&raw mut (*store::header()).functions, place);
    }
    COUNT.store(number, Ordering::Release);
    Some(number)
}

/// The record of a function.
pub(crate) fn record(number: u32) -> *mut Function {
    // SAFETY: places of all numbers that were given are written.
    store::at(unsafe { *PLACES.load(Ordering::Acquire).add(number as usize) })
}

/// How many functions there are.
pub(crate) fn count() -> u32 {
    COUNT.load(Ordering::Acquire)
}

/// Writes all functions to a new store, under their numbers; their records and texts are still
/// mapped at `old`. The lock is held.
pub(crate) fn carry_over(old: *const u8) {
    let places = PLACES.load(Ordering::Relaxed);
    for number in 1..=count() {
        // SAFETY: the places are those of the old store, which stays mapped.
        unsafe {
            let before = &*old.add(*places.add(number as usize) as usize * 64).cast::<Function>();
            let old_text = |text: treering_events::Text| {
                core::slice::from_raw_parts(old.add(text.at as usize), text.length as usize)
            };
            let module = match before.module {
                0 => 0,
                place => {
                    let module = &*old.add(place as usize * 64).cast::<Module>();
                    module_again(module, old_text(module.path))
                }
            };
            let name = store::store_text(old_text(before.name));
            let file = store::store_text(old_text(before.file));
            let Some(place) = store::allocate(Function::BYTES as u64) else { return };
            let place = to_ref(place);
            let next = treering_events::first((*store::header()).functions);
            store::at::<Function>(place).write(Function { next, name, file, module, ..*before });
            store::seal::<Function>(place, store::at(place));
            places.add(number as usize).write(place);
            store::list(&raw mut (*store::header()).functions, place);
        }
    }
}

fn module_again(before: &Module, path: &[u8]) -> Ref {
    let path = String::from_utf8_lossy(path).into_owned();
    let (build_id, build_id_length) = (before.build_id, before.build_id_length);
    module(&sys::Code { path, stated_address: 0, build_id, build_id_length })
}

/// A place in units.
pub(crate) fn to_ref(place: u64) -> Ref {
    (place / treering_events::UNIT) as Ref
}
