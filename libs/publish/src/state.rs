//! What is remembered of a publication between two runs, in one small file at its place.

mod records;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use fixity::Sha256;
use jiff::{SignedDuration, Timestamp};
use model::{ResourceUri, SourceId};
use serde::{Deserialize, Serialize};

use crate::change_record::{ChangeListRecord, is_zero};
use crate::past_record::Past;
use crate::place::{About, Place, lasting};
use crate::told::ToldUntil;
use crate::{Base, Policy, PublishError};

pub(crate) use self::records::{Draft, Dump, Edition, LeftBehind, Package, Part, Replaced, Retired};

/// The file. Everything that it names is at the place before it is written.
pub(crate) const STATE: &str = ".thresher/publication.json";
/// The most resources whose bytes may be damaged.
const MOST_MISSING: usize = 100_000;
/// The version that is written. A later one is refused.
const VERSION: u16 = 1;

/// The state of a publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    version: u16,
    /// The Source whose stored resources are published.
    pub(crate) source: SourceId,
    /// How often a process saved it only to make all others fail that had read it before.
    #[serde(default, skip_serializing_if = "is_zero")]
    claims: u64,
    /// The base. It cannot change, since all documents name it.
    base: String,
    /// Whether the bytes are laid down beside the documents.
    pub(crate) with_bytes: bool,
    /// The number of the first entry of the change log that is not published yet.
    pub(crate) next_change: u64,
    /// The mark of the entry before that. An earlier version of the publisher noted none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
    /// The time of the last published change; later ones get later times.
    pub(crate) last: Timestamp,
    /// The present Resource List.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edition: Option<Edition>,
    /// A Resource List in the making.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) draft: Option<Draft>,
    /// The present Resource Dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dump: Option<Dump>,
    /// Changes since the Resource Dump.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) changes_since_dump: u64,
    /// Changes since the edition.
    #[serde(default)]
    pub(crate) changes: u64,
    /// The Change Lists of the index, oldest first; the last one is open.
    #[serde(default)]
    pub(crate) lists: Vec<ChangeListRecord>,
    /// Resources whose bytes are damaged: they could not be laid down, or a server could not read them. They are told as
    /// deleted, and no Resource List names them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) missing: BTreeSet<ResourceUri>,
    /// Where bytes are laid down, a time for each of them: before that at which its damage was told, and after all that
    /// were told earlier. An earlier version of the publisher noted none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    missing_since: BTreeMap<ResourceUri, Timestamp>,
    /// Where no bytes are laid down, when the damaged ones were read last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tried: Option<Timestamp>,
    /// Resources of this publication that were withdrawn, as far as that is told.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) takedown: BTreeSet<ResourceUri>,
    /// The digest of the whole list of what is withdrawn, when it was looked through. None of an empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) takedown_list: Option<Sha256>,
    /// Whether the records were made anew once: they do not know what was published before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) was_made_anew: bool,
    /// Whether the next Resource Dump is to be made at once, and the packages that it does not keep are to go with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) purge: bool,
    /// The rule by which its records are chosen, of a set by rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// The sets by rule that have documents, and since when each is not published any more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) sets: BTreeMap<String, Option<Timestamp>>,
    /// Digests of the documents with a fixed name, so that equal ones are not written again.
    #[serde(default)]
    pub(crate) fixed: BTreeMap<String, Sha256>,
    /// Until when changes were told, and when.
    #[serde(default, skip_serializing_if = "ToldUntil::is_empty")]
    pub(crate) told: ToldUntil,
    /// Documents that no list names any more. They stay for a while.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) retired: Vec<Retired>,
    /// Old Resource Lists and Dumps that were replaced, and that readers may still use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) replaced: Vec<Replaced>,
    /// Documents of the past that stay.
    #[serde(default, skip_serializing_if = "Past::is_empty")]
    pub(crate) past: Past,
    /// The files of resources are removed whose deletion has an earlier time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) swept_to: Option<Timestamp>,
    /// Files of resources that records made anew do not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_behind: Option<LeftBehind>,
    /// When files are looked for that nothing names. None if there can be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) orphans_due: Option<Timestamp>,
}

impl State {
    /// The files of its lists and packages, and those of the past.
    pub(crate) fn named(&self) -> HashSet<&str> {
        let parts = self.edition.iter().flat_map(|edition| &edition.parts);
        let drafted = self.draft.iter().flat_map(|draft| &draft.parts);
        let parts = parts.chain(drafted).map(|part| part.path.as_str());
        let drafted = self.draft.iter().filter_map(|draft| draft.packages.as_ref()).flatten();
        let drafted = drafted.flat_map(|package| [package.path.as_str(), package.contents.as_str()]);
        let packages = self.dump.iter().flat_map(Dump::paths).chain(drafted);
        let lists = self.lists.iter().flat_map(ChangeListRecord::files);
        parts.chain(packages).chain(lists).chain(self.past.paths()).collect()
    }

