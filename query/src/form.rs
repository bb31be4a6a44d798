//! Answers as text, in the forms that DuckDB prints too.

use std::fmt::Write as _;

use clap::ValueEnum;
use comfy_table::{CellAlignment, Table, presets};
use datafusion::arrow::array::{Array, AsArray as _};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::Failure;
use crate::ask::Answer;

/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A table with lines
    Box,
    /// A list of objects
    Json,
    /// Lines with commas
    Csv,
    /// A table
    Markdown,
}

/// A value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    Nothing,
    /// A number, or a truth value: JSON has them as they are.
    Plain(String),
    Text(String),
}

impl Form {
    /// An answer in this form.
    pub(crate) fn text(self, answer: Answer) -> Result<String, Failure> {
        let names: Vec<&str> = answer.schema.fields().iter().map(|field| field.name().as_str()).collect();
        // A statement that makes something has no answer.
        if names.is_empty() {
            return Ok(String::new());
        }
        let rows = rows(&answer)?;
        Ok(match self {
            Self::Json => json(&names, &rows),
            Self::Csv => csv(&names, &rows),
            Self::Markdown => markdown(&names, &rows),
            Self::Box => boxed(&names, &rows),
        })
    }
}

/// The cells of all rows.
fn rows(answer: &Answer) -> Result<Vec<Vec<Cell>>, Failure> {
    let mut rows = Vec::new();
    for batch in &answer.batches {
        let columns: Vec<Vec<Cell>> =
            batch.columns().iter().map(|column| cells(column)).collect::<Result<_, _>>()?;
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|cells| cells[row].clone()).collect()),
        );
    }
    Ok(rows)
}

fn cells(column: &dyn Array) -> Result<Vec<Cell>, Failure> {
    let wrong = |error| Failure::new(format_args!("cannot show a value: {error}"));
    let options = FormatOptions::new();
    let formatter = ArrayFormatter::try_new(column, &options).map_err(wrong)?;
    let is_plain = column.data_type().is_numeric() || *column.data_type() == DataType::Boolean;
    let of = |row: usize| {
        if column.is_null(row) || *column.data_type() == DataType::Null {
            return Ok(Cell::Nothing);
        }
        if let DataType::FixedSizeBinary(_) = column.data_type() {
            return Ok(Cell::Text(blob(column.as_fixed_size_binary().value(row))));
        }
        let text = formatter.value(row).try_to_string().map_err(wrong)?;
        // `NaN` and `inf` are numbers that JSON lacks.
        let is_plain = is_plain && !matches!(text.as_str(), "NaN" | "inf" | "-inf");
        Ok(if is_plain { Cell::Plain(text) } else { Cell::Text(text) })
    };
    (0..column.len()).map(of).collect()
}

/// Bytes as DuckDB shows them.
fn blob(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'\\' | b'\'' | b'"' => _ = write!(text, "\\x{byte:02X}"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => _ = write!(text, "\\x{byte:02X}"),
        }
    }
    text
}

impl Cell {
    fn as_str(&self, nothing: &'static str) -> &str {
        match self {
            Self::Nothing => nothing,
            Self::Plain(text) | Self::Text(text) => text,
        }
    }
}

fn json(names: &[&str], rows: &[Vec<Cell>]) -> String {
    let string = |text: &str| serde_json::Value::from(text).to_string();
    let value = |cell: &Cell| match cell {
        Cell::Nothing => "null".to_owned(),
        Cell::Plain(text) => text.clone(),
        Cell::Text(text) => string(text),
    };
    let row = |row: &Vec<Cell>| {
        let pairs = names.iter().zip(row).map(|(name, cell)| format!("{}:{}", string(name), value(cell)));
        format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
    };
    format!("[{}]\n", rows.iter().map(row).collect::<Vec<_>>().join(",\n"))
}

fn csv(names: &[&str], rows: &[Vec<Cell>]) -> String {
    let quoted = |text: &str| {
        let is_simple = !text.contains([',', '"', '\'', '\n', '\r', ' ', '\t']);
        if is_simple { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
    };
    let mut text = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",") + "\n";
    for row in rows {
        text += &row.iter().map(|cell| quoted(cell.as_str(""))).collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    text
}

fn markdown(names: &[&str], rows: &[Vec<Cell>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let safe = |text: &str| shown(text).replace('|', "\\|");
    let mut text = line(names.iter().map(|name| safe(name)).collect());
    let is_plain = |at: usize| rows.iter().any(|row| matches!(row[at], Cell::Plain(_)));
    text += &line((0..names.len()).map(|at| if is_plain(at) { "--:" } else { "---" }.to_owned()).collect());
    for row in rows {
        text += &line(row.iter().map(|cell| safe(cell.as_str(""))).collect());
    }
    text
}

fn boxed(names: &[&str], rows: &[Vec<Cell>]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(names.iter().map(|name| shown(name)));
    for row in rows {
        table.add_row(row.iter().map(|cell| shown(cell.as_str("NULL"))));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        if rows.iter().any(|row| matches!(row[at], Cell::Plain(_))) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{table}\n")
}

/// A text of one line, without what terminals take for commands. Plans have several lines.
fn shown(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() && letter != '\n' { '\u{fffd}' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        ArrayRef, Decimal128Array, FixedSizeBinaryArray, Float64Array, StringArray,
    };
    use datafusion::arrow::record_batch::RecordBatch;

    use super::*;

    fn answer() -> Answer {
        let large =
            Decimal128Array::from(vec![Some(99_999_999_999_999_999_999_999_999_999_999_999_999), None]);
        let large = large.with_precision_and_scale(38, 0).unwrap();
        let id = FixedSizeBinaryArray::try_from_iter([b"a\x01", b"'b"].into_iter()).unwrap();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("large", Arc::new(large)),
            ("share", Arc::new(Float64Array::from(vec![0.5, f64::NAN]))),
            ("name", Arc::new(StringArray::from(vec!["it's \"odd\", a|b", "\u{1b}[31m"]))),
            ("id", Arc::new(id)),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        Answer { schema: batch.schema(), batches: vec![batch] }
    }

    #[test]
    fn numbers_of_38_digits_are_exact_in_json() {
        let text = Form::Json.text(answer()).unwrap();
        assert!(
            text.starts_with("[{\"large\":99999999999999999999999999999999999999,\"share\":0.5,"),
            "{text}"
        );
        assert!(text.contains("\"id\":\"a\\\\x01\"},\n{\"large\":null,\"share\":\"NaN\","), "{text}");
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn texts_are_quoted_as_each_form_asks() {
        let csv = Form::Csv.text(answer()).unwrap();
        assert!(csv.contains(",0.5,\"it's \"\"odd\"\", a|b\",a\\x01\n,NaN,"), "{csv}");
        let markdown = Form::Markdown.text(answer()).unwrap();
        assert!(markdown.contains("a\\|b") && !markdown.contains('\u{1b}'), "{markdown}");
        assert!(!Form::Box.text(answer()).unwrap().contains('\u{1b}'));
    }
}
