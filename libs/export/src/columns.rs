//! Rows as the columns of a table.

use std::io::Write;

use jiff::Timestamp;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

use crate::row::{LinkRow, Row};

/// A column: its name, whether each row has a value, and that value.
struct Column {
    name: &'static str,
    is_required: bool,
    cell: Cell,
}

/// How a row fills a column.
enum Cell {
    Text(fn(&Row) -> Option<&str>),
    Number(fn(&Row) -> Option<u64>),
    Time(fn(&Row) -> Option<Timestamp>),
    /// A list, which may be empty.
    Texts(fn(&Row) -> &[String]),
    /// A list of links: a column for each field of [`LinkRow`].
    Links(fn(&Row) -> &[LinkRow]),
}

/// How a link fills a column.
enum Field {
    Text(fn(&LinkRow) -> Option<&str>),
    Number(fn(&LinkRow) -> Option<u64>),
}

/// The fields of a link: name, whether each has a value, and that value.
const LINK_FIELDS: [(&str, bool, Field); 11] = [
    ("rel", true, Field::Text(|link| Some(&link.rel))),
    ("href", true, Field::Text(|link| Some(&link.href))),
    ("type", false, Field::Text(|link| link.media_type.as_deref())),
    ("hash", false, Field::Text(|link| link.hash.as_deref())),
    ("length", false, Field::Number(|link| link.length)),
    ("encoding", false, Field::Text(|link| link.encoding.as_deref())),
    ("modified", false, Field::Text(|link| link.modified.as_deref())),
    ("pri", false, Field::Number(|link| link.pri)),
    ("path", false, Field::Text(|link| link.path.as_deref())),
    ("profile", false, Field::Text(|link| link.profile.as_deref())),
    ("other", false, Field::Text(|link| link.other.as_deref())),
];

const COLUMNS: [Column; 24] = [
    required("uri", Cell::Text(|row| Some(&row.uri))),
    required("state", Cell::Text(|row| Some(row.state))),
    optional("length", Cell::Number(|row| row.length)),
    optional("sha256", Cell::Text(|row| row.sha256.as_deref())),
    optional("assurance", Cell::Text(|row| row.assurance)),
    optional("media_type", Cell::Text(|row| row.media_type.as_deref())),
    optional("encoding", Cell::Text(|row| row.encoding.as_deref())),
    required("declared_digests", Cell::Texts(|row| &row.declared_digests)),
    optional("declared_length", Cell::Number(|row| row.declared_length)),
    optional("lastmod", Cell::Time(|row| row.lastmod)),
    optional("change_time", Cell::Time(|row| row.change_time)),
    optional("stored_at", Cell::Time(|row| row.stored_at)),
    required("settled_at", Cell::Time(|row| Some(row.settled_at))),
    required("document", Cell::Text(|row| Some(&row.document))),
    required("sets", Cell::Texts(|row| &row.sets)),
    optional("final_url", Cell::Text(|row| row.final_url.as_deref())),
    optional("etag", Cell::Text(|row| row.etag.as_deref())),
    optional("object", Cell::Text(|row| row.object.as_deref())),
    optional("offset", Cell::Number(|row| row.offset)),
    optional("stored_length", Cell::Number(|row| row.stored_length)),
    optional("method", Cell::Text(|row| row.method)),
    required("links", Cell::Links(|row| &row.links)),
    optional("linked_from", Cell::Text(|row| row.linked_from.as_deref())),
    optional("linked_as", Cell::Text(|row| row.linked_as.as_deref())),
];

const fn required(name: &'static str, cell: Cell) -> Column {
    Column { name, is_required: true, cell }
}

const fn optional(name: &'static str, cell: Cell) -> Column {
    Column { name, is_required: false, cell }
}

/// Names and types of all columns.
pub(crate) fn schema() -> Result<Type, ParquetError> {
    let mut text = "message resources {".to_owned();
    for Column { name, is_required, cell } in &COLUMNS {
        let repetition = if *is_required { "required" } else { "optional" };
        text += &match cell {
            Cell::Text(_) => format!("{repetition} binary {name} (STRING);"),
            Cell::Number(_) => format!("{repetition} int64 {name} (INTEGER(64,false));"),
            Cell::Time(_) => format!("{repetition} int64 {name} (TIMESTAMP(MICROS,true));"),
            Cell::Texts(_) => {
                let list = "repeated group list { required binary element (STRING); }";
                format!("{repetition} group {name} (LIST) {{ {list} }}")
            }
            Cell::Links(_) => {
                let fields: String = LINK_FIELDS.iter().map(field_type).collect();
                let list = format!("repeated group list {{ required group element {{ {fields} }} }}");
                format!("{repetition} group {name} (LIST) {{ {list} }}")
            }
        };
    }
    parse_message_type(&(text + "}"))
}

