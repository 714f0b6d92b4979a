//! A Resource Dump that any Destination can harvest (RS-33).

mod documents;
mod package;

use std::path::Path;
use std::pin::pin;

use futures::TryStreamExt as _;
use store::StoreError;
use url::Url;

use self::package::PackageWriter;
use crate::ExportError;
use crate::body::StoredResource;
use crate::checkpoint::DATA;
use crate::work::Work;

/// Writes packages, one after the other, and finally the documents that list them. A resumed export continues
/// behind the last complete package.
pub(crate) async fn write(work: &mut Work<'_>, directory: &Path, base: &Url) -> Result<(), ExportError> {
    let at = work.checkpoint.at;
    let sizes = work.sizes;
    let is_full = |package: &PackageWriter| {
        package.entries >= sizes.package_entries || package.bytes >= sizes.package_bytes
    };
    let mut open: Option<PackageWriter> = None;
    let mut held = pin!(work.held().await?);
    while let Some(resource) = held.try_next().await? {
        if open.as_ref().is_some_and(is_full) {
            close(work, open.take()).await?;
        }
        let package = match &mut open {
            Some(package) => package,
            none => {
                let number = work.checkpoint.packages.len();
                let created = documents::capability_list(base)
                    .and_then(|up| PackageWriter::create(directory, &directory.join(DATA), number, at, up));
                none.insert(created?)
            }
        };
        add(work, package, resource).await?;
    }
    close(work, open).await?;
    Ok(documents::write(directory, base, at, &work.checkpoint.packages)?)
}

async fn close(work: &mut Work<'_>, package: Option<PackageWriter>) -> Result<(), ExportError> {
    let Some(package) = package else { return Ok(()) };
    work.checkpoint.packages.push(package.close().await?);
    work.checkpoint.save()
}

/// Adds a resource. If its stored bytes are damaged, nothing of it is in the package.
async fn add(
    work: &mut Work<'_>,
    package: &mut PackageWriter,
    held: StoredResource,
) -> Result<(), ExportError> {
    let StoredResource { uri, record, bitstream, body } = held;
    package.begin(&uri, &record, &bitstream).await?;
    let mut pieces = body.pieces();
    let failed: Option<StoreError> = loop {
        match pieces.try_next().await {
            Ok(Some(piece)) => package.write(piece).await?,
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    match failed {
        None => {
            package.end().await?;
            work.took(&uri, bitstream.computed.length())
        }
        Some(error) => {
            package.give_up().await?;
            work.missed(&uri, error)
        }
    }
}
