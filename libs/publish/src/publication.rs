//! One publication: what is stored of a Source, as a Source of its own.

mod packages;
mod parts;

use std::collections::BTreeSet;

use bytes::Bytes;
use jiff::Timestamp;
use model::ResourceUri;
use store::SourceMarker;
use tokio::time::Instant;
use url::Url;

use crate::bytes::spelled;
use crate::change_dump;
use crate::changes;
use crate::damaged::{self, Damage};
use crate::documents::put_above;
use crate::draft;
use crate::dump;
use crate::edition;
use crate::missing;
use crate::names::Named;
use crate::part_set::PartSet;
use crate::paths::CAPABILITIES;
use crate::records::Records;
use crate::state::State;
use crate::takedown::Takedown;
use crate::withheld::Withheld;
use crate::work::{self, Alone, Beside, Observer, Published, Seen, Telling, Work};
use crate::{Base, Place, Policy, PublishError, orphans, withdraw};

/// What is stored of a Source, or in a directory, as a Source of its own.
#[derive(Debug, Clone)]
pub struct Publication {
    /// Where it is laid down.
    pub place: Place,
    /// The URL at which that is served.
    pub base: Base,
    /// The Source whose resources are published. Its URL is shown to readers, so it must have no secrets.
    pub source: SourceMarker,
    /// Whether the bytes are laid down beside the documents.
    pub with_bytes: bool,
    /// Whether a Resource Dump and a Change Dump are made: packages have all bytes once more.
    pub dumps: bool,
    /// Hubs that are told of changes. The Capability List names them.
    pub hubs: Vec<Url>,
    /// The URL of the Source Description of the collection of which it is a set. None where it has its own.
    pub description: Option<String>,
    /// Resources that are not published, though they are stored.
    pub takedown: Takedown,
    /// Sets by rule: parts of it, with lists of their own. The bytes are served from elsewhere then.
    pub sets: Vec<PartSet>,
    /// The rule by which its records are chosen, where it is such a set. Under another one all is published anew.
    pub rule: Option<String>,
    /// Sizes and times.
    pub policy: Policy,
}

impl Publication {
    /// A publication of documents alone, with the usual sizes and times, and nothing besides.
    pub fn of_documents(place: Place, base: Base, source: SourceMarker) -> Self {
        Self {
            place,
            base,
            source,
            with_bytes: false,
            dumps: false,
            hubs: Vec::new(),
            description: None,
            takedown: Takedown::default(),
            sets: Vec::new(),
            rule: None,
            policy: Policy::default(),
        }
    }

