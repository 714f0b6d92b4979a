//! The records of a Source that is an OAI-PMH repository.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::{DiscoveryReport, OaiList, ResourceRecord, ResourceUri};
use oaipmh::{BaseUrl, KnownFormat, MetadataFormat, SetItem, Status};
use store::StoreError;

use super::record::{OaiRecord, header, is_change, moments, state_since};
use super::withdrawals::Withdrawals;
use crate::PublishError;
use crate::catalog_records::CatalogRecords;
use crate::records::Records as _;
use crate::takedown::{Takedown, TakedownList};
use crate::work::before;

/// A change is settled some time before it is committed and seen by readers: longer than this, the commit has failed.
pub const LATEST_COMMIT: Duration = Duration::from_secs(300);
/// How far from the time in its record the last change of a record is looked for.
const NEAR: Duration = Duration::from_secs(2);
/// The most entries of the change log that are read for that.
const MOST_NEAR: usize = 50_000;

/// The records of a Source that is an OAI-PMH repository.
pub struct OaiRecords {
    pub(super) held: CatalogRecords,
    /// The base URL of the repository that they came from.
    pub(super) base: BaseUrl,
    pub(super) withdrawals: Arc<Withdrawals>,
    takedown: Arc<TakedownList>,
    name: Option<String>,
    formats: Vec<MetadataFormat>,
    /// Sets that the repository lists on one page, and those that are harvested.
    pub(super) known_sets: Vec<SetItem>,
}

impl OaiRecords {
    /// The records among what is stored of a Source. None if it is no OAI-PMH repository.
    ///
    /// # Errors
    /// When the catalog fails.
    pub async fn of(
        held: CatalogRecords,
        withdrawals: Arc<Withdrawals>,
        takedown: &Takedown,
    ) -> Result<Option<Self>, PublishError> {
        let lists = lists(&held).await?;
        let Some(base) = base(&lists) else { return Ok(None) };
        let report = held.catalog().look().await?.unwrap_or_default();
        let formats = formats(&lists, &report);
        let known_sets = sets(&lists, &report);
        let name = report.oai.map(|repository| repository.name).filter(|name| !name.is_empty());
        let takedown = takedown.now();
        Ok(Some(Self { held, base, withdrawals, takedown, name, formats, known_sets }))
    }

    /// The base URL of the repository that a Source is. None if it is none.
    ///
    /// # Errors
    /// When the catalog fails.
    pub async fn base_of(held: &CatalogRecords) -> Result<Option<BaseUrl>, PublishError> {
        Ok(base(&lists(held).await?))
    }

    /// The name that the repository gives itself.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The base URL of the repository.
    pub fn origin(&self) -> &str {
        self.base.as_str()
    }

    /// The metadata formats that are held.
    pub fn formats(&self) -> &[MetadataFormat] {
        &self.formats
    }

    /// A time before which no record has changed.
    ///
    /// # Errors
    /// When the catalog fails.
    pub async fn earliest(&self) -> Result<Option<Timestamp>, PublishError> {
        let first = self.held.catalog().scan_changes(0).await?.try_next().await?;
        Ok(first.map(|(_, change)| change.at))
    }

    /// The time up to which lists that begin now have all changes. A harvester may ask for what changed since then.
    ///
    /// Each change is stamped before it is committed, so a later one may be seen that is stamped earlier than now.
    ///
    /// # Errors
    /// When the catalog fails.
    pub async fn complete_until(&self, now: Timestamp) -> Result<Timestamp, PublishError> {
        let sure = before(now, LATEST_COMMIT);
        Ok(self.held.last_change().await?.map_or(sure, |last| last.max(sure)).min(now))
    }

    /// One record. None if there is none.
    ///
    /// # Errors
    /// When the catalog or the store fails, or the record is damaged.
    pub async fn record(&self, identifier: &str, prefix: &str) -> Result<Option<OaiRecord>, PublishError> {
        let Some((uri, record)) = self.find(identifier, prefix).await? else { return Ok(None) };
        let mut since = self.since(&uri, &record).await?;
        if let Some(withdrawal) = self.withdrawals.of(&uri) {
            since = since.max(withdrawal.at);
        }
        let stored = record.bitstream.as_ref().filter(|_| !self.is_withdrawn(&uri));
        let status = if stored.is_some() { Status::Live } else { Status::Deleted };
        let header = header(&self.base, identifier.to_owned(), &record, since, status);
        let metadata = match stored {
            Some(stored) => {
                let bytes = self.held.store().read_verified(stored).await;
                Some(text(identifier, bytes)?)
            }
            None => None,
        };
        Ok(Some(OaiRecord { header, metadata }))
    }

