//! Records as lines of JSON.

use std::io::{self, BufWriter, Seek as _, Write};
use std::path::Path;
use std::pin::pin;

use futures::TryStreamExt as _;
use model::{ResourceRecord, ResourceUri};

use crate::ExportError;
use crate::row::Row;
use crate::work::Work;

/// Into a file, behind the lines of the checkpoint.
pub(crate) async fn to_file(work: &mut Work<'_>, path: &Path) -> Result<(), ExportError> {
    let mut out = work.file(path)?;
    let mut rest = pin!(work.rest().await?);
    let mut lines = 0;
    while let Some((uri, record)) = rest.try_next().await? {
        line(work, &mut out, &uri, record)?;
        lines += 1;
        if lines % work.sizes.kept_every.max(1) == 0 {
            work.checkpoint.bytes = out.stream_position()?;
            out.get_ref().sync_data()?;
            work.checkpoint.save()?;
        }
    }
    out.flush()?;
    Ok(out.get_ref().sync_data()?)
}

/// To standard output.
pub(crate) async fn to_stdout(work: &mut Work<'_>) -> Result<(), ExportError> {
    let mut out = BufWriter::new(io::stdout());
    let mut rest = pin!(work.rest().await?);
    while let Some((uri, record)) = rest.try_next().await? {
        line(work, &mut out, &uri, record)?;
    }
    Ok(out.flush()?)
}

fn line(
    work: &mut Work<'_>,
    out: &mut impl Write,
    uri: &ResourceUri,
    record: ResourceRecord,
) -> Result<(), ExportError> {
    let row = Row::of(uri, record);
    serde_json::to_writer(&mut *out, &row).map_err(|error| ExportError::Write(error.into()))?;
    out.write_all(b"\n")?;
    work.took(uri, 0)
}
