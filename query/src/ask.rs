//! The engine, with the tables of an archive.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry as _;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion::sql::parser::DFParser;
use treering_fleet::Tables;
use treering_fleet::sql::{Engine, TABLES, select};
use url::Url;

use crate::Failure;
use crate::dialect::Doubles;

/// The rows of an answer.
pub(crate) struct Answer {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

/// Answers some statements, one after the other.
pub(crate) async fn ask(
    archive: &Path,
    text: &str,
    explain: bool,
    mut answered: impl FnMut(Answer) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let tables = Tables::open(archive).map_err(Failure::new)?;
    let context = open(archive, &tables).await?;
    for statement in DFParser::parse_sql(text).map_err(wrong)? {
        let plan = context.state().statement_to_plan(statement).await.map_err(wrong)?;
        let frame = context.execute_logical_plan(plan).await.map_err(wrong)?;
        let frame = if explain { frame.explain(false, false).map_err(wrong)? } else { frame };
        let answer = rows(frame).await?;
        // The engine takes a file that is gone for one without rows.
        tables.check_ends().map_err(|error| {
            Failure::new(format_args!("tables were removed while they were read: {error}"))
                .hint("ask again: new ones are read then")
        })?;
        answered(answer)?;
    }
    Ok(())
}

async fn rows(frame: DataFrame) -> Result<Answer, Failure> {
    let schema = Arc::clone(frame.schema().inner());
    Ok(Answer { schema, batches: frame.collect().await.map_err(wrong)? })
}

/// The engine, with a view of each table.
async fn open(archive: &Path, tables: &Tables) -> Result<SessionContext, Failure> {
    // Errors tell of the line and the column then.
    let config = SessionConfig::new().set_bool("datafusion.sql_parser.collect_spans", true);
    let mut context = SessionContext::new_with_config(config);
    context.register_expr_planner(Arc::new(Doubles)).map_err(wrong)?;
    for table in TABLES {
        let files = tables.files(table);
        if files.is_empty() {
            return Err(Failure::new(format_args!("{} has no tables yet", archive.display()))
                .hint("write them: treering archive compact"));
        }
        let mut places = Vec::new();
        for file in &files {
            let url = std::path::absolute(file).ok().and_then(|file| Url::from_file_path(file).ok());
            let url =
                url.ok_or_else(|| Failure::new(format_args!("{} is no path of a file", file.display())))?;
            // Not from the path itself, in which it takes some letters for a pattern.
            places.push(ListingTableUrl::try_new(url, None).map_err(wrong)?);
        }
        let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
        let listed = ListingTableConfig::new_with_multi_paths(places).with_listing_options(options);
        let listed = listed.infer_schema(&context.state()).await.map_err(wrong)?;
        let listed = ListingTable::try_new(listed).map_err(wrong)?;
        context.register_table(format!("{table}_files"), Arc::new(listed)).map_err(wrong)?;
        let view = format!("CREATE VIEW {table} AS {} FROM {table}_files", select(table, Engine::DataFusion));
        context.sql(&view).await.map_err(wrong)?;
    }
    Ok(context)
}

/// The engine's message, with the place in the statement where it names one.
fn wrong(error: DataFusionError) -> Failure {
    let message = match error.find_root() {
        DataFusionError::SQL(error, _) => error.to_string(),
        _ => error.strip_backtrace(),
    };
    let place = error.diagnostic().and_then(|diagnostic| diagnostic.span).map(|span| span.start);
    match place {
        Some(place) if place.line > 0 && !message.contains("Line:") => {
            Failure::new(format_args!("{message} at Line: {}, Column: {}", place.line, place.column))
        }
        _ => Failure::new(message),
    }
}
