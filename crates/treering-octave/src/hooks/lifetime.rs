//! Functions that come and go: their addresses are used again, and anonymous functions are told by
//! the place where they were made.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use super::Pointer;
use super::interpreter::{
    CONSTRUCT, DLD_D0, DLD_D1, EVALUATE, MEX_D0, MEX_D1, SCRIPT_D0, SCRIPT_D1, USER_D0, USER_D1,
    with_interpreter,
};
use super::object::Destroy;

type Evaluate = unsafe extern "C-unwind" fn(Pointer, Pointer, Pointer, c_int) -> Pointer;
type Construct = unsafe extern "C-unwind" fn(Pointer, Pointer, Pointer, Pointer, Pointer);

macro_rules! destruction {
    ($($hook:ident, $original:ident;)*) => { $(
        pub(super) unsafe extern "C-unwind" fn $hook(object: Pointer) {
            forget(object as usize);
            // SAFETY: the address is that of a destructor.
            unsafe {
                let original: Destroy = core::mem::transmute($original.load(Relaxed));
                original(object);
            }
        }
    )* };
}

destruction! {
    user_d0, USER_D0; user_d1, USER_D1; script_d0, SCRIPT_D0; script_d1, SCRIPT_D1;
    mex_d0, MEX_D0; mex_d1, MEX_D1; dld_d0, DLD_D0; dld_d1, DLD_D1;
}

fn forget(object: usize) {
    with_interpreter(|interpreter| {
        interpreter.objects.remove(object);
        interpreter.made_at.remove(&object);
    });
}

/// Forgets the anonymous function that was being made, when it is or could not be.
struct Made;

impl Drop for Made {
    fn drop(&mut self) {
        with_interpreter(|interpreter| interpreter.making = None);
    }
}

/// `@(...)` is evaluated: the node of the syntax tree knows its line and column, which the
/// function that it makes does not.
pub(super) unsafe extern "C-unwind" fn evaluate(
    to: Pointer,
    node: Pointer,
    evaluator: Pointer,
    results: c_int,
) -> Pointer {
    // SAFETY: the address is that of a function of this type; a node begins with the table of its
    // virtual functions, its line and its column.
    unsafe {
        let original: Evaluate = core::mem::transmute(EVALUATE.load(Relaxed));
        let [line, column] = *node.cast::<u8>().add(size_of::<usize>()).cast::<[c_int; 2]>();
        let is_place = (1..10_000_000).contains(&line) && (1..1_000_000).contains(&column);
        let place = is_place.then_some((line as u32, column as u32));
        with_interpreter(|interpreter| interpreter.making = place);
        let _made = Made;
        original(to, node, evaluator, results)
    }
}

pub(super) unsafe extern "C-unwind" fn construct(
    object: Pointer,
    scope: Pointer,
    a: Pointer,
    b: Pointer,
    c: Pointer,
) {
    // SAFETY: the address is that of a constructor of this type; the state as above.
    unsafe {
        let original: Construct = core::mem::transmute(CONSTRUCT.load(Relaxed));
        original(object, scope, a, b, c);
    }
    with_interpreter(|interpreter| {
        interpreter.objects.remove(object as usize);
        match interpreter.making.take() {
            Some(place) => interpreter.made_at.insert(object as usize, place),
            None => interpreter.made_at.remove(&(object as usize)),
        };
    });
}
