//! The sets by rule of a publication.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;

use super::Publication;
use crate::damaged::Damage;
use crate::part_set::Part;
use crate::paths::{DESCRIPTION, SETS};
use crate::records::Records;
use crate::state::{STATE, State};
use crate::withheld::Withheld;
use crate::work::{Alone, Beside, Published, Seen, Work, before};
use crate::{Base, Policy, PublishError, changes, withdraw};

/// Files of a set that are removed before the next ones are looked for.
const AT_A_TIME: usize = 1_000;

/// A publication while its sets are made.
struct Whole<'a> {
    work: Work<'a>,
    state: &'a mut State,
}

#[async_trait]
impl Beside for Whole<'_> {
    fn is_time_to_tell(&self) -> bool {
        self.work.is_time_to_tell()
    }

    async fn tell(&mut self) -> Result<(), PublishError> {
        changes::tell_meanwhile(&mut self.work, self.state).await?;
        withdraw::remove_packages(&mut self.work, self.state).await
    }
}

impl Publication {
    /// Refuses sets of a publication that lays down bytes: a list of a set could name some before they are there.
    pub(super) fn check_sets(&self) -> Result<(), PublishError> {
        if self.with_bytes && !self.sets.is_empty() {
            let why = "sets by rule need a server that has the bytes; publish documents only";
            return Err(PublishError::Refused(why.to_owned()));
        }
        Ok(())
    }

    /// Notes which sets there are, and removes the files of those that are not published any more, after the time for
    /// which they were promised. Returns how many it removed.
    pub(super) async fn retire_sets(&self, state: &mut State, now: Timestamp) -> Result<u64, PublishError> {
        let before_this = state.sets.clone();
        let over = before(now, self.policy.keep_replaced);
        let mut removed = 0;
        let due = state.sets.iter().filter(|(_, since)| since.is_some_and(|since| since <= over));
        let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
        if !due.is_empty() {
            // One that another process has overtaken stops here, before it removes what that one names.
            state.save(&self.place).await?;
        }
        // Also one that is published again now: a run that was killed may have removed a part of it.
        for name in due {
            removed += self.remove_set(&name).await?;
            state.sets.remove(&name);
        }
        let present: BTreeSet<&str> = self.sets.iter().map(|set| set.rule().name()).collect();
        for (name, since) in &mut state.sets {
            *since = if present.contains(name.as_str()) { None } else { Some(since.unwrap_or(now)) };
        }
        state.sets.extend(present.into_iter().map(|name| (name.to_owned(), None)));
        if state.sets != before_this {
            state.save(&self.place).await?;
        }
        Ok(removed)
    }

    /// Removes the files of a set. Its state goes last: without it, documents at a place are those of others.
    async fn remove_set(&self, name: &str) -> Result<u64, PublishError> {
        let place = self.place.folder(&format!("{SETS}/{name}"))?;
        let _lock = place.lock()?;
        let mut removed = 0;
        loop {
            let mut files = place.list("", AT_A_TIME).await?;
            // A bucket lists the publisher's own files first, and there may be as many as are listed at a time.
            files.retain(|path| path != STATE);
            if files.is_empty() {
                break;
            }
            for path in files {
                place.remove(&path).await?;
                removed += 1;
            }
        }
        place.remove(STATE).await?;
        Ok(removed + 1)
    }

    /// Publishes each set by rule, behind the publication itself, whose changes are told meanwhile. Returns these, and
    /// the documents that were written.
    pub(super) async fn put_sets(
        &self,
        records: &dyn Records,
        state: &mut State,
        now: Timestamp,
        see: &mut (dyn FnMut(Seen<'_>) + Send + Sync),
    ) -> Result<Published, PublishError> {
        let description = self.description.clone().unwrap_or_else(|| self.base.url(DESCRIPTION));
        let see = Mutex::new(see);
        let pass_on = |seen: Seen<'_>| {
            let mut see = see.lock().unwrap_or_else(PoisonError::into_inner);
            (*see)(seen);
        };
        let mut of_whole = |seen: Seen<'_>| pass_on(seen);
        // The publication itself tells all changes of its sets.
        let mut of_set = |seen: Seen<'_>| {
            if !matches!(seen, Seen::Told(_)) {
                pass_on(seen);
            }
        };
        let damaged = state.missing.clone();
        let withheld = Withheld::new(records, &self.takedown);
        let mut alone = Alone;
        let work = self.work(&withheld, &mut alone, now, &mut of_whole);
        let mut whole = Whole { work, state };
        let mut documents = 0;
        for set in &self.sets {
            let (folder, name) = (set.folder(), set.rule().name());
            let base = self.base.url(&format!("{folder}/")).parse();
            let base = base.map_err(|error| PublishError::Refused(format!("the set {name}: {error}")))?;
            let part = Self {
                place: self.place.folder(&folder)?,
                base: Base::new(base)?,
                dumps: false,
                // Its topic is that of the publication, which tells all changes.
                hubs: Vec::new(),
                description: Some(description.clone()),
                sets: Vec::new(),
                rule: Some(set.rule().pattern().to_owned()),
                // The versions of the past are below the base of the publication.
                policy: Policy { version_links: false, ..self.policy },
                ..self.clone()
            };
            let _lock = part.place.lock()?;
            let records = Part { records, base: &self.base, set };
            let lists = part.put_lists(&records, Damage::Known(&damaged), &mut whole, now, &mut of_set);
            let (mut state, done) = Box::pin(lists).await?;
            documents += done.documents + part.put_above(&mut state, records.are_copies()).await?;
        }
        let mut done = whole.work.done;
        done.documents += documents;
        Ok(done)
    }
}