    /// The formats in which an item is live, of those that are held. None if there is no such item.
    ///
    /// # Errors
    /// When the catalog fails.
    pub async fn formats_of(&self, identifier: &str) -> Result<Option<Vec<MetadataFormat>>, PublishError> {
        let mut found = None;
        for format in &self.formats {
            let Some((uri, record)) = self.find(identifier, &format.prefix).await? else { continue };
            let live = found.get_or_insert_with(Vec::new);
            if record.is_present() && !self.is_withdrawn(&uri) {
                live.push(format.clone());
            }
        }
        Ok(found)
    }

    /// The URI that a record has as a resource. None of what cannot be an identifier.
    pub fn uri_of(&self, identifier: &str, prefix: &str) -> Option<ResourceUri> {
        ResourceUri::try_from(self.base.record_uri(identifier, prefix)).ok()
    }

    pub(super) fn is_withdrawn(&self, uri: &ResourceUri) -> bool {
        self.takedown.contains(uri)
    }

    async fn find(
        &self,
        identifier: &str,
        prefix: &str,
    ) -> Result<Option<(ResourceUri, ResourceRecord)>, PublishError> {
        let Some(uri) = self.uri_of(identifier, prefix) else { return Ok(None) };
        let record = self.held.catalog().resource(&uri).await?;
        Ok(record.map(|record| (uri, record)))
    }

    /// Since when a record is as it is: the time of its last change in the log. The log has no index of resources, so
    /// it is looked for near the times of the record. One that was deleted before it was ever stored has no entry.
    async fn since(&self, uri: &ResourceUri, record: &ResourceRecord) -> Result<Timestamp, PublishError> {
        let mut since = None;
        for moment in moments(record) {
            let first = self.held.catalog().first_change_since(before(moment, NEAR)).await?;
            let mut log = pin!(self.held.catalog().scan_changes(first).await?);
            let mut read = 0;
            while let Some((_, entry)) = log.try_next().await? {
                read += 1;
                if read > MOST_NEAR || before(entry.at, NEAR) > moment {
                    break;
                }
                if entry.uri == *uri && is_change(&entry.event) && state_since(&entry, record).is_some() {
                    since = since.max(Some(entry.at));
                }
            }
        }
        Ok(since.unwrap_or(record.settled_at))
    }
}

/// Stored metadata as text: it is written so.
pub(super) fn text(identifier: &str, bytes: Result<Bytes, StoreError>) -> Result<String, StoreError> {
    String::from_utf8(bytes?.into()).map_err(|_| StoreError::Damaged {
        key: format!("the record {identifier}"),
        expected: "UTF-8".to_owned(),
        computed: "other bytes".to_owned(),
    })
}

/// The lists of a repository that are harvested.
async fn lists(held: &CatalogRecords) -> Result<Vec<OaiList>, PublishError> {
    let sets = held.catalog().sets().await?.into_iter();
    Ok(sets.filter_map(|(_, set)| set.oai.map(|list| *list)).collect())
}

fn base(lists: &[OaiList]) -> Option<BaseUrl> {
    lists.first().and_then(|list| BaseUrl::new(list.base.parse().ok()?).ok())
}

fn formats(lists: &[OaiList], report: &DiscoveryReport) -> Vec<MetadataFormat> {
    let offered = report.oai.iter().flat_map(|repository| &repository.formats);
    let offered: Vec<_> = offered.collect();
    let mut formats: Vec<MetadataFormat> = Vec::new();
    for OaiList { prefix, .. } in lists {
        if formats.iter().any(|known| known.prefix == *prefix) {
            continue;
        }
        let told = offered.iter().find(|format| format.prefix == *prefix);
        let namespace = told.map(|format| format.namespace.clone()).unwrap_or_default();
        let mut format = MetadataFormat { prefix: prefix.clone(), schema: String::new(), namespace };
        if let Some(known) = KnownFormat::of_format(&format).map(KnownFormat::metadata_format) {
            format.schema = known.schema;
            if format.namespace.is_empty() {
                format.namespace = known.namespace;
            }
        }
        formats.push(format);
    }
    formats
}

fn sets(lists: &[OaiList], report: &DiscoveryReport) -> Vec<SetItem> {
    let offered = report.oai.iter().flat_map(|repository| &repository.sets);
    let offered = offered.map(|set| SetItem { spec: set.spec.clone(), name: set.name.clone() });
    let mut sets: Vec<SetItem> = offered.collect();
    for spec in lists.iter().filter_map(|list| list.set.as_ref()) {
        if !sets.iter().any(|known| known.spec == *spec) {
            sets.push(SetItem { spec: spec.clone(), name: spec.clone() });
        }
    }
    sets
}
