//! The interactive page of a profile: one HTML file that reads on any machine without a network.
//!
//! This side puts into the page what only it can know: names, trees, costs, source text,
//! disassembled blocks, what was lost. The script in `web/` (bundled into `assets/`, which is what
//! is linked in, so that a build needs no Node) sums, sorts, lays out and draws.
//!
//! The data are columns of the narrowest fixed width in a [JsonSlabs] container, compressed with
//! gzip and written as base64; the browser inflates them itself and views them as typed arrays.
//! Nothing in a profile can act in the page: names are data, scripts are allowed by their hashes
//! only, and the page's Content-Security-Policy lets it ask nothing of any network. A page that follows a
//! running program may ask the server that it came from, and no other ([`Page::live_html`]).
//!
//! [JsonSlabs]: https://github.com/mstange/json-slabs/blob/main/FORMAT.md
//!
//! ```
//! use treering_analysis::Corrected;
//! use treering_viewer::{Page, View};
//!
//! let profile = treering_testing::stacks("main;work 750\n main;copy 250");
//! let corrected = Corrected::raw(&profile);
//! let view = View::of(&corrected);
//! let page = Page::of(&view);
//! assert!(page.html().starts_with("<!doctype html>"));
//! ```
#![forbid(unsafe_code)]

mod blocks;
mod changes;
mod columns;
mod compared;
mod details;
mod fixed;
mod functions;
mod head;
mod html;
mod lines;
mod page;
mod time;
mod tree;

pub use changes::{ArcChange, Changes, FunctionChange};
pub use compared::{Compared, ComparedBlock, FunctionBlocks, FunctionLines, PairedLine, Side};
pub use html::is_page;
pub use page::{Disassemble, Page, View};
