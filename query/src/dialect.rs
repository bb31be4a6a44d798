//! Arithmetic as DuckDB does it: quotients and means of whole numbers have decimal places.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawWindowExpr,
};
use datafusion::logical_expr::{Expr, ExprSchemable as _, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Divides numbers as doubles, and takes means of doubles.
///
/// The engine itself drops what is behind the decimal point, or all but four digits of it: `self / run_cost`, a share,
/// would be 0.
#[derive(Debug)]
pub(crate) struct Doubles;

impl ExprPlanner for Doubles {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_exact = |side: &Expr| {
            let found = side.get_type(schema)?;
            Ok::<_, datafusion::error::DataFusionError>(found.is_integer() || found.is_decimal())
        };
        if raw.op != BinaryOperator::Divide || !is_exact(&raw.left)? || !is_exact(&raw.right)? {
            return Ok(PlannerResult::Original(raw));
        }
        Ok(PlannerResult::Original(RawBinaryExpr {
            op: raw.op,
            left: double(raw.left),
            right: double(raw.right),
        }))
    }

    fn plan_aggregate(&self, mut raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        if MEANS.contains(&raw.func.name()) {
            raw.args = raw.args.into_iter().map(double).collect();
        }
        Ok(PlannerResult::Original(raw))
    }

    fn plan_window(&self, mut raw: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if MEANS.contains(&raw.func_def.name()) {
            raw.args = raw.args.into_iter().map(double).collect();
        }
        Ok(PlannerResult::Original(raw))
    }
}

/// The functions whose values lie between those of their rows.
const MEANS: [&str; 2] = ["avg", "median"];

fn double(of: Expr) -> Expr {
    cast(of, DataType::Float64)
}
