//! Objects of Octave: their names, files and sizes, asked through their virtual functions.
//!
//! Octave is C++ of the Itanium ABI with libstdc++: an `octave_value_list` is returned through a
//! hidden pointer, begins with a vector of values, and a value is a pointer to an object that
//! begins with its table of virtual functions.

use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Pointer;
use super::interpreter::{BUILTIN_TABLE, COUNT_INDEX, FILE_INDEX, FREE_TEXT, NAME_INDEX, with_interpreter};
use crate::naming::{Description, Known, Sort};
use crate::refusal::Refusal;
use crate::slots;

/// A destructor, or the function that frees memory.
pub(super) type Destroy = unsafe extern "C-unwind" fn(Pointer);
type Read = unsafe extern "C-unwind" fn(*mut Text, Pointer);
type Count = unsafe extern "C-unwind" fn(Pointer) -> i64;

/// A `std::string`.
#[repr(C)]
pub(super) struct Text {
    pub(super) start: *const u8,
    pub(super) length: usize,
    inside: [u8; 16],
}

/// The largest number of elements of any argument.
pub(super) unsafe fn size_of_arguments(arguments: Pointer) -> u64 {
    let index = COUNT_INDEX.load(Relaxed);
    // SAFETY: a list begins with the first and last address of its values; each is a pointer to
    // an object, whose table has the function at the index that was verified.
    unsafe {
        let [mut at, end] = *arguments.cast::<[*const Pointer; 2]>();
        let mut largest = 0;
        while at < end {
            if !(*at).is_null() {
                let count: Count = core::mem::transmute(virtual_function(*at, index));
                largest = largest.max(count(*at));
            }
            at = at.add(1);
        }
        largest.max(0) as u64
    }
}

/// The function at an index of an object's virtual functions.
unsafe fn virtual_function(object: Pointer, index: usize) -> usize {
    // SAFETY: by the caller: the object has a table with that many functions.
    unsafe { (*object.cast::<*const usize>()).add(index).read() }
}

/// Describes an object that is seen for the first time.
#[cold]
#[inline(never)]
pub(super) unsafe fn describe(object: Pointer, sort: Sort) -> Known {
    // SAFETY: the object is a function of Octave; names are copied before anything else runs.
    unsafe {
        let made_at = with_interpreter(|interpreter| interpreter.made_at.get(&(object as usize)).copied());
        let name = if made_at.is_some() { Vec::new() } else { read(object, NAME_INDEX.load(Relaxed)) };
        let file = match sort {
            Sort::Builtin => Vec::new(),
            _ => read(object, FILE_INDEX.load(Relaxed)),
        };
        let is_loaded = sort == Sort::Builtin && *object.cast::<usize>() != BUILTIN_TABLE.load(Relaxed);
        let sort = if is_loaded { Sort::Extension } else { sort };
        let description = Description { name: &name, file: &file, sort, made_at };
        let known = catch_unwind(AssertUnwindSafe(|| {
            with_interpreter(|interpreter| {
                let known = interpreter.namer.known(&description);
                interpreter.objects.insert(object as usize, known);
                known
            })
        }));
        known.unwrap_or(Known::Ignored)
    }
}

/// The text that a virtual function of an object returns.
pub(super) unsafe fn read(object: Pointer, index: usize) -> Vec<u8> {
    if index == 0 {
        return Vec::new();
    }
    let mut text = Text { start: core::ptr::null(), length: 0, inside: [0; 16] };
    // SAFETY: the function at the index returns a text through a hidden pointer; a long one is on
    // the heap, and is freed by the function that the C++ library does it with.
    unsafe {
        let function: Read = core::mem::transmute(virtual_function(object, index));
        function(&raw mut text, object);
        let bytes = core::slice::from_raw_parts(text.start, text.length).to_vec();
        if text.start != text.inside.as_ptr() {
            let free: Destroy = core::mem::transmute(FREE_TEXT.load(Relaxed));
            free(text.start.cast_mut().cast());
        }
        bytes
    }
}

/// Finds where functions tell their names and files.
pub(super) fn find_names() -> Result<(), Refusal> {
    const USER: &CStr = c"_ZTV20octave_user_function";
    const NAME: &CStr = c"_ZNK20octave_user_function13profiler_nameB5cxx11Ev";
    const FILE_OF_USER: &CStr = c"_ZNK16octave_user_code13fcn_file_nameB5cxx11Ev";
    const FILE_OF_MEX: &CStr = c"_ZNK19octave_mex_function13fcn_file_nameB5cxx11Ev";
    let not_virtual = |symbol: &CStr| Refusal::NotVirtual { symbol: symbol.to_string_lossy().into_owned() };
    let missing = |symbol: &CStr| Refusal::Missing {
        symbol: symbol.to_string_lossy().into_owned(),
        library: "this process".to_owned(),
    };
    let name = slots::virtual_index(USER, NAME).ok_or_else(|| not_virtual(NAME))?;
    // The base class is the same for all, so its functions have one index in all tables.
    let of_base =
        slots::virtual_index(c"_ZTV14octave_builtin", c"_ZNK15octave_function13profiler_nameB5cxx11Ev");
    if of_base.is_some_and(|index| index != name) {
        return Err(not_virtual(c"_ZNK15octave_function13profiler_nameB5cxx11Ev"));
    }
    let file = slots::virtual_index(c"_ZTV19octave_mex_function", FILE_OF_MEX)
        .ok_or_else(|| not_virtual(FILE_OF_MEX))?;
    let of_user = slots::virtual_index(USER, FILE_OF_USER);
    if of_user.is_some_and(|index| index != file) {
        return Err(not_virtual(FILE_OF_USER));
    }
    let builtin_table =
        slots::virtual_table(c"_ZTV14octave_builtin").ok_or_else(|| missing(c"_ZTV14octave_builtin"))?;
    let free = slots::address_of(c"_ZdlPv").ok_or_else(|| missing(c"_ZdlPv"))?;
    NAME_INDEX.store(name, Relaxed);
    FILE_INDEX.store(file, Relaxed);
    BUILTIN_TABLE.store(builtin_table, Relaxed);
    FREE_TEXT.store(free, Relaxed);
    Ok(())
}

/// Where values tell how many elements they have. Newer versions hide the function, so its place
/// follows from its neighbours, which must agree.
pub(super) fn count_index() -> Result<usize, Refusal> {
    const VALUE: &CStr = c"_ZTV17octave_base_value";
    const NUMEL: &CStr = c"_ZNK17octave_base_value5numelEv";
    let after =
        slots::virtual_index(VALUE, c"_ZNK17octave_base_value12index_vectorEb").map(|index| index + 3);
    let before = slots::virtual_index(VALUE, c"_ZNK17octave_base_value3nnzEv").map(|index| index - 2);
    let itself = slots::virtual_index(VALUE, NUMEL);
    match (itself, after, before) {
        (Some(itself), _, _) => Ok(itself),
        (None, Some(after), Some(before)) if after == before => Ok(after),
        _ => Err(Refusal::NotVirtual { symbol: NUMEL.to_string_lossy().into_owned() }),
    }
}
