//! Rows as the columns of a table.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow_schema::ArrowError;
use jiff::Timestamp;

use crate::row::Row;

/// These rows, column by column. Without rows it still has names and types.
pub(crate) fn batch(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let text =
        |of: fn(&Row) -> Option<&str>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<StringArray>()) };
    let number =
        |of: fn(&Row) -> Option<u64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<UInt64Array>()) };
    let moment = |of: fn(&Row) -> Option<Timestamp>| -> ArrayRef {
        let moments = rows.iter().map(|row| of(row).map(Timestamp::as_microsecond));
        Arc::new(moments.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
    };
    let texts = |of: fn(&Row) -> &[String]| -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in rows {
            lists.append_value(of(row).iter().map(Some));
        }
        Arc::new(lists.finish())
    };
    let always = false;
    let perhaps = true;
    RecordBatch::try_from_iter_with_nullable([
        ("uri", text(|row| Some(&row.uri)), always),
        ("state", text(|row| Some(row.state)), always),
        ("length", number(|row| row.length), perhaps),
        ("sha256", text(|row| row.sha256.as_deref()), perhaps),
        ("assurance", text(|row| row.assurance), perhaps),
        ("media_type", text(|row| row.media_type.as_deref()), perhaps),
        ("encoding", text(|row| row.encoding.as_deref()), perhaps),
        ("declared_digests", texts(|row| &row.declared_digests), always),
        ("declared_length", number(|row| row.declared_length), perhaps),
        ("lastmod", moment(|row| row.lastmod), perhaps),
        ("change_time", moment(|row| row.change_time), perhaps),
        ("stored_at", moment(|row| row.stored_at), perhaps),
        ("settled_at", moment(|row| Some(row.settled_at)), always),
        ("document", text(|row| Some(&row.document)), always),
        ("sets", texts(|row| &row.sets), always),
        ("final_url", text(|row| row.final_url.as_deref()), perhaps),
        ("etag", text(|row| row.etag.as_deref()), perhaps),
        ("object", text(|row| row.object.as_deref()), perhaps),
        ("offset", number(|row| row.offset), perhaps),
        ("stored_length", number(|row| row.stored_length), perhaps),
        ("method", text(|row| row.method), perhaps),
    ])
}
