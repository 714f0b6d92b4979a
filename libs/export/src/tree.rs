//! Files under readable names.

use std::path::Path;
use std::pin::pin;

use futures::TryStreamExt as _;
use store::View;

use crate::ExportError;
use crate::body::StoredResource;
use crate::work::Work;

pub(crate) async fn write(work: &mut Work<'_>, directory: &Path) -> Result<(), ExportError> {
    let view = View::new(directory);
    let mut held = pin!(work.held().await?);
    let mut since = 0;
    while let Some(StoredResource { uri, bitstream, body, .. }) = held.try_next().await? {
        match view.place_stream(uri.clone(), body.pieces()).await {
            Ok(()) => work.took(&uri, bitstream.computed.length())?,
            Err(error) => work.missed(&uri, error)?,
        }
        since += 1;
        if since >= work.sizes.kept_every {
            flush(directory)?;
            work.checkpoint.save()?;
            since = 0;
        }
    }
    flush(directory)
}

/// Flushes all written files to the disk.
#[cfg(target_os = "linux")]
fn flush(directory: &Path) -> Result<(), ExportError> {
    let directory = fs_err::File::open(directory)?;
    nix::unistd::syncfs(directory.file()).map_err(|error| ExportError::Write(error.into()))
}

#[cfg(not(target_os = "linux"))]
fn flush(_: &Path) -> Result<(), ExportError> {
    nix::unistd::sync();
    Ok(())
}
