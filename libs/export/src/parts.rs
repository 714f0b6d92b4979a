//! Records as tables of Apache Parquet: parts of up to a million rows, each a file of its own, since a table
//! is readable only when its end is written.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use fs_err::File;
use futures::TryStreamExt as _;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::ExportError;
use crate::checkpoint::{DATA, part_name};
use crate::columns;
use crate::row::Row;
use crate::work::Work;

/// Rows of a row group, which are held in memory until it is written.
const GROUP_ROWS: usize = 20_000;
/// Bytes of links in a row group. A group that reaches them ends with fewer rows.
const GROUP_LINK_BYTES: usize = 16 * 1024 * 1024;

pub(crate) async fn write(work: &mut Work<'_>, directory: &Path) -> Result<(), ExportError> {
    let schema = Arc::new(columns::schema().map_err(failed)?);
    let mut rest = pin!(work.rest().await?);
    let mut is_over = false;
    // An empty export still has a table.
    while !is_over || work.checkpoint.parts == 0 {
        let name = part_name(work.checkpoint.parts + 1);
        let aside = directory.join(DATA).join(&name);
        let mut part = Part::create(&aside, &schema)?;
        let mut rows = 0;
        while rows < work.sizes.table_rows.max(1) {
            let Some((uri, record)) = rest.try_next().await? else {
                is_over = true;
                break;
            };
            part.add(Row::of(&uri, record))?;
            work.took(&uri, 0)?;
            rows += 1;
        }
        if rows == 0 && work.checkpoint.parts > 0 {
            break;
        }
        part.close()?;
        fs_err::rename(&aside, directory.join(&name))?;
        work.checkpoint.parts += 1;
        work.checkpoint.save()?;
    }
    Ok(())
}

/// A file in progress.
struct Part {
    writer: SerializedFileWriter<std::fs::File>,
    rows: Vec<Row>,
    link_bytes: usize,
}

impl Part {
    fn create(path: &Path, schema: &Arc<Type>) -> Result<Self, ExportError> {
        let level = ZstdLevel::try_new(3).map_err(failed)?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
        let file = File::create(path)?.into_parts().0;
        let writer =
            SerializedFileWriter::new(file, Arc::clone(schema), properties.into()).map_err(failed)?;
        Ok(Self { writer, rows: Vec::new(), link_bytes: 0 })
    }

    fn add(&mut self, row: Row) -> Result<(), ExportError> {
        self.link_bytes += row.link_bytes();
        self.rows.push(row);
        let is_full = self.rows.len() >= GROUP_ROWS || self.link_bytes >= GROUP_LINK_BYTES;
        if is_full { self.write_rows().map_err(failed) } else { Ok(()) }
    }

    fn write_rows(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        self.link_bytes = 0;
        let mut group = self.writer.next_row_group()?;
        columns::write(&mut group, &rows)?;
        group.close().map(drop)
    }

    /// Writes the end, and waits until all of it is on the disk.
    fn close(mut self) -> Result<(), ExportError> {
        if !self.rows.is_empty() {
            self.write_rows().map_err(failed)?;
        }
        Ok(self.writer.into_inner().map_err(failed)?.sync_all()?)
    }
}

fn failed(error: ParquetError) -> ExportError {
    ExportError::Format(error.into())
}
