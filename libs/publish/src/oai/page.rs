//! A page of a list.

use std::pin::pin;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::{Bitstream, ChangeLogEntry, ResourceUri};
use oaipmh::{Granularity, Selection, Status};

use super::chosen::Chosen;
use super::position::Position;
use super::record::{Found, OaiRecord, header, identifier, is_change, state_since};
use super::records::{OaiRecords, text};
use super::withdrawals::Withdrawal;
use crate::PublishError;
use crate::records::BodyError;
use crate::work::before;

/// The fewest and the most entries of the change log whose records are looked up together.
const TOGETHER: (usize, usize) = (50, 500);
/// By how much clocks of schedulers may differ: times of the change log may go back so far.
const SKEW: std::time::Duration = std::time::Duration::from_secs(60);

/// Limits of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OaiLimits {
    /// The most records.
    pub records: usize,
    /// The most bytes of metadata. A record alone may have more.
    pub bytes: u64,
    /// The most entries of the change log that are read for a page.
    pub entries: usize,
}

/// A page of a list.
#[derive(Debug)]
pub struct OaiPage {
    /// The records. There may be none though another page follows.
    pub records: Vec<OaiRecord>,
    /// Where the next page begins; none if this is the last one.
    pub next: Option<String>,
    /// Records that were left out, since their bytes are damaged.
    pub damaged: Vec<(String, BodyError)>,
}

impl OaiRecords {
    /// A page of headers behind a position. None if the position is none of this catalog.
    ///
    /// # Errors
    /// When the catalog fails.
    pub async fn headers(
        &self,
        selection: &Selection,
        after: Option<&str>,
        limits: OaiLimits,
    ) -> Result<Option<OaiPage>, PublishError> {
        let Some(chosen) = self.choose(selection, after, limits).await? else { return Ok(None) };
        let records = chosen.records.into_iter();
        let records = records.map(|Found { header, .. }| OaiRecord { header, metadata: None }).collect();
        let next = chosen.next.map(|next| next.to_string());
        Ok(Some(OaiPage { records, next, damaged: Vec::new() }))
    }

    /// A page of records behind a position. None if the position is none of this catalog.
    ///
    /// # Errors
    /// When the catalog or the store fails.
    pub async fn page(
        &self,
        selection: &Selection,
        after: Option<&str>,
        limits: OaiLimits,
    ) -> Result<Option<OaiPage>, PublishError> {
        let Some(chosen) = self.choose(selection, after, limits).await? else { return Ok(None) };
        let stored: Vec<&Bitstream> =
            chosen.records.iter().filter_map(|found| found.bitstream.as_ref()).collect();
        let mut bodies = self.held.store().read_batch(&stored).await.into_iter();
        let next = chosen.next.as_ref().map(ToString::to_string);
        let mut page =
            OaiPage { records: Vec::with_capacity(chosen.records.len()), next, damaged: Vec::new() };
        for Found { header, bitstream, .. } in chosen.records {
            let body = bitstream.and_then(|_| bodies.next());
            match body.map(|body| text(&header.identifier, body)).transpose() {
                Ok(metadata) => page.records.push(OaiRecord { header, metadata }),
                Err(error) => {
                    let damage = BodyError::from(error).of_resource::<()>()?;
                    page.damaged.extend(damage.err().map(|error| (header.identifier, error)));
                }
            }
        }
        Ok(Some(page))
    }

    async fn choose(
        &self,
        selection: &Selection,
        after: Option<&str>,
        limits: OaiLimits,
    ) -> Result<Option<Chosen>, PublishError> {
        let mut chosen = Chosen::new(limits);
        let first = match after.map(Position::parse) {
            None => match selection.window.from {
                Some(from) => self.held.catalog().first_change_since(before(from, SKEW)).await?,
                None => 0,
            },
            Some(Some(Position::Logged { number, check })) => {
                let entry = self.held.catalog().scan_changes(number).await?.try_next().await?;
                let known = entry.map(|(number, entry)| Position::logged(number, &entry));
                if known != Some(Position::Logged { number, check }) {
                    return Ok(None);
                }
                number + 1
            }
            Some(Some(position)) => {
                self.choose_withdrawn(selection, Some(&position), &mut chosen).await?;
                return Ok(Some(chosen));
            }
            Some(None) => return Ok(None),
        };
        self.choose_logged(selection, first, &mut chosen).await?;
        if chosen.next.is_none() {
            self.choose_withdrawn(selection, None, &mut chosen).await?;
        }
        Ok(Some(chosen))
    }

