//! Pictures of a profile: a flame graph, the call graph for Graphviz, and a table for spreadsheets.

use std::path::Path;

use treering_analysis::{Basis, CallGraph, Corrected, Presentation};
use treering_profile::{Profile, RecursionRule};
use treering_report::{Canvas, GraphLimits, Picture, call_graph_dot, flame_graph_svg, flat_csv};

use super::To;
use crate::command::report::percent;
use crate::failure::Failure;

// The options of a picture.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Pictures (--to svg and dot)")]
pub(super) struct PictureOptions {
    /// For flame graphs: how wide they are [default: 1440]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(320..=32_000))]
    width: Option<u32>,
    /// For flame graphs: the most rows to draw [default: 150]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1500))]
    depth: Option<u32>,
    /// For call graphs: the most functions to draw, those of the largest total cost [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_nodes: Option<u32>,
    /// For call graphs: leave out functions below this share of the run, and calls below a fifth of it
    /// [default: 0.5]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min: Option<f64>,
}

impl PictureOptions {
    /// Refuses options that mean nothing for a format.
    pub(super) fn check(&self, to: To) -> Result<(), Failure> {
        let given = [
            ("--width", self.width.is_some(), matches!(to, To::Svg), "svg"),
            ("--depth", self.depth.is_some(), matches!(to, To::Svg), "svg"),
            ("--max-nodes", self.max_nodes.is_some(), matches!(to, To::Dot), "dot"),
            ("--min", self.min.is_some(), matches!(to, To::Dot), "dot"),
        ];
        match given.into_iter().find(|(_, is_given, fits, _)| *is_given && !fits) {
            Some((option, _, _, format)) => {
                Err(Failure::new(format_args!("{option} is for --to {format}")).status(2))
            }
            None => Ok(()),
        }
    }

    pub(super) fn flame_graph(
        &self,
        file: &Path,
        profile: &Profile,
        basis: &Basis,
    ) -> Result<Picture, Failure> {
        if profile.is_arcs_only() || profile.recursion == RecursionRule::Flat {
            return Err(without_stacks(file, profile));
        }
        let usual = Canvas::default();
        let canvas = Canvas {
            width: self.width.unwrap_or(usual.width),
            rows: self.depth.map_or(usual.rows, |rows| rows as usize),
        };
        Ok(flame_graph_svg(profile, basis, &canvas))
    }

    pub(super) fn graph(&self, part: &Corrected<'_>, basis: &Basis) -> Picture {
        let usual = GraphLimits::default();
        let limits = GraphLimits {
            functions: self.max_nodes.map_or(usual.functions, |nodes| nodes as usize),
            min_share: self.min.map_or(usual.min_share, |percent| percent / 100.0),
        };
        let graph = CallGraph::of(&part.profile, basis, Presentation::Contexts);
        call_graph_dot(&part.profile, &graph, &limits)
    }
}

/// The flat profile as a table for spreadsheets.
pub(super) fn table(part: &Corrected<'_>, basis: &Basis) -> Picture {
    let graph = CallGraph::of(&part.profile, basis, Presentation::Contexts);
    let mut left_out = vec!["left out: callers and callees, stacks, lines".to_owned()];
    if !graph.totals.is_known() {
        left_out.push("left out: total costs, which were not measured".to_owned());
    }
    Picture { text: flat_csv(&part.profile, &graph), left_out }
}

/// A flame graph is wanted of a profile that has no stacks.
fn without_stacks(file: &Path, profile: &Profile) -> Failure {
    let failure = Failure::new(format_args!(
        "{}: the profile has no stacks, so there is no flame graph",
        file.display()
    ));
    match (profile.is_arcs_only(), profile.code.is_empty()) {
        (true, true) => failure.hint("--to dot draws callers and callees"),
        (true, false) => failure
            .hint("treering count --tree -- PROGRAM counts stacks as well")
            .hint("--to dot draws callers and callees"),
        (false, _) => failure.hint("the profile is flat: record it again without --flat"),
    }
}
