//! The records of a harvest: its catalog, its change log, and its store.

use std::collections::HashSet;

use async_trait::async_trait;
use catalog::Lookups;
use futures::{StreamExt as _, TryStreamExt as _, future, stream};
use jiff::Timestamp;
use model::{Bitstream, ChangeEvent, ChangeLogEntry, ResourceRecord, ResourceUri};
use resourcesync::{Change, Link, relation};
use store::Store;

use crate::entry::{hash_of, href, last_modified, media_type};
use crate::log_mark::mark;
use crate::names::{Named, PublishedPath};
use crate::read_ahead::read_ahead;
use crate::records::{Body, BodyError, Changes, Pieces, Records, Resources, Stored, Told};
use crate::{Base, PublishError, links};

/// Entries of the change log whose records are read together.
const TOGETHER: usize = 1_000;

/// What is stored of a Source.
#[derive(Clone)]
pub struct CatalogRecords {
    catalog: Lookups,
    store: Store,
    may_lag: bool,
}

impl CatalogRecords {
    /// The records of a catalog, with bytes in this store. It shows all commits until now.
    pub fn new(catalog: &Lookups, store: &Store) -> Self {
        Self { catalog: catalog.clone(), store: store.clone(), may_lag: false }
    }

    /// The same of a reader that was opened before, and shows commits with a delay.
    #[must_use]
    pub fn that_may_lag(self) -> Self {
        Self { may_lag: true, ..self }
    }

    pub(crate) fn catalog(&self) -> &Lookups {
        &self.catalog
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The changes among some entries of the log.
    async fn told(&self, entries: Vec<(u64, ChangeLogEntry)>) -> Result<Vec<Told>, PublishError> {
        let uris: Vec<_> = entries.iter().map(|(_, change)| change.uri.clone()).collect();
        let records = self.catalog.resources_many(&uris).await?;
        let told = entries.into_iter().zip(records).filter_map(|((_, change), record)| {
            let kind = kind(&change.event, record.as_ref())?;
            let stored = record.as_ref().and_then(|record| stored(&change.uri, record));
            let is_deleted = kind == Change::Deleted;
            let links = is_deleted.then(|| via_of_deleted(&change.uri, record.as_ref()));
            Some(Told { uri: change.uri, kind, at: change.at, stored, links: links.into_iter().collect() })
        });
        let mut told: Vec<Told> = told.collect();
        self.pass_links(told.iter_mut().filter_map(|told| told.stored.as_mut())).await?;
        Ok(told)
    }

    /// Finds out which targets of links are published, too. A link to another format of a resource leads to what is
    /// published, or is left out.
    async fn pass_links(&self, stored: impl Iterator<Item = &mut Stored>) -> Result<(), PublishError> {
        let mut all: Vec<&mut Stored> = stored.collect();
        let mut targets: Vec<ResourceUri> =
            all.iter().flat_map(|one| &one.links).filter_map(links::target).collect();
        targets.sort_unstable();
        targets.dedup();
        if targets.is_empty() {
            return Ok(());
        }
        let records = self.catalog.resources_many(&targets).await?;
        let present: HashSet<ResourceUri> = targets
            .into_iter()
            .zip(records)
            .filter(|(_, record)| record.as_ref().is_some_and(ResourceRecord::is_present))
            .map(|(uri, _)| uri)
            .collect();
        all.iter_mut().for_each(|one| links::lead(&mut one.links, |uri| present.contains(uri)));
        Ok(())
    }
}

#[async_trait]
impl Records for CatalogRecords {
    async fn next_change(&self) -> Result<u64, PublishError> {
        Ok(self.catalog.next_change().await?)
    }

    /// False of a catalog whose change log is shorter than the published one: it was made anew.
    async fn continues(&self, from: u64) -> Result<bool, PublishError> {
        Ok(self.catalog.next_change().await? >= from)
    }

    fn are_current(&self) -> bool {
        !self.may_lag
    }

    async fn mark(&self, before: u64) -> Result<Option<String>, PublishError> {
        let Some(number) = before.checked_sub(1) else { return Ok(None) };
        let found = self.catalog.scan_changes(number).await?.try_next().await?;
        // A number may be missing.
        let found = found.filter(|(found, _)| *found == number);
        Ok(found.map(|(_, change)| mark(&change.uri, change.at)))
    }

    async fn last_change(&self) -> Result<Option<Timestamp>, PublishError> {
        let next_change = self.catalog.next_change().await?;
        let last = self.catalog.scan_changes(next_change.saturating_sub(1)).await?.try_next().await?;
        Ok(last.map(|(_, change)| change.at))
    }

