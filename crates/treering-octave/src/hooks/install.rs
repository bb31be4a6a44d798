//! Places the hooks: everything is looked up and checked before anything is written.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::call::{builtin, mex_function, user_function, user_script};
use super::ending::{eval_option, shutdown};
use super::interpreter::{
    CONSTRUCT, COUNT_INDEX, CURRENT_LINE, DLD_D0, DLD_D1, ENTER, EVAL_OPTION, EVALUATE, EXIT, MEX_D0, MEX_D1,
    SCRIPT_D0, SCRIPT_D1, SET_ACTIVE, SHUTDOWN, STATEMENT, STATEMENT_LINE, USER_D0, USER_D1,
};
use super::lifetime::{
    construct, dld_d0, dld_d1, evaluate, mex_d0, mex_d1, script_d0, script_d1, user_d0, user_d1,
};
use super::object::{count_index, find_names};
use super::operator::{enter, exit, set_active};
use super::recorded::HOT;
use super::statement::statement;
use super::what;
use crate::memory;
use crate::refusal::Refusal;
use crate::slots::{self, Library, Slot};

/// A hook: the symbol that it stands in for, where the original is kept, its address, and
/// whether there must be slots for it.
type Hook = (&'static CStr, &'static AtomicUsize, usize, bool);

fn hooks_for_calls() -> [Hook; 17] {
    [
        (c"_ZN6octave14tree_evaluator21execute_user_functionER20octave_user_functioniRK17octave_value_list", &HOT.user_function, user_function as *const () as usize, true),
        (c"_ZN6octave14tree_evaluator19execute_user_scriptER18octave_user_scriptiRK17octave_value_list", &HOT.user_script, user_script as *const () as usize, true),
        (c"_ZN14octave_builtin7executeERN6octave14tree_evaluatorEiRK17octave_value_list", &HOT.builtin, builtin as *const () as usize, true),
        (c"_ZN19octave_mex_function7executeERN6octave14tree_evaluatorEiRK17octave_value_list", &HOT.mex_function, mex_function as *const () as usize, true),
        (c"_ZN20octave_user_functionD1Ev", &USER_D1, user_d1 as *const () as usize, true),
        (c"_ZN20octave_user_functionD0Ev", &USER_D0, user_d0 as *const () as usize, true),
        (c"_ZN18octave_user_scriptD1Ev", &SCRIPT_D1, script_d1 as *const () as usize, false),
        (c"_ZN18octave_user_scriptD0Ev", &SCRIPT_D0, script_d0 as *const () as usize, false),
        (c"_ZN19octave_mex_functionD1Ev", &MEX_D1, mex_d1 as *const () as usize, false),
        (c"_ZN19octave_mex_functionD0Ev", &MEX_D0, mex_d0 as *const () as usize, false),
        (c"_ZN19octave_dld_functionD1Ev", &DLD_D1, dld_d1 as *const () as usize, false),
        (c"_ZN19octave_dld_functionD0Ev", &DLD_D0, dld_d0 as *const () as usize, false),
        (c"_ZN6octave20tree_anon_fcn_handle8evaluateERNS_14tree_evaluatorEi", &EVALUATE, evaluate as *const () as usize, false),
        (c"_ZN20octave_user_functionC1ERKN6octave12symbol_scopeEPNS0_19tree_parameter_listES5_PNS0_19tree_statement_listE", &CONSTRUCT, construct as *const () as usize, false),
        (c"_ZN6octave11interpreter8shutdownEv", &SHUTDOWN, shutdown as *const () as usize, false),
        (c"_ZN6octave11interpreter24execute_eval_option_codeEv", &EVAL_OPTION, eval_option as *const () as usize, false),
        (c"_ZN6octave8profiler10set_activeEb", &SET_ACTIVE, set_active as *const () as usize, false),
    ]
}

fn hooks_for_operators() -> [Hook; 2] {
    [
        (
            c"_ZN6octave8profiler14enter_functionERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
            &ENTER,
            enter as *const () as usize,
            true,
        ),
        (
            c"_ZN6octave8profiler13exit_functionERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
            &EXIT,
            exit as *const () as usize,
            true,
        ),
    ]
}

fn hooks_for_lines() -> [Hook; 1] {
    [(
        c"_ZN6octave14tree_evaluator15visit_statementERNS_14tree_statementE",
        &STATEMENT,
        statement as *const () as usize,
        true,
    )]
}

/// Places the hooks that `bits` of [`what`] need, unless they are there already, and keeps this
/// library loaded.
///
/// # Errors
/// When anything is not as expected; then nothing was changed.
pub(crate) fn install(bits: u32) -> Result<(), Refusal> {
    let library = Library::find("liboctinterp.so").ok_or(Refusal::NoInterpreter)?;
    if bits & what::SIZES != 0 {
        COUNT_INDEX.store(count_index()?, Relaxed);
    }
    let mut hooks: Vec<Hook> = Vec::new();
    if HOT.user_function.load(Relaxed) == 0 {
        find_names()?;
        let current_line = library.function(c"_ZNK6octave14tree_evaluator12current_lineEv");
        CURRENT_LINE.store(current_line.unwrap_or(0), Relaxed);
        hooks.extend(hooks_for_calls());
    }
    if bits & what::OPERATORS != 0 && ENTER.load(Relaxed) == 0 {
        hooks.extend(hooks_for_operators());
    }
    if bits & what::LINES != 0 && STATEMENT.load(Relaxed) == 0 {
        STATEMENT_LINE.store(library.function(c"_ZNK6octave14tree_statement4lineEv")?, Relaxed);
        hooks.extend(hooks_for_lines());
    }
    place(&library, &hooks)?;
    if bits & what::MEMORY != 0 { memory::install(&library) } else { Ok(()) }
}

fn place(library: &Library, hooks: &[Hook]) -> Result<(), Refusal> {
    let mut slots: Vec<Slot> = Vec::new();
    let mut originals: Vec<(&AtomicUsize, usize)> = Vec::new();
    for &(symbol, original, hook, is_needed) in hooks {
        let address = match library.function(symbol) {
            Err(Refusal::Missing { .. }) if !is_needed => continue,
            address => address?,
        };
        let found = library.slots(symbol, hook)?;
        if found.is_empty() && is_needed {
            return Err(Refusal::NoSlot { symbol: symbol.to_string_lossy().into_owned() });
        }
        slots.extend(found);
        originals.push((original, address));
    }
    originals.iter().for_each(|(original, address)| original.store(*address, Relaxed));
    slots::pin(place as *const () as usize);
    slots::write(&slots)
}

/// Has `finish` called when the process ends; once, however often it is asked for.
pub(crate) fn finish_at_exit(finish: extern "C" fn()) {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    if ASKED.swap(1, Relaxed) == 0 {
        // SAFETY: the function stays, for this library is never unloaded.
        unsafe { libc::atexit(finish) };
    }
}
