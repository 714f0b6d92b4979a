//! A Resource Dump that any Destination can harvest (RS-33).

mod documents;
mod package;

use std::path::Path;
use std::pin::pin;

use fixity::Computed;
use futures::TryStreamExt as _;
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
                let up = documents::capability_list(base)?;
                none.insert(PackageWriter::create(directory, &directory.join(DATA), number, at, up)?)
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
    loop {
        match pieces.try_next().await {
            Ok(Some(piece)) => package.write(piece).await?,
            Ok(None) => {
                package.end().await?;
                return work.took(&uri, bitstream.computed.length());
            }
            Err(error) => {
                package.give_up().await?;
                return work.missed(&uri, error);
            }
        }
    }
}

/// The `hash` attribute of these bytes.
fn hash_of(computed: &Computed) -> String {
    computed.digests().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
