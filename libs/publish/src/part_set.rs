//! Sets by rule: a part of what is published of a Source, with lists of its own (§8). A resource has one URL, which the
//! lists of all sets name.

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _, future};
use jiff::Timestamp;
use model::{ResourceUri, SetRule};
use regex::Regex;

use crate::names::{Named, PublishedPath};
use crate::paths::{CAPABILITIES, SETS};
use crate::records::{BodyError, Changes, Pieces, Records, Resources, Stored};
use crate::scanned::Scanned;
use crate::{Base, PublishError};

/// The resources of a publication whose URIs match a pattern. What a resource is called never changes, so it is in the
/// set for ever, or never.
#[derive(Debug, Clone)]
pub struct PartSet {
    rule: SetRule,
    pattern: Regex,
}

impl PartSet {
    /// The set of a rule.
    ///
    /// # Errors
    /// [`PublishError::Refused`] when its pattern is no regular expression, or a too large one.
    pub fn new(rule: SetRule) -> Result<Self, PublishError> {
        let pattern = rule.compiled().map_err(|error| PublishError::Refused(error.to_string()))?;
        Ok(Self { rule, pattern })
    }

    /// Its rule.
    pub fn rule(&self) -> &SetRule {
        &self.rule
    }

    /// The path of its documents below the base of the publication.
    pub(crate) fn folder(&self) -> String {
        format!("{SETS}/{}", self.rule.name())
    }

    /// The path of its Capability List below the base of the publication.
    pub(crate) fn capabilities(&self) -> String {
        format!("{}/{CAPABILITIES}", self.folder())
    }

    fn has(&self, uri: &ResourceUri) -> bool {
        self.pattern.is_match(uri.as_str())
    }
}

/// The records of a set. Their URLs are those of the publication, at this base.
pub(crate) struct Part<'a> {
    pub(crate) records: &'a dyn Records,
    pub(crate) base: &'a Base,
    pub(crate) set: &'a PartSet,
}

#[async_trait]
impl Records for Part<'_> {
    /// The publication has looked already.
    async fn refresh(&self, _: u64, _: Timestamp) -> Result<Option<Scanned>, PublishError> {
        Ok(None)
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
        Ok(all.try_filter(|(uri, _)| future::ready(self.set.has(uri))).boxed())
    }

    async fn changes<'a>(&'a self, from: u64, end: u64) -> Result<Changes<'a>, PublishError> {
        let all = self.records.changes(from, end).await?;
        Ok(all.try_filter(|told| future::ready(self.set.has(&told.uri))).boxed())
    }

    async fn is_present(&self, uri: &ResourceUri) -> Result<bool, PublishError> {
        Ok(self.set.has(uri) && self.records.is_present(uri).await?)
    }

    async fn find(&self, uris: &[ResourceUri]) -> Result<Vec<Option<Stored>>, PublishError> {
        let own: Vec<ResourceUri> = uris.iter().filter(|uri| self.set.has(uri)).cloned().collect();
        let mut found = self.records.find(&own).await?.into_iter();
        Ok(uris.iter().map(|uri| if self.set.has(uri) { found.next().flatten() } else { None }).collect())
    }

    async fn know(&self, uris: &[ResourceUri]) -> Result<Vec<bool>, PublishError> {
        let own: Vec<ResourceUri> = uris.iter().filter(|uri| self.set.has(uri)).cloned().collect();
        let mut known = self.records.know(&own).await?.into_iter();
        Ok(uris.iter().map(|uri| self.set.has(uri) && known.next().unwrap_or_default()).collect())
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

    fn url(&self, _: &Base, uri: &ResourceUri) -> String {
        self.records.url(self.base, uri)
    }

    fn named(&self, _: &Base, url: &str) -> Option<Named> {
        self.records.named(self.base, url)
    }

    fn are_copies(&self) -> bool {
        self.records.are_copies()
    }
}
