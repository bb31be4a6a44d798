//! Views of an analysed profile: text and pictures for people, JSON for programs.
//!
//! `treering-analysis` computes the numbers; this crate rounds, aligns and words them. It
//! prints nothing and asks the environment nothing: a view is a `String`, and whether it may use
//! colour and how wide it may be is said by the caller in a [`Style`].
//!
//! ```
//! let profile = treering_testing::stacks("main;work 750\n main;copy 250");
//! let summary = treering_report::summary(&profile, &treering_report::Style::default(), 5);
//! assert!(summary.contains("75.0     [72.2, 77.6]     75.0  work"), "{summary}");
//! ```
#![forbid(unsafe_code)]

mod block_list;
mod blocks;
mod call_graph;
mod cbs_xml;
mod ci;
mod colour;
mod columns;
mod csv;
mod difference;
mod dot;
mod drcov;
mod exact_column;
mod facts;
mod flame_graph;
mod flat;
mod function;
mod gcov_json;
mod growth;
mod header;
mod histogram;
mod json;
mod lcov;
mod lines;
mod measuring;
mod name;
mod number;
mod options;
mod owners;
mod picture;
mod points;
mod printable;
mod prof;
mod scale;
mod style;
mod summary;
mod table;
mod timeline;
mod tree;
mod wakers;
mod watch;

pub use block_list::block_list_text;
pub use blocks::{Disassemble, blocks_text};
pub use call_graph::call_graph_text;
pub use cbs_xml::cbs_xml;
pub use ci::{Measured, bencher_json, benchmark_action_json, junit_xml};
pub use csv::flat_csv;
pub use difference::{
    Outcome, Rows, Verdict, difference_blocks_json, difference_blocks_text, difference_call_graph_text,
    difference_json, difference_lines_json, difference_lines_text, difference_markdown, difference_text,
    difference_tree_text, in_ascii, markdown_code, markdown_text,
};
pub use dot::{GraphLimits, call_graph_dot};
pub use drcov::{Binary, drcov};
pub use facts::lines as facts;
pub use flame_graph::{Canvas, flame_graph_svg};
pub use flat::flat_text;
pub use function::labels;
pub use gcov_json::gcov_json;
pub use growth::{GrowthView, growth_json, growth_text, growth_verdict};
pub use histogram::histogram_text;
pub use json::{
    block_list_json, blocks_json, call_graph_json, flat_json, histogram_json, lines_json, metrics_json,
    points_json, processes_json, prof_json, threads_json, timeline_json, tree_json, wakers_json,
};
pub use lcov::lcov_text;
pub use lines::lines_text;
pub use number::{grouped, plural};
pub use options::{Amount, Options, SortKey};
pub use owners::{metrics_text, processes_text, threads_text};
pub use picture::{Picture, is_coverage, is_picture};
pub use points::points_text;
pub use printable::{printable, printable_lines};
pub use prof::prof_text;
pub use style::Style;
pub use summary::summary;
pub use timeline::{timeline_cells, timeline_text};
pub use tree::tree_text;
pub use wakers::wakers_text;
pub use watch::{Doing, Lately, watch_head, watch_text};
