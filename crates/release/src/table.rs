//! One table as a Parquet file, written row by row: a row group leaves the memory when it is full.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::ReleaseError;
use crate::folder::HashedFile;

/// Rows of a group: what a table keeps in memory at once.
const GROUP_ROWS: usize = 65_536;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// UTF-8.
    Text,
    /// Doubles; infinities and NaN among them.
    Float,
    /// Unsigned integers of 64 bits.
    Count,
    /// True or false.
    Bool,
}

impl Holds {
    /// As in the column tables of the documents.
    pub fn name(self) -> &'static str {
        match self {
            Holds::Text => "text",
            Holds::Float => "double",
            Holds::Count => "uint64",
            Holds::Bool => "boolean",
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// May it be null?
    pub optional: bool,
    /// Its definition, with the unit.
    pub what: &'static str,
}

/// A table: its file, what a row is, and its columns.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Name of the file.
    pub file: &'static str,
    /// What one row is.
    pub row: &'static str,
    /// The columns.
    pub columns: &'static [Column],
}

/// A value of a row.
#[derive(Clone, Debug)]
pub enum Value {
    /// UTF-8.
    Text(ByteArray),
    /// A double.
    Float(f64),
    /// An unsigned integer.
    Count(u64),
    /// True or false.
    Bool(bool),
    /// Nothing; in optional columns.
    Null,
}

impl From<&str> for Value {
    fn from(s: &str) -> Value {
        Value::Text(ByteArray::from(s))
    }
}

impl From<&ByteArray> for Value {
    fn from(s: &ByteArray) -> Value {
        Value::Text(s.clone())
    }
}

impl From<f64> for Value {
    fn from(v: f64) -> Value {
        Value::Float(v)
    }
}

impl From<u64> for Value {
    fn from(v: u64) -> Value {
        Value::Count(v)
    }
}

impl From<bool> for Value {
    fn from(v: bool) -> Value {
        Value::Bool(v)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Value {
        v.map_or(Value::Null, Into::into)
    }
}

/// The values of one column that wait for their row group.
enum Waiting {
    Text(Vec<ByteArray>),
    Float(Vec<f64>),
    Count(Vec<i64>),
    Bool(Vec<bool>),
}

impl Waiting {
    fn new(holds: Holds) -> Waiting {
        match holds {
            Holds::Text => Waiting::Text(Vec::new()),
            Holds::Float => Waiting::Float(Vec::new()),
            Holds::Count => Waiting::Count(Vec::new()),
            Holds::Bool => Waiting::Bool(Vec::new()),
        }
    }
}

/// A Parquet file in the making.
pub struct Table {
    schema: &'static Schema,
    path: PathBuf,
    writer: SerializedFileWriter<HashedFile>,
    waiting: Vec<Waiting>,
    /// For each optional column whether each row has a value (1) or not (0).
    present: Vec<Vec<i16>>,
    rows: usize,
    total: u64,
}

impl Table {
    /// Begins the file; `tool` is written into it as its maker.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn create(schema: &'static Schema, file: HashedFile, tool: &str) -> Result<Table, ReleaseError> {
        let path = file.path().to_owned();
        let fields: Vec<_> = schema
            .columns
            .iter()
            .map(|c| {
                let (physical, logical) = match c.holds {
                    Holds::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                    Holds::Float => (Physical::DOUBLE, None),
                    Holds::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
                    Holds::Bool => (Physical::BOOLEAN, None),
                };
                let repetition = if c.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
                Type::primitive_type_builder(c.name, physical)
                    .with_repetition(repetition)
                    .with_logical_type(logical)
                    .build()
                    .map(Arc::new)
            })
            .collect::<Result<_, _>>()
            .map_err(|e| failed(&path, &e))?;
        let root =
            Type::group_type_builder("row").with_fields(fields).build().map_err(|e| failed(&path, &e))?;
        let said = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
        let mut notes = vec![said("row", schema.row.to_owned()), said("licence", crate::LICENCE.to_owned())];
        notes.extend(schema.columns.iter().map(|c| said(&format!("column.{}", c.name), c.what.to_owned())));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(tool.to_owned())
            .set_key_value_metadata(Some(notes))
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(root), Arc::new(properties))
            .map_err(|e| failed(&path, &e))?;
        Ok(Table {
            schema,
            path,
            writer,
            waiting: schema.columns.iter().map(|c| Waiting::new(c.holds)).collect(),
            present: vec![Vec::new(); schema.columns.len()],
            rows: 0,
            total: 0,
        })
    }

    /// Adds a row: one value for each column, in their order.
    ///
    /// # Errors
    /// `CannotWrite`; `Internal` where the values do not fit the columns.
    pub fn row<const N: usize>(&mut self, values: [Value; N]) -> Result<(), ReleaseError> {
        if N != self.schema.columns.len() {
            return Err(ReleaseError::Internal(format!("{} has not {N} columns", self.schema.file)));
        }
        for (k, value) in values.into_iter().enumerate() {
            let column = &self.schema.columns[k];
            let known = !matches!(value, Value::Null);
            match (&mut self.waiting[k], value) {
                (Waiting::Text(v), Value::Text(x)) => v.push(x),
                (Waiting::Float(v), Value::Float(x)) => v.push(x),
                (Waiting::Count(v), Value::Count(x)) => v.push(x.cast_signed()),
                (Waiting::Bool(v), Value::Bool(x)) => v.push(x),
                (_, Value::Null) if column.optional => {}
                (_, other) => {
                    return Err(ReleaseError::Internal(format!(
                        "{other:?} in column `{}` of {}",
                        column.name, self.schema.file
                    )));
                }
            }
            if column.optional {
                self.present[k].push(i16::from(known));
            }
        }
        self.rows += 1;
        self.total += 1;
        if self.rows == GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ReleaseError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(|e| failed(&self.path, &e))?;
        for (column, (waiting, present)) in
            self.schema.columns.iter().zip(self.waiting.iter_mut().zip(&mut self.present))
        {
            let present = std::mem::take(present);
            let defined = column.optional.then_some(present.as_slice());
            write_column(&mut group, waiting, defined).map_err(|e| failed(&self.path, &e))?;
            *waiting = Waiting::new(column.holds);
        }
        group.close().map_err(|e| failed(&self.path, &e))?;
        self.rows = 0;
        Ok(())
    }

    /// Ends the file. Gives it back with its number of rows.
    ///
    /// # Errors
    /// `CannotWrite`.
    pub fn finish(mut self) -> Result<(HashedFile, u64), ReleaseError> {
        self.flush()?;
        let mut file = self.writer.into_inner().map_err(|e| failed(&self.path, &e))?;
        file.flush().map_err(|e| ReleaseError::write(&self.path, e))?;
        Ok((file, self.total))
    }
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, HashedFile>,
    waiting: &Waiting,
    defined: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column too many".into()));
    };
    match waiting {
        Waiting::Text(v) => column.typed::<ByteArrayType>().write_batch(v, defined, None)?,
        Waiting::Float(v) => column.typed::<DoubleType>().write_batch(v, defined, None)?,
        Waiting::Count(v) => column.typed::<Int64Type>().write_batch(v, defined, None)?,
        Waiting::Bool(v) => column.typed::<BoolType>().write_batch(v, defined, None)?,
    };
    column.close()
}

