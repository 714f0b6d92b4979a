//! The records of one Source in a repository: of one set alone, or of one among several.

use std::sync::Arc;

use catalog::CatalogReader;
use jiff::Timestamp;
use oaipmh::{RecordHeader, Selection, SetItem};
use publish::{OaiRecords, PublishError, SeenSets};
use store::StoreError;
use tokio::sync::Mutex;

use crate::harvest::Harvest;
use crate::shared::{OpenRecords, Shared};

/// The records of one Source.
pub(super) struct Member<'s> {
    shared: &'s Shared,
    /// The ID of the Source, which is a set of the repository. None where the repository has this Source only.
    name: Option<&'s str>,
    /// The URL of the Source.
    pub(super) url: &'s str,
    pub(super) records: OaiRecords,
    /// The time up to which all withdrawals are known.
    pub(super) withdrawn_until: Timestamp,
    /// The sets that its records were seen to name so far.
    pub(super) seen: &'s Mutex<SeenSets>,
    /// Held while the records are read: a server of many sets may close it else, to make room for others.
    _catalog: Arc<CatalogReader>,
}

impl<'s> Member<'s> {
    /// The records of a publication. None if its Source is no OAI-PMH repository.
    ///
    /// # Errors
    /// When the catalog or the place fails, or there is no catalog yet.
    pub(super) async fn of(shared: &'s Shared, is_alone: bool) -> Result<Option<Self>, PublishError> {
        let OpenRecords::Harvest(harvest) = shared.records() else { return Ok(None) };
        let harvest: &Harvest = harvest;
        // Before the catalog: what is withdrawn later has a later time than all that is read from it.
        let (withdrawals, withdrawn_until) = shared.withdrawals().await?;
        let catalog = harvest.catalog().await?;
        let records = OaiRecords::of(harvest.records(&catalog), withdrawals, &shared.takedown()).await?;
        let source = &shared.publication().source;
        Ok(records.map(|records| Self {
            shared,
            name: (!is_alone).then(|| source.source.as_str()),
            url: &source.url,
            records,
            withdrawn_until,
            seen: &harvest.oai_sets,
            _catalog: catalog,
        }))
    }

    /// What a list of the repository selects of this Source. None if it selects nothing.
    pub(super) fn selection(&self, selection: &Selection) -> Option<Selection> {
        if !self.has_format(&selection.prefix) {
            return None;
        }
        let set = match (self.name, selection.set.as_deref()) {
            (None, set) => set,
            (Some(_), None) => None,
            (Some(name), Some(set)) => match set.strip_prefix(name)? {
                "" => None,
                rest => Some(rest.strip_prefix(':')?),
            },
        };
        Some(Selection { set: set.map(str::to_owned), ..selection.clone() })
    }

    /// Notes a record whose bytes cannot be read, for this reason.
    pub(super) async fn note_damage(&self, identifier: &str, prefix: &str, error: &StoreError) {
        if let Some(uri) = self.records.uri_of(identifier, prefix) {
            self.shared.note_damage(&uri, error).await;
        }
    }

    pub(super) fn has_format(&self, prefix: &str) -> bool {
        self.records.formats().iter().any(|format| format.prefix == prefix)
    }

    /// A header as the repository gives it: among several Sources, its sets are below the Source.
    pub(super) fn header(&self, header: RecordHeader) -> RecordHeader {
        let Some(name) = self.name else { return header };
        let sets = if header.sets.is_empty() {
            vec![name.to_owned()]
        } else {
            header.sets.iter().map(|set| format!("{name}:{set}")).collect()
        };
        RecordHeader { sets, ..header }
    }

    /// Its sets, as the repository gives them.
    pub(super) fn sets(&self, seen: &SeenSets) -> Vec<SetItem> {
        let own = self.records.sets(seen);
        let Some(name) = self.name else { return own };
        let title = self.records.name().unwrap_or(self.url).to_owned();
        let below =
            own.into_iter().map(|set| SetItem { spec: format!("{name}:{}", set.spec), name: set.name });
        std::iter::once(SetItem { spec: name.to_owned(), name: title }).chain(below).collect()
    }

    /// A position of its list as one of the repository.
    pub(super) fn position(&self, own: &str) -> String {
        self.name.map_or_else(|| own.to_owned(), |name| format!("{name}/{own}"))
    }

    /// Its own part of a position, if the position is in its list. Empty at the begin.
    pub(super) fn own_position<'p>(&self, position: &'p str) -> Option<&'p str> {
        match self.name {
            None => Some(position),
            Some(name) => position.strip_prefix(name)?.strip_prefix('/'),
        }
    }
}
