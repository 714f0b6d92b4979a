//! Kept versions of resources, beside a scan of the resources.

use std::pin::Pin;

use catalog::{CatalogError, Lookups};
use futures::StreamExt as _;
use futures::stream::{BoxStream, Peekable};
use jiff::Timestamp;
use model::{ResourceUri, Version, Versions, moment};
use serde::Serialize;

/// A kept version, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct VersionLine {
    length: u64,
    sha256: String,
    /// Since when the Source had it, as far as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_from: Option<Timestamp>,
    /// Until when the Source had it: the time of the next version that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_until: Option<Timestamp>,
    /// When it was the stored version, if it ever was.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_from: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_until: Option<Timestamp>,
    /// When its bytes were found damaged or missing, and were discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<Timestamp>,
}

type Found = Result<(ResourceUri, Versions), CatalogError>;

/// A scan of kept versions, in the order of the resources.
pub(super) struct KeptVersions(Pin<Box<Peekable<BoxStream<'static, Found>>>>);

impl KeptVersions {
    /// Begins with the resources whose URI begins with `prefix`.
    ///
    /// # Errors
    /// Those of the catalog.
    pub(super) async fn scan(catalog: &Lookups, prefix: &str) -> Result<Self, CatalogError> {
        Ok(Self(Box::pin(catalog.scan_versions(Some(prefix)).await?.boxed().peekable())))
    }

    /// The versions of a resource. To be called in the byte order of the URIs.
    ///
    /// # Errors
    /// Those of the catalog.
    pub(super) async fn of(&mut self, uri: &str) -> Result<Versions, CatalogError> {
        // An error is taken out as it comes.
        let is_before = |next: &Found| next.as_ref().map_or(true, |next| next.0.as_str() < uri);
        while self.0.as_mut().next_if(is_before).await.transpose()?.is_some() {}
        let is_of_it = |next: &Found| next.as_ref().is_ok_and(|next| next.0.as_str() == uri);
        let kept = self.0.as_mut().next_if(is_of_it).await.transpose()?;
        Ok(kept.map(|(_, kept)| kept).unwrap_or_default())
    }
}

/// The versions as they are printed, the oldest first. `present`: since when the Source has the stored one.
pub(super) fn lines(versions: &Versions, present: Option<Timestamp>) -> Vec<VersionLine> {
    let time = |version: &Version| {
        version.source_from.or_else(|| moment::source_time(&version.listing, &version.declaration))
    };
    let nexts = versions.kept.iter().skip(1).map(time).chain([present]);
    let line = |(version, next): (&Version, Option<Timestamp>)| {
        let stored = Some(version).filter(|version| version.was_stored());
        VersionLine {
            length: version.bitstream.computed.length(),
            sha256: version.bitstream.computed.sha256().to_string(),
            source_from: time(version),
            source_until: next.filter(|next| time(version).is_some_and(|from| from <= *next)),
            stored_from: stored.map(|version| version.from),
            stored_until: stored.map(|version| version.until),
            lost: version.lost,
        }
    };
    versions.kept.iter().zip(nexts).map(line).collect()
}
