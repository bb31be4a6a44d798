//! Operators, of which Octave's own profiler is told, and only it.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::panic::{AssertUnwindSafe, catch_unwind};

use treering_runtime::Call;

use super::interpreter::{ENTER, EXIT, SET_ACTIVE, with_interpreter};
use super::object::Text;
use super::{Pointer, recorded, wanted, what};
use crate::naming::{Description, Known, Sort};

type Named = unsafe extern "C-unwind" fn(Pointer, *const Text);

pub(super) unsafe extern "C-unwind" fn enter(profiler: Pointer, name: *const Text) {
    // SAFETY: the address is that of a function of this type; the text is Octave's.
    unsafe {
        let bits = recorded();
        if wanted() & what::OPERATORS == 0 {
            let original: Named = core::mem::transmute(ENTER.load(Relaxed));
            return original(profiler, name);
        }
        let text = core::slice::from_raw_parts((*name).start, (*name).length);
        let call = match operator(text) {
            Known::Function(function) if bits != 0 => function.enter(),
            _ => Call::from_raw(0),
        };
        with_interpreter(|interpreter| interpreter.open_operators.push((name as usize, call)));
    }
}

pub(super) unsafe extern "C-unwind" fn exit(profiler: Pointer, name: *const Text) {
    // SAFETY: the address is that of a function of this type, and Octave has called it with these. The text is only
    // told by where it is.
    unsafe {
        let ended = with_interpreter(|interpreter| {
            let open = &mut interpreter.open_operators;
            let at = open.iter().rposition(|(place, _)| *place == name as usize)?;
            open.drain(at..).next()
        });
        if let Some((_, call)) = ended {
            return call.leave();
        }
        if wanted() & what::OPERATORS == 0 {
            let original: Named = core::mem::transmute(EXIT.load(Relaxed));
            original(profiler, name);
        }
    }
}

/// The operator of a name as Octave's profiler gives it; functions come here as well, but are
/// known by their own hooks.
fn operator(name: &[u8]) -> Known {
    if ![&b"binary "[..], b"prefix ", b"postfix "].iter().any(|start| name.starts_with(start)) {
        return Known::Ignored;
    }
    with_interpreter(|interpreter| {
        if let Some(known) = interpreter.operators.get(name) {
            return *known;
        }
        let description = Description { name, file: b"", sort: Sort::Operator, made_at: None };
        let known = catch_unwind(AssertUnwindSafe(|| interpreter.namer.known(&description)));
        let known = known.unwrap_or(Known::Ignored);
        interpreter.operators.insert(name.to_vec(), known);
        known
    })
}

/// Octave's own profiler, once it was switched.
static PROFILER: AtomicUsize = AtomicUsize::new(0);

type SetActive = unsafe extern "C-unwind" fn(Pointer, bool);

/// Octave's own profiler is switched. It is kept, for [`silence_native`].
pub(super) unsafe extern "C-unwind" fn set_active(profiler: Pointer, is_on: bool) {
    PROFILER.store(profiler as usize, Relaxed);
    // SAFETY: the address is that of a function of this type, and Octave has called it with these.
    unsafe {
        let original: SetActive = core::mem::transmute(SET_ACTIVE.load(Relaxed));
        original(profiler, is_on);
    }
}

/// Has Octave's own profiler, which was just switched on so that a window shows it, record nothing.
#[cfg(not(test))]
pub(crate) fn silence_native() {
    let profiler = PROFILER.load(Relaxed);
    if profiler != 0 {
        // SAFETY: the address is that of a function of this type; the profiler lives as long as the interpreter.
        unsafe {
            let original: SetActive = core::mem::transmute(SET_ACTIVE.load(Relaxed));
            original(profiler as Pointer, false);
        }
    }
}