/// Writes rows as a row group, column by column.
pub(crate) fn write<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    for Column { cell, .. } in &COLUMNS {
        if let Cell::Links(of) = cell {
            for (_, is_required, field) in &LINK_FIELDS {
                let Some(mut column) = group.next_column()? else { break };
                let lists = rows.iter().map(of);
                match field {
                    Field::Text(value) => {
                        let value = |link| value(link).map(ByteArray::from);
                        write_links::<ByteArrayType>(column.typed(), lists, *is_required, value)?;
                    }
                    Field::Number(value) => {
                        let value = |link| value(link).map(u64::cast_signed);
                        write_links::<Int64Type>(column.typed(), lists, *is_required, value)?;
                    }
                }
                column.close()?;
            }
            continue;
        }
        let Some(mut column) = group.next_column()? else { break };
        match cell {
            Cell::Text(of) => {
                let cells = rows.iter().map(|row| of(row).map(ByteArray::from));
                write_cells::<ByteArrayType>(column.typed(), cells)?;
            }
            Cell::Number(of) => {
                // Parquet stores unsigned numbers as signed ones of the same bits.
                let cells = rows.iter().map(|row| of(row).map(u64::cast_signed));
                write_cells::<Int64Type>(column.typed(), cells)?;
            }
            Cell::Time(of) => {
                let cells = rows.iter().map(|row| of(row).map(Timestamp::as_microsecond));
                write_cells::<Int64Type>(column.typed(), cells)?;
            }
            Cell::Texts(of) => write_lists(column.typed(), rows.iter().map(of))?,
            // Written above, in several columns.
            Cell::Links(_) => {}
        }
        column.close()?;
    }
    Ok(())
}

/// Writes at most one value a row.
fn write_cells<T: DataType>(
    column: &mut ColumnWriterImpl<'_, T>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let mut values = Vec::new();
    // 1 for a value, 0 for none. The writer ignores them where each row has a value.
    let mut levels = Vec::new();
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    column.write_batch(&values, Some(&levels), None).map(drop)
}

/// Writes the values of lists: definition level 0 is an empty list, repetition level 0 begins the next row.
fn write_lists<'a>(
    column: &mut ColumnWriterImpl<'_, ByteArrayType>,
    lists: impl Iterator<Item = &'a [String]>,
) -> Result<(), ParquetError> {
    let mut values = Vec::new();
    let mut definitions = Vec::new();
    let mut repetitions = Vec::new();
    for list in lists {
        definitions.extend(list.iter().map(|_| 1));
        repetitions.extend((0..list.len()).map(|at| i16::from(at > 0)));
        values.extend(list.iter().map(|text| ByteArray::from(text.as_str())));
        if list.is_empty() {
            definitions.push(0);
            repetitions.push(0);
        }
    }
    column.write_batch(&values, Some(&definitions), Some(&repetitions)).map(drop)
}

/// The type of a link's field.
fn field_type((name, is_required, field): &(&str, bool, Field)) -> String {
    let repetition = if *is_required { "required" } else { "optional" };
    match field {
        Field::Text(_) => format!("{repetition} binary {name} (STRING); "),
        Field::Number(_) => format!("{repetition} int64 {name} (INTEGER(64,false)); "),
    }
}

/// Writes a field of all links: definition level 0 is an empty list, 1 a link, 2 the value of a field that a link need
/// not have. Repetition level 0 begins the next row.
fn write_links<'a, T: DataType>(
    column: &mut ColumnWriterImpl<'_, T>,
    lists: impl Iterator<Item = &'a [LinkRow]>,
    is_required: bool,
    value: impl Fn(&'a LinkRow) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let mut values = Vec::new();
    let mut definitions = Vec::new();
    let mut repetitions = Vec::new();
    for list in lists {
        for (at, link) in list.iter().enumerate() {
            let value = value(link);
            definitions.push(if value.is_some() && !is_required { 2 } else { 1 });
            repetitions.push(i16::from(at > 0));
            values.extend(value);
        }
        if list.is_empty() {
            definitions.push(0);
            repetitions.push(0);
        }
    }
    column.write_batch(&values, Some(&definitions), Some(&repetitions)).map(drop)
}
