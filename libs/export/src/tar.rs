//! A tar of files under readable names. Each file is verified before it is written, so that nothing has to be
//! undone.

use std::io::{self, BufWriter, Read, Seek as _, Write};
use std::path::Path;
use std::pin::pin;

use fs_err::File;
use futures::TryStreamExt as _;
use model::ResourceRecord;
use store::{StoreError, view};
use tar::{Builder, EntryType, Header};

use crate::ExportError;
use crate::body::{Body, StoredResource};
use crate::work::Work;

/// Into a file, behind the members of the checkpoint.
pub(crate) async fn to_file(work: &mut Work<'_>, path: &Path) -> Result<(), ExportError> {
    let mut tar = Builder::new(work.file(path)?);
    let mut held = pin!(work.held().await?);
    let mut members = 0;
    let mut bytes = 0;
    while let Some(resource) = held.try_next().await? {
        members += 1;
        bytes += resource.bitstream.computed.length();
        append(work, &mut tar, resource).await?;
        if members >= work.sizes.kept_every || bytes >= work.sizes.kept_bytes {
            settle(tar.get_mut())?;
            work.checkpoint.bytes = tar.get_mut().stream_position()?;
            work.checkpoint.save()?;
            members = 0;
            bytes = 0;
        }
    }
    settle(&mut tar.into_inner()?)
}

/// To standard output.
pub(crate) async fn to_stdout(work: &mut Work<'_>) -> Result<(), ExportError> {
    let mut tar = Builder::new(BufWriter::new(io::stdout()));
    let mut held = pin!(work.held().await?);
    while let Some(resource) = held.try_next().await? {
        append(work, &mut tar, resource).await?;
    }
    Ok(tar.into_inner()?.flush()?)
}

fn settle(file: &mut BufWriter<File>) -> Result<(), ExportError> {
    file.flush()?;
    Ok(file.get_ref().sync_data()?)
}

async fn append<W: Write>(
    work: &mut Work<'_>,
    tar: &mut Builder<W>,
    resource: StoredResource,
) -> Result<(), ExportError> {
    let StoredResource { uri, record, bitstream, body } = resource;
    let length = bitstream.computed.length();
    let content: Result<Box<dyn Read + Send>, _> = match body {
        Body::Small(bytes) => bytes.map(|bytes| Box::new(io::Cursor::new(bytes)) as _),
        Body::Large(pieces) => spooled(pieces).await?.map(|file| Box::new(file) as _),
    };
    match content {
        Ok(content) => {
            let mut header = header(&record, length);
            tar.append_data(&mut header, view::path_of(&uri).as_path(), content)?;
            work.took(&uri, length)
        }
        Err(error) => work.missed(&uri, error),
    }
}

/// Large ones are first written to the disk: their verdict is known only after their last byte.
async fn spooled(mut pieces: store::ByteStream) -> Result<Result<std::fs::File, StoreError>, ExportError> {
    let mut file = tempfile::tempfile()?;
    loop {
        match pieces.try_next().await {
            Ok(Some(piece)) => file.write_all(&piece)?,
            Ok(None) => break,
            Err(error) => return Ok(Err(error)),
        }
    }
    file.rewind()?;
    Ok(Ok(file))
}

fn header(record: &ResourceRecord, length: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(length);
    header.set_mode(0o644);
    let modified = record.declaration.lastmod.or(record.listing.change_time);
    header.set_mtime(modified.and_then(|time| u64::try_from(time.as_second()).ok()).unwrap_or_default());
    header
}