/// The library hands on what the disk answers.
fn failed(path: &Path, e: &ParquetError) -> ReleaseError {
    match e {
        ParquetError::External(inner) if inner.is::<std::io::Error>() => ReleaseError::write(path, inner),
        _ => ReleaseError::Internal(format!("{}: {e}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::folder::Staging;

    static SCHEMA: Schema = Schema {
        file: "t.parquet",
        row: "A row.",
        columns: &[
            Column { name: "a", holds: Holds::Text, optional: true, what: "Text." },
            Column { name: "b", holds: Holds::Float, optional: false, what: "A float." },
            Column { name: "c", holds: Holds::Count, optional: true, what: "A count." },
            Column { name: "d", holds: Holds::Bool, optional: false, what: "A bool." },
        ],
    };

    fn text(n: u64) -> Option<String> {
        (!n.is_multiple_of(3)).then(|| format!("{}", n % 100))
    }

    #[test]
    fn rows_of_several_groups_come_back_with_nulls_infinities_and_large_counts() {
        let dir = tempfile::tempdir().unwrap();
        let rows = GROUP_ROWS as u64 * 2 + 7;
        for n in [0, rows] {
            let mut stage = Staging::begin(&dir.path().join(format!("r{n}")), "m", "k").unwrap();
            let mut t = Table::create(&SCHEMA, stage.create(SCHEMA.file).unwrap(), "assay test").unwrap();
            for k in 0..n {
                let b = if k == 5 { f64::INFINITY } else { k as f64 };
                let c = (k % 2 == 0).then_some(u64::MAX - k);
                t.row([text(k).as_deref().into(), b.into(), c.into(), (k % 5 == 0).into()]).unwrap();
            }
            let (file, total) = t.finish().unwrap();
            assert_eq!(total, n);
            stage.close(file).unwrap();
            let folder = stage.finish().unwrap();
            let reader = SerializedFileReader::new(File::open(folder.join("t.parquet")).unwrap()).unwrap();
            assert_eq!(reader.num_row_groups(), if n == 0 { 0 } else { 3 });
            let mut seen = 0;
            for (k, row) in (0..).zip(reader) {
                let row = row.unwrap();
                let got: Vec<Field> = row.get_column_iter().map(|(_, f)| f.clone()).collect();
                let want = [
                    text(k).map_or(Field::Null, Field::Str),
                    Field::Double(if k == 5 { f64::INFINITY } else { k as f64 }),
                    if k % 2 == 0 { Field::ULong(u64::MAX - k) } else { Field::Null },
                    Field::Bool(k % 5 == 0),
                ];
                assert_eq!(got, want, "row {k}");
                seen += 1;
            }
            assert_eq!(seen, n);
        }
    }

    #[test]
    fn a_row_that_does_not_fit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut stage = Staging::begin(&dir.path().join("r"), "m", "k").unwrap();
        let mut t = Table::create(&SCHEMA, stage.create(SCHEMA.file).unwrap(), "assay test").unwrap();
        assert!(matches!(t.row(["x".into()]), Err(ReleaseError::Internal(_))), "too few");
        let null = t.row(["x".into(), Value::Null, Value::Null, true.into()]);
        assert!(matches!(null, Err(ReleaseError::Internal(_))), "null where there must be a value");
    }
}