    /// Publishes what the records have by now. The first run lays down everything; a later one tells the changes since,
    /// and makes a new Resource List when enough has changed. Without changes it writes nothing.
    ///
    /// It may be dropped or killed at any time: readers find what was published before, and the next run continues.
    ///
    /// # Errors
    /// [`PublishError::Refused`] when the place has something else, [`PublishError::Busy`] while another process
    /// publishes there; [`PublishError::Behind`] for records that may lag, and do; else the error of the records or the
    /// place.
    pub async fn run(
        &self,
        records: &dyn Records,
        now: Timestamp,
        see: &mut (dyn FnMut(Seen<'_>) + Send + Sync),
    ) -> Result<Published, PublishError> {
        self.check_sets()?;
        let _lock = self.place.lock()?;
        // The steps are large: none of them is to be a part of the caller's stack.
        let (mut state, mut done) =
            Box::pin(self.put_lists(records, Damage::Noted, &mut Alone, now, see)).await?;
        done.removed += Box::pin(self.retire_sets(&mut state, now)).await?;
        done += Box::pin(self.put_sets(records, &mut state, now, see)).await?;
        done.documents += Box::pin(self.put_above(&mut state, records.are_copies())).await?;
        Ok(done)
    }

    /// Makes the lists and packages, and removes what is over.
    async fn put_lists(
        &self,
        records: &dyn Records,
        damage: Damage<'_>,
        beside: &mut dyn Beside,
        now: Timestamp,
        see: &mut (dyn FnMut(Seen<'_>) + Send + Sync),
    ) -> Result<(State, Published), PublishError> {
        let mut begun = Instant::now();
        let mut state = self.state().await?;
        let before = state.clone();
        let over = work::before(now, self.policy.keep_replaced);
        if state.told.is_empty() && state.edition.is_some() {
            // An earlier version of the publisher did not note when it told what.
            state.told.begin(over.min(state.last));
        }
        if let Some(scanned) = records.refresh(state.next_change, now).await? {
            see(Seen::Scanned(&scanned));
        }
        let withheld = Withheld::new(records, &self.takedown);
        let mut work = Work { begun, ..self.work(&withheld, beside, now, see) };
        work.is_to_purge = withdraw::is_unfinished(&state);
        let is_made_anew = is_made_anew(&withheld, &state).await?;
        if is_made_anew && !records.are_current() {
            return Err(PublishError::Behind);
        }
        if is_made_anew || state.rule != self.rule {
            draft::start_over(&mut state, now);
            state.was_made_anew |= is_made_anew;
            state.rule.clone_from(&self.rule);
        }
        if !self.dumps {
            dump::give_up(&work, &mut state);
            change_dump::give_up(&work, &mut state);
        }
        changes::settle(&mut work, &mut state).await?;
        if self.dumps {
            changes::begin_dumped(&mut work, &mut state).await?;
        }
        if state.edition.is_none() {
            let draft = draft::first_draft(&mut work, &mut state).await?;
            withdraw::remove_packages(&mut work, &mut state).await?;
            Box::pin(edition::make(&mut work, &mut state, draft)).await?;
            begun = Instant::now();
        }
        Box::pin(changes::tell(&mut work, &mut state)).await?;
        if self.with_bytes {
            Box::pin(missing::tell_back(&mut work, &mut state, &before.missing)).await?;
        }
        changes::close_old(&mut work, &mut state).await?;
        if state != before {
            state.save(&self.place).await?;
            changes::settle(&mut work, &mut state).await?;
        }
        work.note_told(begun);
        work.done.telling = begun.elapsed();
        withdraw::remove_packages(&mut work, &mut state).await?;
        if !self.with_bytes {
            // It may read much, and changes are told by now.
            Box::pin(damaged::tell_damage(&mut work, &mut state, damage)).await?;
            withdraw::remove_packages(&mut work, &mut state).await?;
        }
        if let Some(draft) = draft::next_draft(&work, &state) {
            Box::pin(edition::make(&mut work, &mut state, draft)).await?;
        }
        if state != before {
            orphans::look_later(&work, &mut state);
        }
        state.told.note(work.time(), state.last, over);
        crate::retire::retire(&mut work, &mut state).await?;
        if state != before {
            state.save(&self.place).await?;
            changes::settle(&mut work, &mut state).await?;
        }
        work.done.resources = state.edition.as_ref().map_or(0, |edition| edition.resources);
        Ok((state, work.done))
    }

    /// What the steps of a run share that begins now.
    fn work<'a>(
        &'a self,
        withheld: &'a Withheld<'a>,
        beside: &'a mut dyn Beside,
        now: Timestamp,
        see: Observer<'a>,
    ) -> Work<'a> {
        Work {
            place: &self.place,
            base: &self.base,
            records: withheld,
            withheld,
            takedown: &self.takedown,
            policy: self.policy,
            with_bytes: self.with_bytes,
            dumps: self.dumps,
            now,
            begun: Instant::now(),
            done: Published::default(),
            left_out: BTreeSet::new(),
            telling: Telling::none(),
            is_to_purge: false,
            beside,
            see,
        }
    }

    /// Writes the documents above the lists. Returns how many.
    async fn put_above(&self, state: &mut State, are_copies: bool) -> Result<u64, PublishError> {
        let before = state.clone();
        let description = self.description.as_deref();
        let page = crate::page::page(&self.base, &self.source.url, description, are_copies);
        let sets: Vec<String> = self.sets.iter().map(PartSet::capabilities).collect();
        let Self { place, base, hubs, .. } = self;
        let written = put_above(place, base, state, &page, hubs, description, &sets).await?;
        if *state != before {
            state.save(&self.place).await?;
        }
        Ok(written)
    }

    /// Whether it was published at its place before, at this base, as far as its Capability List.
    ///
    /// # Errors
    /// [`PublishError::Refused`] when the place has another publication; else the error of the place.
    pub async fn is_there(&self) -> Result<bool, PublishError> {
        let Self { place, base, source, with_bytes, .. } = self;
        let Some(state) = State::load(place).await? else { return Ok(false) };
        state.check(place, &source.source, base, *with_bytes)?;
        Ok(state.fixed.contains_key(CAPABILITIES))
    }

    /// What was deleted before this time is gone: readers were told so long ago that no list in use names it.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn gone_before(&self, now: Timestamp) -> Result<Timestamp, PublishError> {
        let over = work::before(now, self.policy.keep_replaced);
        let state = State::load(&self.place).await?;
        let until = state.and_then(|state| state.told.by(over));
        Ok(until.map_or(Timestamp::MAX, |until| work::later(until, 1)))
    }

    /// The resource at a path below the base.
    ///
    /// # Errors
    /// When the place fails. A path that no resource has is none.
    pub async fn resource_at(&self, path: &str) -> Result<Option<ResourceUri>, PublishError> {
        match Named::at(path) {
            None => Ok(None),
            Some(Named::Resource(uri)) => Ok(Some(uri)),
            Some(Named::Long(sha256)) => {
                let text: Option<Bytes> = self.place.read(&spelled(sha256)).await?;
                let text = text.as_deref().and_then(|text| std::str::from_utf8(text).ok());
                Ok(text.and_then(|text| text.parse().ok()))
            }
        }
    }

    async fn state(&self) -> Result<State, PublishError> {
        let Self { place, base, source, with_bytes, .. } = self;
        if let Some(state) = State::load_to_continue(place).await? {
            state.check(place, &source.source, base, *with_bytes)?;
            return Ok(state);
        }
        if place.has_others().await? {
            return Err(PublishError::Refused(format!(
                "{} is not empty, and has no publication; pass an empty place",
                place.name()
            )));
        }
        Ok(State::new(&source.source, base, *with_bytes))
    }
}

/// Whether the records are not those that were published, though of the same Source.
async fn is_made_anew(records: &dyn Records, state: &State) -> Result<bool, PublishError> {
    if !records.continues(state.next_change).await? {
        return Ok(true);
    }
    let Some(known) = &state.mark else { return Ok(false) };
    let there = records.mark(state.next_change).await?;
    Ok(there.is_some_and(|there| there != *known))
}