    /// Takes records of the change log from a number on.
    async fn choose_logged(
        &self,
        selection: &Selection,
        mut first: u64,
        chosen: &mut Chosen,
    ) -> Result<(), PublishError> {
        let is_behind = |at: Timestamp| selection.window.until.is_some_and(|until| before(at, SKEW) > until);
        loop {
            let begin = first;
            let log = self.held.catalog().scan_changes(first).await?.map_err(PublishError::from);
            let mut log = pin!(log.try_chunks(chosen.together(TOGETHER)));
            while let Some(entries) = log.try_next().await.map_err(|error| error.1)? {
                let Some((number, last)) = entries.last() else { break };
                first = number + 1;
                let is_end = is_behind(last.at);
                let (count, last) = (entries.len(), Position::logged(*number, last));
                self.current(selection, entries).await?.into_iter().for_each(|found| chosen.take(found));
                chosen.count(count, last);
                if is_end || chosen.next.is_some() {
                    return Ok(());
                }
            }
            // A record that changed meanwhile stands behind what this scan showed.
            if first == begin {
                return Ok(());
            }
        }
    }

    /// The records whose last change is among these entries.
    async fn current(
        &self,
        selection: &Selection,
        entries: Vec<(u64, ChangeLogEntry)>,
    ) -> Result<Vec<Found>, PublishError> {
        let window = &selection.window;
        let may_match = |entry: &ChangeLogEntry| {
            is_change(&entry.event) && window.contains(entry.at, Granularity::Second)
        };
        let entries = entries.into_iter().filter(|(_, entry)| may_match(entry));
        let entries: Vec<_> = entries
            .filter_map(|(number, entry)| {
                let identifier = identifier(&self.base, &entry.uri, &selection.prefix)?;
                Some((number, entry, identifier))
            })
            .collect();
        let uris: Vec<ResourceUri> = entries.iter().map(|(_, entry, _)| entry.uri.clone()).collect();
        let records = self.held.catalog().resources_many(&uris).await?;
        let found = entries.into_iter().zip(records).filter_map(|((number, entry, identifier), record)| {
            let record = record?;
            let withdrawal = self.withdrawals.of(&entry.uri);
            // It is listed with the time at which it was withdrawn, or came back.
            if withdrawal.is_some_and(|withdrawal| withdrawal.at > entry.at) {
                return None;
            }
            let state = state_since(&entry, &record)?;
            let status = if self.is_withdrawn(&entry.uri) { Status::Deleted } else { state };
            let header = header(&self.base, identifier, &record, entry.at, status);
            let bitstream = record.bitstream.filter(|_| status.is_live());
            Some(Found { position: Position::logged(number, &entry), header, bitstream })
        });
        Ok(found.filter(|found| is_in(found, selection)).collect())
    }

    /// Takes records that were withdrawn, or are published again after that, behind a position.
    async fn choose_withdrawn(
        &self,
        selection: &Selection,
        after: Option<&Position>,
        chosen: &mut Chosen,
    ) -> Result<(), PublishError> {
        let key = |position: &Position| match position {
            Position::Withdrawn { at, check } => Some((*at, check.clone())),
            Position::Logged { .. } => None,
        };
        let after = after.and_then(key);
        let all = self.withdrawals.iter();
        let all = all.filter(|(_, known)| selection.window.contains(known.at, Granularity::Second));
        let mut all: Vec<(Position, &ResourceUri, Withdrawal)> =
            all.map(|(uri, known)| (Position::withdrawn(uri, known.at), uri, known)).collect();
        all.retain(|(position, ..)| after.is_none() || key(position) > after);
        all.sort_by_cached_key(|(position, ..)| key(position));
        for some in all.chunks(TOGETHER.1) {
            let uris: Vec<ResourceUri> = some.iter().map(|(_, uri, _)| (*uri).clone()).collect();
            let records = self.held.catalog().resources_many(&uris).await?;
            for ((position, uri, known), record) in some.iter().zip(records) {
                let Some(identifier) = identifier(&self.base, uri, &selection.prefix) else { continue };
                let Some(record) = record else { continue };
                let is_live = record.is_present() && !self.is_withdrawn(uri);
                let status = if is_live { Status::Live } else { Status::Deleted };
                let header = header(&self.base, identifier, &record, known.at, status);
                let bitstream = record.bitstream.filter(|_| is_live);
                let found = Found { position: position.clone(), header, bitstream };
                if is_in(&found, selection) {
                    chosen.take(found);
                }
            }
            if chosen.next.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn is_in(found: &Found, selection: &Selection) -> bool {
    selection.set.as_ref().is_none_or(|set| found.header.is_in(set))
}
