//! Records without those that an operator withdrew.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _, future};
use jiff::Timestamp;
use model::ResourceUri;
use resourcesync::Change;

use crate::names::{Named, PublishedPath};
use crate::records::{BodyError, Changes, Pieces, Records, Resources, Stored, Told};
use crate::scanned::Scanned;
use crate::takedown::{Takedown, TakedownList};
use crate::{Base, PublishError, links};

/// The records, without some.
pub(crate) struct Withheld<'a> {
    pub(crate) records: &'a dyn Records,
    /// What is withdrawn, as it was when changes were told last.
    list: RwLock<Arc<TakedownList>>,
    /// Withdrawn resources of which a change was held back, since they were taken last.
    held_back: Mutex<BTreeSet<ResourceUri>>,
}

impl<'a> Withheld<'a> {
    /// The records without what is withdrawn by now.
    pub(crate) fn new(records: &'a dyn Records, takedown: &Takedown) -> Self {
        Self { records, list: RwLock::new(takedown.now()), held_back: Mutex::default() }
    }

    /// The records without these from now on.
    pub(crate) fn hold_back(&self, list: Arc<TakedownList>) {
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = list;
    }

    /// Resources of which a change was held back since the last call.
    pub(crate) fn take_held_back(&self) -> BTreeSet<ResourceUri> {
        std::mem::take(&mut *self.held_back.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_withheld(&self, uri: &ResourceUri) -> bool {
        self.list.read().unwrap_or_else(PoisonError::into_inner).contains(uri)
    }

    /// Whether a change is told. Deletions are: what was deleted before it was withdrawn is not found in the records
    /// any more.
    fn is_told(&self, told: &Told) -> bool {
        if told.kind == Change::Deleted || !self.is_withheld(&told.uri) {
            return true;
        }
        self.held_back.lock().unwrap_or_else(PoisonError::into_inner).insert(told.uri.clone());
        false
    }

    /// The resource, without links to our URLs of what is withdrawn.
    fn without_links(&self, mut stored: Stored) -> Stored {
        let is_withheld = |uri: &ResourceUri| self.is_withheld(uri);
        if stored.links.iter().any(|passed| passed.published.as_ref().is_some_and(is_withheld)) {
            let published: HashSet<ResourceUri> =
                stored.links.iter().filter_map(|passed| passed.published.clone()).collect();
            links::lead(&mut stored.links, |uri| published.contains(uri) && !is_withheld(uri));
        }
        stored
    }
}

#[async_trait]
impl Records for Withheld<'_> {
    async fn refresh(&self, published: u64, now: Timestamp) -> Result<Option<Scanned>, PublishError> {
        self.records.refresh(published, now).await
    }

    async fn next_change(&self) -> Result<u64, PublishError> {
        self.records.next_change().await
    }

    async fn continues(&self, from: u64) -> Result<bool, PublishError> {
        self.records.continues(from).await
    }

    fn are_current(&self) -> bool {
        self.records.are_current()
    }

    async fn mark(&self, before: u64) -> Result<Option<String>, PublishError> {
        self.records.mark(before).await
    }

    async fn last_change(&self) -> Result<Option<Timestamp>, PublishError> {
        self.records.last_change().await
    }

    async fn resources<'a>(&'a self, after: Option<&ResourceUri>) -> Result<Resources<'a>, PublishError> {
        let all = self.records.resources(after).await?;
        let rest = all.try_filter(|(uri, _)| future::ready(!self.is_withheld(uri)));
        Ok(rest.map_ok(|(uri, stored)| (uri, self.without_links(stored))).boxed())
    }

    async fn changes<'a>(&'a self, from: u64, end: u64) -> Result<Changes<'a>, PublishError> {
        let all = self.records.changes(from, end).await?;
        let rest = all.try_filter(|told| future::ready(self.is_told(told)));
        Ok(rest
            .map_ok(|told| Told { stored: told.stored.map(|stored| self.without_links(stored)), ..told })
            .boxed())
    }

    async fn is_present(&self, uri: &ResourceUri) -> Result<bool, PublishError> {
        Ok(!self.is_withheld(uri) && self.records.is_present(uri).await?)
    }

    async fn find(&self, uris: &[ResourceUri]) -> Result<Vec<Option<Stored>>, PublishError> {
        let found = self.records.find(uris).await?.into_iter().zip(uris);
        let rest = found.map(|(stored, uri)| stored.filter(|_| !self.is_withheld(uri)));
        Ok(rest.map(|stored| stored.map(|stored| self.without_links(stored))).collect())
    }

    async fn know(&self, uris: &[ResourceUri]) -> Result<Vec<bool>, PublishError> {
        self.records.know(uris).await
    }

    async fn open(&self, uri: &ResourceUri, stored: &Stored) -> Result<Pieces, BodyError> {
        self.records.open(uri, stored).await
    }

    fn path(&self, uri: &ResourceUri) -> PublishedPath {
        self.records.path(uri)
    }

    fn at(&self, path: &str) -> Option<Named> {
        self.records.at(path)
    }

    fn url(&self, base: &Base, uri: &ResourceUri) -> String {
        self.records.url(base, uri)
    }

    fn named(&self, base: &Base, url: &str) -> Option<Named> {
        self.records.named(base, url)
    }

    fn are_copies(&self) -> bool {
        self.records.are_copies()
    }
}