    async fn resources<'a>(&'a self, after: Option<&ResourceUri>) -> Result<Resources<'a>, PublishError> {
        let records = self.catalog.scan_resources(None, after).await?;
        let present = records.map_err(PublishError::from).try_filter_map(|(uri, record)| {
            let stored = stored(&uri, &record);
            future::ready(Ok(stored.map(|stored| (uri, stored))))
        });
        let chunks = present.try_chunks(TOGETHER).map_err(|error| error.1);
        let passed = chunks.and_then(move |mut chunk| async move {
            self.pass_links(chunk.iter_mut().map(|(_, stored)| stored)).await?;
            Ok(stream::iter(chunk).map(Ok))
        });
        Ok(passed.try_flatten().boxed())
    }

    async fn changes<'a>(&'a self, from: u64, end: u64) -> Result<Changes<'a>, PublishError> {
        let log = self.catalog.scan_changes(from).await?;
        let log = log.try_take_while(move |(number, _)| future::ready(Ok(*number < end)));
        let chunks = log.map_err(PublishError::from).try_chunks(TOGETHER).map_err(|error| error.1);
        let told = read_ahead(chunks, |chunk| {
            let records = self.clone();
            async move { records.told(chunk).await }
        });
        Ok(told.map_ok(|told| stream::iter(told).map(Ok)).try_flatten().boxed())
    }

    async fn is_present(&self, uri: &ResourceUri) -> Result<bool, PublishError> {
        Ok(self.catalog.resource(uri).await?.is_some_and(|record| record.is_present()))
    }

    async fn find(&self, uris: &[ResourceUri]) -> Result<Vec<Option<Stored>>, PublishError> {
        let records = self.catalog.resources_many(uris).await?;
        let found = uris.iter().zip(records);
        let found = found.map(|(uri, record)| record.as_ref().and_then(|record| stored(uri, record)));
        let mut found: Vec<Option<Stored>> = found.collect();
        self.pass_links(found.iter_mut().flatten()).await?;
        Ok(found)
    }

    /// A deleted resource has a tombstone for ever.
    async fn know(&self, uris: &[ResourceUri]) -> Result<Vec<bool>, PublishError> {
        let records = self.catalog.resources_many(uris).await?;
        Ok(records.iter().map(Option::is_some).collect())
    }

    async fn open(&self, _: &ResourceUri, stored: &Stored) -> Result<Pieces, BodyError> {
        match &stored.body {
            Body::Bitstream(bitstream) => {
                let pieces = self.store.open_verified(bitstream).await?;
                Ok(pieces.map_err(BodyError::from).boxed())
            }
            Body::File(_) => unreachable!("a catalog has no files"),
        }
    }

    fn path(&self, uri: &ResourceUri) -> PublishedPath {
        PublishedPath::of(uri)
    }

    fn at(&self, path: &str) -> Option<Named> {
        Named::at(path)
    }

    fn named(&self, base: &Base, url: &str) -> Option<Named> {
        Named::at(url.strip_prefix(base.as_str())?)
    }

    fn are_copies(&self) -> bool {
        true
    }
}

/// What the entry of a stored resource says. Its times are ours: those of the Source are in the `via` link (§14.8).
fn stored(uri: &ResourceUri, record: &ResourceRecord) -> Option<Stored> {
    let bitstream = record.bitstream.as_ref()?;
    let own = links::own(record);
    let first = links::via(&own).cloned();
    let passed = links::of(own, first.unwrap_or_else(|| first_source(uri, record, bitstream)));
    Some(Stored {
        lastmod: last_modified(bitstream),
        hash: hash_of(bitstream),
        length: bitstream.computed.length(),
        media_type: media_type(record, bitstream),
        encoding: bitstream.encoding.clone(),
        links: passed,
        body: Body::Bitstream(Box::new(bitstream.clone())),
    })
}

/// The link to the first Source of a deleted resource: that with which it came, as its tombstone keeps it. Without one,
/// the Source that it was harvested from is the first; what that declared of the last version is true no more.
fn via_of_deleted(uri: &ResourceUri, tombstone: Option<&ResourceRecord>) -> Link {
    let own = tombstone.map(links::own).unwrap_or_default();
    links::via(&own).cloned().unwrap_or_else(|| Link::new(relation::VIA, href(uri)))
}

/// What an event means for readers. None for one that changes nothing, and for one that a later event replaced: that
/// one is told in its turn.
fn kind(event: &ChangeEvent, record: Option<&ResourceRecord>) -> Option<Change> {
    let stored = record.and_then(|record| record.bitstream.as_ref()).map(|stored| stored.computed.sha256());
    let (kind, sha256) = match event {
        ChangeEvent::Created { sha256 } | ChangeEvent::Restored { sha256 } => {
            (Change::Created, Some(*sha256))
        }
        ChangeEvent::Updated { sha256, .. } => (Change::Updated, Some(*sha256)),
        ChangeEvent::Healed { sha256, before } if sha256 != before => (Change::Updated, Some(*sha256)),
        ChangeEvent::Deleted { .. } => (Change::Deleted, None),
        _ => return None,
    };
    (sha256 == stored).then_some(kind)
}

/// The link to the first Source of a resource that came without such a link (§14.8): the Source it was harvested from,
/// with what that one declared.
fn first_source(uri: &ResourceUri, record: &ResourceRecord, bitstream: &Bitstream) -> Link {
    let declared = &record.declaration;
    let proved = declared.digests.iter().filter(|digest| bitstream.computed.digests().contains(digest));
    let hash = proved.map(ToString::to_string).collect::<Vec<_>>().join(" ");
    Link {
        modified: declared.lastmod.map(Into::into),
        hash: (!hash.is_empty()).then_some(hash),
        length: declared.length.filter(|length| *length == bitstream.computed.length()),
        media_type: declared.media_type.clone().filter(|told| told.bytes().all(|b| matches!(b, b' '..=b'~'))),
        ..Link::new(relation::VIA, href(uri))
    }
}
