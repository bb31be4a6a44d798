//! Libraries whose functions report themselves to another library than this one.
//!
//! The C library has empty functions with the names that compilers call for `-finstrument-functions`. If this library
//! was loaded with a plug-in instead of being part of the program from its start, or is linked into a program that
//! does not export its symbols, a plug-in finds those of the C library. Then this library does not see the plug-in's
//! functions, and reports that.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

use treering_events::setting;

use crate::options::Options;
use crate::process;
use crate::sys;

/// The function that compilers call at the start of every function.
const HOOK: &CStr = c"__cyg_profile_func_enter";

static WARNED: AtomicBool = AtomicBool::new(false);

/// Warns once of the libraries that report to another one, if there are any.
pub(crate) fn warn() {
    if WARNED.load(Ordering::Relaxed) || sees_all_plugins() || Options::from_environment().is_none() {
        return;
    }
    let paths = sys::modules_calling(HOOK);
    if paths.is_empty() || WARNED.swap(true, Ordering::Relaxed) {
        return;
    }
    // A warning is given once, although a plug-in may unload this library and another load it again.
    sys::stay_loaded();
    let paths = paths.join(", ");
    let what = format!(
        "functions of plug-ins such as {paths} are not recorded: they report to the C library, as the program was started without this library"
    );
    let how = match sys::own_path() {
        // `LD_PRELOAD` divides paths at these.
        Some(path) if path.contains([' ', ':']) => "; link it with -ltreering".to_owned(),
        Some(path) => format!("; start it with LD_PRELOAD={path}, or link it with -ltreering"),
        None => "; link it with -rdynamic".to_owned(),
    };
    sys::complain(&["treering: ", &what, &how]);
    if process::output().is_some() {
        process::set(setting::NOTE, b"", what.as_bytes());
    }
}

/// Whether a lookup of the hook finds ours.
fn sees_all_plugins() -> bool {
    sys::finds_ours(HOOK)
}
