//! Copies of a resource that Sources of the same store brought from one origin.

use catalog::{CatalogError, CatalogReader};
use futures::TryStreamExt;
use model::{ResourceRecord, ResourceUri};
use report::copies::first_source;
use serde::Serialize;
use store::SourceMarker;

/// The most resources that are searched, over all Sources.
const SEARCHED: usize = 200_000;
/// The most copies that are shown.
const SHOWN: usize = 100;
/// Records that are read together.
const BATCH: usize = 512;

/// All copies of one origin, the resource itself among them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Copies {
    /// Where it was first published.
    pub(super) origin: String,
    /// The copies, by Source.
    pub(super) copies: Vec<HeldCopy>,
    /// Whether not all resources were searched.
    pub(super) is_cut: bool,
}

/// A copy.
#[derive(Debug, Clone, Serialize)]
pub(super) struct HeldCopy {
    /// The entry URL of its Source.
    pub(super) source: String,
    pub(super) uri: String,
    /// Whether it has the bytes of the resource that is explained.
    pub(super) is_same: bool,
}

/// The copies of a resource's origin; none if there is no other, or its origin is not known.
pub(super) async fn of(
    sources: &[(SourceMarker, CatalogReader)],
    record: Option<&ResourceRecord>,
) -> Result<Option<Copies>, CatalogError> {
    let Some(record) = record else { return Ok(None) };
    let (Some(origin), Some(bitstream)) = (first_source(record), &record.bitstream) else { return Ok(None) };
    let sha256 = bitstream.computed.sha256();
    let mut found = Copies { origin, copies: Vec::new(), is_cut: false };
    let mut searched = 0;
    for (note, catalog) in sources {
        let held = |uri: &ResourceUri, copy: &ResourceRecord| {
            let is_same = copy.bitstream.as_ref()?.computed.sha256() == sha256;
            Some(HeldCopy { source: note.url.clone(), uri: uri.to_string(), is_same })
        };
        // The origin itself may be a Source of ours.
        if let Ok(uri) = found.origin.parse::<ResourceUri>()
            && let Some(copy) = catalog.resource(&uri).await?
            && first_source(&copy).is_none()
        {
            found.copies.extend(held(&uri, &copy));
        }
        let mut scan = catalog.scan_resources_unread(BATCH).await?;
        while let Some(batch) = scan.try_next().await? {
            searched += batch.len();
            for unread in batch.iter().filter(|unread| unread.mentions(&found.origin)) {
                let (uri, copy) = unread.read()?;
                if first_source(&copy).as_ref() == Some(&found.origin) {
                    found.copies.extend(held(&uri, &copy));
                }
            }
            if searched >= SEARCHED || found.copies.len() >= SHOWN {
                found.is_cut = true;
                return Ok(Some(found).filter(|found| found.copies.len() > 1));
            }
        }
    }
    Ok(Some(found).filter(|found| found.copies.len() > 1))
}
