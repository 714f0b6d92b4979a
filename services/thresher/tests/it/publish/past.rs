//! Publications that were made some time ago, so that no test waits for a day to pass.

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use model::{ResourceUri, SourceId};
use publish::{
    Base, BodyError, CatalogRecords, Changes, Named, Pieces, Place, Policy, Publication, PublishError,
    Published, PublishedPath, Records, Resources, Stored,
};
use store::SourceMarker;
use url::Url;

use crate::common::{Destination, Inside};

/// What a copy holds, as if all of it had been stored some time ago.
struct Aged {
    records: CatalogRecords,
    by: SignedDuration,
}

#[async_trait]
impl Records for Aged {
    async fn next_change(&self) -> Result<u64, PublishError> {
        self.records.next_change().await
    }

    async fn continues(&self, from: u64) -> Result<bool, PublishError> {
        self.records.continues(from).await
    }

    async fn last_change(&self) -> Result<Option<Timestamp>, PublishError> {
        Ok(self.records.last_change().await?.map(|at| at - self.by))
    }

    async fn resources<'a>(&'a self, after: Option<&ResourceUri>) -> Result<Resources<'a>, PublishError> {
        self.records.resources(after).await
    }

    async fn changes<'a>(&'a self, from: u64, end: u64) -> Result<Changes<'a>, PublishError> {
        let told = self.records.changes(from, end).await?;
        let aged = told.map_ok(|mut told| {
            told.at -= self.by;
            told
        });
        Ok(aged.boxed())
    }

    async fn is_present(&self, uri: &ResourceUri) -> Result<bool, PublishError> {
        self.records.is_present(uri).await
    }

    async fn find(&self, uris: &[ResourceUri]) -> Result<Vec<Option<Stored>>, PublishError> {
        self.records.find(uris).await
    }

    async fn open(&self, uri: &ResourceUri, stored: &Stored) -> Result<Pieces, BodyError> {
        self.records.open(uri, stored).await
    }

    fn path(&self, uri: &ResourceUri) -> PublishedPath {
        self.records.path(uri)
    }

    fn named(&self, base: &Base, url: &str) -> Option<Named> {
        self.records.named(base, url)
    }

    fn are_copies(&self) -> bool {
        self.records.are_copies()
    }
}

/// A publication that a server of the copy goes on with.
pub(super) struct Past<'a> {
    pub(super) copy: &'a Destination,
    /// The URL that was harvested.
    pub(super) url: &'a str,
    pub(super) base: &'a str,
    pub(super) dumps: bool,
    pub(super) policy: Policy,
}

impl Past<'_> {
    /// Publishes what the copy holds, so many hours ago. No command of the copy may run meanwhile.
    pub(super) async fn publish(&self, hours_ago: i64) -> Published {
        let inside = Inside::of(self.copy, self.url).await;
        let source = SourceId::of_entry(&self.url.parse::<Url>().unwrap());
        let publication = Publication {
            dumps: self.dumps,
            policy: self.policy,
            ..Publication::of_documents(
                Place::of(inside.store.publication(&source)).unwrap(),
                Base::new(self.base.parse().unwrap()).unwrap(),
                SourceMarker::new(source, self.url),
            )
        };
        let by = SignedDuration::from_hours(hours_ago);
        let records = Aged { records: CatalogRecords::new(&inside.catalog, &inside.store), by };
        let done = publication.run(&records, Timestamp::now() - by, &mut |_| {}).await.unwrap();
        inside.close().await;
        done
    }
}