    /// Notes that a Resource List or Dump was replaced whose readers need changes of so long ago. Those of later times
    /// are there anyway as long as it may be used.
    pub(crate) fn note_replaced(&mut self, policy: &Policy, oldest: Timestamp, since: Timestamp) {
        let there_anyway = policy.keep_changes.saturating_sub(policy.keep_replaced);
        if since.checked_sub(there_anyway).is_ok_and(|then| oldest < then) {
            self.replaced.push(Replaced { oldest, since });
        }
    }

    /// Notes whether the bytes of a resource are at the place.
    pub(crate) fn note_missing(&mut self, uri: &ResourceUri, is_missing: bool) -> Result<(), PublishError> {
        if !is_missing {
            self.missing.remove(uri);
            self.missing_since.remove(uri);
        } else if self.missing.len() < MOST_MISSING {
            if self.missing.insert(uri.clone()) && self.with_bytes {
                let since = self.last.checked_add(SignedDuration::from_micros(1)).unwrap_or(self.last);
                self.missing_since.insert(uri.clone(), since);
            }
        } else {
            return Err(PublishError::Refused(format!(
                "more than {MOST_MISSING} resources are damaged; run `thresher scrub --repair` first"
            )));
        }
        Ok(())
    }

    /// Whether the damage of a resource was told before this time.
    pub(crate) fn is_missing_before(&self, uri: &ResourceUri, over: Timestamp) -> bool {
        self.missing.contains(uri) && self.missing_since.get(uri).is_none_or(|since| *since < over)
    }

    /// Forgets which resources are damaged: all are laid down anew.
    pub(crate) fn forget_missing(&mut self) {
        self.missing.clear();
        self.missing_since.clear();
    }

    pub(crate) fn new(source: &SourceId, base: &Base, with_bytes: bool) -> Self {
        Self {
            version: VERSION,
            source: source.clone(),
            claims: 0,
            base: base.as_str().to_owned(),
            with_bytes,
            next_change: 0,
            mark: None,
            last: Timestamp::UNIX_EPOCH,
            edition: None,
            draft: None,
            dump: None,
            changes_since_dump: 0,
            changes: 0,
            lists: Vec::new(),
            missing: BTreeSet::new(),
            missing_since: BTreeMap::new(),
            tried: None,
            takedown: BTreeSet::new(),
            takedown_list: None,
            was_made_anew: false,
            purge: false,
            rule: None,
            sets: BTreeMap::new(),
            fixed: BTreeMap::new(),
            told: ToldUntil::default(),
            retired: Vec::new(),
            replaced: Vec::new(),
            past: Past::default(),
            swept_to: None,
            left_behind: None,
            orphans_due: None,
        }
    }

    /// The state at a place, if something was published there.
    pub(crate) async fn load(place: &Place) -> Result<Option<Self>, PublishError> {
        Self::parse(place, place.read(STATE).await?)
    }

    /// The same, to be continued by the process that writes the publication now.
    pub(crate) async fn load_to_continue(place: &Place) -> Result<Option<Self>, PublishError> {
        Self::parse(place, place.read_to_replace(STATE).await?)
    }

    fn parse(place: &Place, bytes: Option<Bytes>) -> Result<Option<Self>, PublishError> {
        let Some(bytes) = bytes else { return Ok(None) };
        let state: Self =
            serde_json::from_slice(&bytes).map_err(|error| PublishError::changed(STATE, error))?;
        if state.version > VERSION {
            return Err(PublishError::Refused(format!(
                "{} was published by a later version of Thresher (format {}); use that one",
                place.name(),
                state.version
            )));
        }
        Ok(Some(state))
    }

    /// Refuses to continue another publication.
    pub(crate) fn check(
        &self,
        place: &Place,
        source: &SourceId,
        base: &Base,
        with_bytes: bool,
    ) -> Result<(), PublishError> {
        let refuse = |what: String| {
            Err(PublishError::Refused(format!(
                "{} has a publication {what}; pass another place",
                place.name()
            )))
        };
        if self.source != *source {
            return refuse(format!("of another Source, {}", self.source));
        }
        if self.base != base.as_str() {
            return refuse(format!("at another base, {}", self.base));
        }
        match (self.with_bytes, with_bytes) {
            (true, false) => refuse("with bytes, not of documents only".to_owned()),
            (false, true) => refuse("of documents only".to_owned()),
            _ => Ok(()),
        }
    }

    /// Makes each other process fail that has read the state before: none of them can save its own any more. What this
    /// run has done so far is not noted by that.
    ///
    /// # Errors
    /// [`PublishError::Busy`] when another one has saved its state since this one was read.
    pub(crate) async fn claim(&mut self, place: &Place) -> Result<(), PublishError> {
        let there = Self::load(place).await?;
        let mut there = there.ok_or_else(|| PublishError::Busy(place.name().to_owned()))?;
        there.claims = there.claims.saturating_add(1);
        self.claims = there.claims;
        there.save(place).await
    }

    pub(crate) async fn save(&self, place: &Place) -> Result<(), PublishError> {
        let json = serde_json::to_vec(self).map_err(|error| PublishError::place(STATE, error))?;
        let about = About { media_type: Some("application/json".to_owned()), ..lasting() };
        // What it names outlives a loss of power, too.
        place.flush().await?;
        place.replace(STATE, json.into(), &about).await
    }
}
