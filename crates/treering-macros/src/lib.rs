//! The attribute `#[treering_runtime::instrument]`, which `treering-runtime` re-exports.
//!
//! ```ignore
//! #[treering_runtime::instrument]
//! fn solve(matrix: &Matrix) -> Vector { /* ... */ }
//! ```
//!
//! It works on tokens and uses no parser: a program that wants a profile should not have to
//! compile one. It puts one call of `treering_runtime::site!` into a function, so whether
//! that means anything is decided by the features of `treering-runtime` and not here.
//!
//! The code it makes names `::treering_runtime`; a program that renames the dependency has to use
//! `scope!` instead.
#![forbid(unsafe_code)]

mod expand;
mod function;
mod option;
mod problem;

use proc_macro::TokenStream;

/// Enters a function for as long as each of its activations lasts.
///
/// ```ignore
/// #[treering_runtime::instrument]
/// fn solve(matrix: &Matrix) -> Vector { .. }
///
/// #[treering_runtime::instrument(name = "fetch")]
/// async fn fetch_page(address: &str) -> io::Result<Page> { .. }
///
/// #[treering_runtime::instrument(leaf, timed_one_in = 16)]
/// fn hash(key: u64) -> u64 { .. }
/// ```
///
/// The function may be a method, generic, `unsafe` or `extern`. All instances of a generic function
/// are one function in the profile.
///
/// An `async` function is entered at its first poll, which is the call that is counted, and again
/// at each further one, so that waiting costs nothing. The shortest and longest activation and the
/// deviation are those of first polls.
///
/// | option | means | without it |
/// |---|---|---|
/// | `name = "..."` | the name in the profile | the path of the module, `::`, and the function's name |
/// | `timed_one_in = N` | only one in N calls is timed, all are counted; 0 times none | every call is timed |
/// | `leaf` | it enters nothing else, and costs less: see `treering_runtime::leaf!` | it may |
///
/// # Errors
/// A use on something that is no function, has no body, or is a `const fn`, which may run in the compiler,
/// is refused, and an `async fn` as a leaf.
#[proc_macro_attribute]
pub fn instrument(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let wanted = option::parse(arguments);
    match wanted.and_then(|options| function::parse(item.clone())?.fitting(options)) {
        Ok((options, function)) => expand::instrumented(function, options),
        // The item stays, or everything that uses it would be an error too.
        Err(problem) => problem.into_tokens().into_iter().chain(item).collect(),
    }
}
