//! Columns, and their Parquet files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::identity::Key;

/// The values of a column. Rows without a value are possible where it says `Option`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Column {
    Key(Vec<Key>),
    MaybeKey(Vec<Option<Key>>),
    /// Indexes into the texts: few texts belong to many rows.
    Text(Vec<u32>, Vec<String>),
    Whole(Vec<i64>),
    MaybeWhole(Vec<Option<i64>>),
    MaybeReal(Vec<Option<f64>>),
    Truth(Vec<bool>),
}

/// A table: its name, and its columns with their names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<(&'static str, Column)>,
}

/// How the values of a column are written. All engines read all of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Encoded {
    /// Each value once, and numbers that say which; without, if there are too many.
    Dictionary,
    /// As they are: zstd finds those that are repeated nearby.
    Plain,
    /// Differences of numbers that follow each other, in few bits.
    Differences,
}

/// Rows are written in groups of so many: smaller ones take a fifth more.
const GROUP: usize = 1 << 20;

/// Texts are read so many at a time.
const READ_AT_ONCE: usize = 1 << 14;

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Key(values) => values.len(),
            Self::MaybeKey(values) => values.len(),
            Self::Text(values, _) => values.len(),
            Self::Whole(values) => values.len(),
            Self::MaybeWhole(values) => values.len(),
            Self::MaybeReal(values) => values.len(),
            Self::Truth(values) => values.len(),
        }
    }

    /// Its type in a schema of Parquet. Engines know no unsigned numbers: Spark reads them as decimals.
    fn schema(&self, name: &str) -> String {
        match self {
            Self::Key(_) => format!("REQUIRED FIXED_LEN_BYTE_ARRAY(16) {name};"),
            Self::MaybeKey(_) => format!("OPTIONAL FIXED_LEN_BYTE_ARRAY(16) {name};"),
            Self::Text(..) => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
            Self::Whole(_) => format!("REQUIRED INT64 {name};"),
            Self::MaybeWhole(_) => format!("OPTIONAL INT64 {name};"),
            Self::MaybeReal(_) => format!("OPTIONAL DOUBLE {name};"),
            Self::Truth(_) => format!("REQUIRED BOOLEAN {name};"),
        }
    }

    /// The encodings that may make it smallest.
    fn encodings(&self) -> &'static [Encoded] {
        match self {
            Self::Text(..) => &[Encoded::Dictionary],
            Self::Truth(_) => &[Encoded::Plain],
            Self::Key(_) | Self::MaybeKey(_) | Self::MaybeReal(_) => &[Encoded::Dictionary, Encoded::Plain],
            Self::Whole(_) | Self::MaybeWhole(_) => {
                &[Encoded::Dictionary, Encoded::Plain, Encoded::Differences]
            }
        }
    }

    /// Writes the values of some rows.
    fn write(
        &self,
        rows: std::ops::Range<usize>,
        writer: &mut ColumnWriter<'_>,
    ) -> Result<usize, ParquetError> {
        fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
            values.iter().map(|value| i16::from(value.is_some())).collect()
        }
        let bytes = |key: &Key| FixedLenByteArray::from(ByteArray::from(key.0.to_vec()));
        match (self, writer) {
            (Self::Key(values), ColumnWriter::FixedLenByteArrayColumnWriter(writer)) => {
                let values: Vec<FixedLenByteArray> = values[rows].iter().map(bytes).collect();
                writer.write_batch(&values, None, None)
            }
            (Self::MaybeKey(values), ColumnWriter::FixedLenByteArrayColumnWriter(writer)) => {
                let there: Vec<FixedLenByteArray> =
                    values[rows.clone()].iter().flatten().map(bytes).collect();
                writer.write_batch(&there, Some(&levels(&values[rows])), None)
            }
            (Self::Text(values, texts), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let texts: Vec<ByteArray> = texts.iter().map(|text| ByteArray::from(text.as_str())).collect();
                let values: Vec<ByteArray> =
                    values[rows].iter().map(|&text| texts[text as usize].clone()).collect();
                writer.write_batch(&values, None, None)
            }
            (Self::Whole(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(&values[rows], None, None)
            }
            (Self::MaybeWhole(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                let there: Vec<i64> = values[rows.clone()].iter().flatten().copied().collect();
                writer.write_batch(&there, Some(&levels(&values[rows])), None)
            }
            (Self::MaybeReal(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                let there: Vec<f64> = values[rows.clone()].iter().flatten().copied().collect();
                writer.write_batch(&there, Some(&levels(&values[rows])), None)
            }
            (Self::Truth(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(&values[rows], None, None)
            }
            _ => Err(ParquetError::General("a column has another type than its schema".to_owned())),
        }
    }

    /// The sum of all values, of which another reader of the file must find the same.
    fn sum(&self) -> i128 {
        match self {
            Self::Whole(values) => values.iter().copied().map(i128::from).sum(),
            Self::MaybeWhole(values) => values.iter().flatten().copied().map(i128::from).sum(),
            _ => 0,
        }
    }
}

impl Table {
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// Writes the table as a Parquet file, each column in the encoding in which it is smallest.
    pub(crate) fn write(&self, to: impl Write + Send) -> Result<(), ParquetError> {
        let mut columns = Vec::new();
        for (name, column) in &self.columns {
            columns.push((*name, column, self.smallest(name, column)?));
        }
        self.write_columns(&columns, to)
    }

    /// The encoding that makes a column smallest, found by trying: it depends on how often values are repeated, and how
    /// far apart equal ones are.
    fn smallest(&self, name: &'static str, column: &Column) -> Result<Encoded, ParquetError> {
        let mut least = (usize::MAX, Encoded::Dictionary);
        for &encoded in column.encodings() {
            let mut written = Vec::new();
            self.write_columns(&[(name, column, encoded)], &mut written)?;
            least = least.min((written.len(), encoded));
        }
        Ok(least.1)
    }

    fn write_columns(
        &self,
        columns: &[(&'static str, &Column, Encoded)],
        to: impl Write + Send,
    ) -> Result<(), ParquetError> {
        let schema: String = columns.iter().map(|(name, column, _)| column.schema(name)).collect();
        let schema = Arc::new(parse_message_type(&format!("message {} {{ {schema} }}", self.name))?);
        let mut writer = SerializedFileWriter::new(to, schema, properties(columns)?)?;
        let mut begin = 0;
        while begin < self.rows() {
            let rows = begin..self.rows().min(begin + GROUP);
            let mut group = writer.next_row_group()?;
            for (_, column, _) in columns {
                let missing = || ParquetError::General("the schema has too few columns".to_owned());
                let mut to = group.next_column()?.ok_or_else(missing)?;
                column.write(rows.clone(), to.untyped())?;
                to.close()?;
            }
            group.close()?;
            begin = rows.end;
        }
        writer.close().map(drop)
    }

    /// Reads a file back and compares it with the table: the numbers of rows, and the sums of all columns of numbers.
    pub(crate) fn check(&self, written: Vec<u8>) -> Result<(), ParquetError> {
        let differs = |what: &str| ParquetError::General(format!("read back, {what}"));
        let reader = SerializedFileReader::new(bytes::Bytes::from(written))?;
        let rows = reader.metadata().file_metadata().num_rows();
        if rows != self.rows() as i64 {
            return Err(differs("the number of rows differs"));
        }
        for (at, (name, column)) in self.columns.iter().enumerate() {
            if matches!(column, Column::Whole(_) | Column::MaybeWhole(_)) {
                let mut sum = 0_i128;
                for group in 0..reader.num_row_groups() {
                    sum += sum_of(&reader, group, at)?;
                }
                if sum != column.sum() {
                    return Err(differs(&format!("the sum of {name} differs")));
                }
            }
        }
        Ok(())
    }
}

/// No Bloom filters: DuckDB up to 1.5.6 asks them for the printed form of a key, and misses rows (its pull request 23829).
///
/// zstd 3: snappy takes a quarter more, and zstd 19 saves a fiftieth.
fn properties(columns: &[(&'static str, &Column, Encoded)]) -> Result<WriterPropertiesPtr, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_max_row_group_row_count(Some(GROUP));
    for &(name, _, encoded) in columns {
        let path = ColumnPath::from(name);
        properties = properties.set_column_dictionary_enabled(path.clone(), encoded == Encoded::Dictionary);
        if encoded == Encoded::Differences {
            properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(Arc::new(properties.build()))
}

/// The different texts of a column in a file.
pub(crate) fn texts(file: File, column: &str) -> Result<BTreeSet<String>, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let at = schema.columns().iter().position(|found| found.name() == column);
    let at = at.ok_or_else(|| ParquetError::General(format!("it has no column {column}")))?;
    let mut texts = BTreeSet::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let ColumnReader::ByteArrayColumnReader(mut reader) = group.get_column_reader(at)? else {
            return Err(ParquetError::General(format!("{column} is no column of texts")));
        };
        let mut values = Vec::new();
        while reader.read_records(READ_AT_ONCE, None, None, &mut values)?.0 > 0 {
            for value in values.drain(..) {
                let text = value.as_utf8()?;
                if !texts.contains(text) {
                    texts.insert(text.to_owned());
                }
            }
        }
    }
    Ok(texts)
}

/// The sum of a column of numbers in a group of rows.
fn sum_of(
    reader: &SerializedFileReader<bytes::Bytes>,
    group: usize,
    column: usize,
) -> Result<i128, ParquetError> {
    let group = reader.get_row_group(group)?;
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let ColumnReader::Int64ColumnReader(mut reader) = group.get_column_reader(column)? else {
        return Err(ParquetError::General("a column of numbers has another type".to_owned()));
    };
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut sum = 0_i128;
    loop {
        values.clear();
        levels.clear();
        let (records, _, _) = reader.read_records(rows.max(1), Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Ok(sum);
        }
        sum += values.iter().copied().map(i128::from).sum::<i128>();
    }
}

/// The texts of a column, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    rows: Vec<u32>,
    texts: Vec<String>,
    known: std::collections::HashMap<String, u32>,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &str) {
        let number = match self.known.get(text) {
            Some(&number) => number,
            None => {
                let number = self.texts.len() as u32;
                self.texts.push(text.to_owned());
                self.known.insert(text.to_owned(), number);
                number
            }
        };
        self.rows.push(number);
    }

    pub(crate) fn column(self) -> Column {
        Column::Text(self.rows, self.texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut texts = Texts::default();
        ["a", "b'\n", "a"].iter().for_each(|text| texts.push(text));
        let key = |byte| Key([byte; 16]);
        Table {
            name: "example",
            columns: vec![
                ("id", Column::Key(vec![key(1), key(2), key(3)])),
                ("parent_id", Column::MaybeKey(vec![None, Some(key(1)), None])),
                ("name", texts.column()),
                ("self", Column::Whole(vec![i64::MAX, -1, 0])),
                ("calls", Column::MaybeWhole(vec![None, Some(7), None])),
                ("squares", Column::MaybeReal(vec![Some(0.5), None, None])),
                ("main", Column::Truth(vec![true, false, true])),
            ],
        }
    }

    #[test]
    fn a_table_is_read_back_equal() {
        let (table, mut written) = (table(), Vec::new());
        table.write(&mut written).unwrap();
        table.check(written.clone()).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(written)).unwrap();
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(rows.len(), 3);
        assert!(rows[0].contains("self: 9223372036854775807") && rows[0].contains("calls: null"), "{rows:?}");
        assert!(rows[1].contains("calls: 7"), "{rows:?}");
    }

    #[test]
    fn texts_of_a_column_are_read_once_each() {
        let mut file = tempfile::tempfile().unwrap();
        table().write(&mut file).unwrap();
        let read = |column| texts(file.try_clone().unwrap(), column);
        assert_eq!(read("name").unwrap(), BTreeSet::from(["a".to_owned(), "b'\n".to_owned()]));
        assert!(read("self").unwrap_err().to_string().ends_with("self is no column of texts"));
        assert!(read("none").unwrap_err().to_string().ends_with("it has no column none"));
    }

    /// Few values that recur are smallest as a dictionary, steps as differences, and keys of which each is new as they are.
    #[test]
    fn each_column_has_the_encoding_in_which_it_is_smallest() {
        let keys = (0..3000_u32).map(|at| Key::of(&[&at.to_le_bytes()])).collect();
        let few = (0..3000_i64).map(|at| (at * at % 7) << 40).collect();
        let table = Table {
            name: "example",
            columns: vec![
                ("id", Column::Key(keys)),
                ("self", Column::Whole(few)),
                ("start", Column::Whole((0..3000).map(|at| 1_000_000_007 * at).collect())),
            ],
        };
        let smallest = table.columns.iter().map(|(name, column)| table.smallest(name, column).unwrap());
        let expected = [Encoded::Plain, Encoded::Dictionary, Encoded::Differences];
        assert_eq!(smallest.collect::<Vec<_>>(), expected);
        let mut written = Vec::new();
        table.write(&mut written).unwrap();
        table.check(written).unwrap();
    }

    #[test]
    fn a_file_of_other_numbers_is_refused() {
        let (mut table, mut written) = (table(), Vec::new());
        table.write(&mut written).unwrap();
        table.columns[3].1 = Column::Whole(vec![i64::MAX, -1, 1]);
        assert!(table.check(written.clone()).unwrap_err().to_string().contains("the sum of self"));
        written.truncate(written.len() / 2);
        assert!(table.check(written).is_err());
    }
}
