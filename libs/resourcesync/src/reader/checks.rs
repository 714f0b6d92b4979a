use jiff::Timestamp;

use super::notes::Notes;
use crate::capability::{Capability, Change};
use crate::datetime::Datetime;
use crate::entry::Entry;
use crate::header::Header;
use crate::interval::Interval;
use crate::link::{Link, relation};
use crate::metadata::Metadata;
use crate::quirk::Quirk;

/// The Sitemap protocol's limit, which sources follow and readers must not depend on (RS-2).
const MOST_ENTRIES: u64 = 50_000;

/// Checks of the whole document by the specification, entry by entry.
pub(super) struct Checks {
    role: Role,
    entries: u64,
    /// The known capabilities in a Capability List so far.
    seen: Vec<Capability>,
    last_loc: String,
    /// [`Options::latest`](crate::Options::latest).
    latest: Option<Timestamp>,
    last_time: Option<Timestamp>,
    last_until: Option<Datetime>,
    rising: bool,
    falling: bool,
}

/// The kind of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Changes of resources.
    Changes,
    /// Documents or packages that each cover an interval.
    Intervals,
    /// Resources of a snapshot, or packages of them.
    Snapshot,
    /// Documents of several kinds.
    Capabilities,
    /// Parts of a list, or unknown.
    Other,
}

impl Checks {
    /// Checks the header, once it is complete.
    pub(super) fn new(header: &Header, latest: Option<Timestamp>, notes: &mut Notes) -> Self {
        let capability = header.capability.as_ref();
        let is = |property: fn(&Capability) -> bool| capability.is_some_and(property);
        let mut note = |odd: bool, quirk| {
            if odd {
                notes.add(quirk);
            }
        };
        note(capability.is_none(), Quirk::NoCapability);
        note(is(Capability::tells_snapshot) && header.at.is_none(), Quirk::MissingAt);
        note(is(Capability::tells_changes) && header.from.is_none(), Quirk::MissingFrom);
        let pushed = capability == Some(&Capability::ChangeNotification);
        note(pushed && header.until.is_none(), Quirk::MissingUntil);
        note(
            header.is_index() && capability.is_some_and(|kind| !kind.may_be_index()),
            Quirk::IndexNotAllowed,
        );
        interval(header.from, header.until, notes);
        let times = [header.at, header.from, header.until];
        notes
            .add_many(Quirk::FutureTime, times.iter().filter(|time| is_later(**time, latest)).count() as u64);
        Self {
            role: Role::of(header),
            entries: 0,
            seen: Vec::new(),
            last_loc: String::new(),
            latest,
            last_time: None,
            last_until: None,
            rising: false,
            falling: false,
        }
    }

    pub(super) fn entry(&mut self, entry: &Entry, header: &Header, notes: &mut Notes) {
        self.entries += 1;
        if self.entries == MOST_ENTRIES + 1 {
            notes.add(Quirk::TooManyEntries);
        }
        let metadata = &entry.metadata;
        let unexplained = metadata.change.is_none() && header.capability == Some(Capability::ChangeList);
        if header.is_index() && metadata.change.is_some() {
            notes.add(Quirk::IndexAsUrlset);
        }
        match self.role {
            Role::Changes if unexplained && entry.names_package() => {
                notes.add(Quirk::PackageInChangeList);
                self.interval(metadata, notes);
            }
            Role::Changes if header.capability.as_ref().is_some_and(|kind| entry.names_part_of(kind)) => {
                notes.add(Quirk::UrlsetAsIndex);
                self.interval(metadata, notes);
            }
            Role::Changes => self.change(entry, header, notes),
            Role::Intervals => self.interval(metadata, notes),
            Role::Snapshot => self.snapshot(entry, header, notes),
            Role::Capabilities => self.capability(metadata, header, notes),
            Role::Other => {}
        }
        let deleted = metadata.change == Some(Change::Deleted);
        if header.capability.as_ref().is_some_and(Capability::is_manifest)
            && metadata.path.is_none()
            && !deleted
            // The patch is in the package, in place of the resource.
            && !entry.links.iter().any(|link| link.rel == relation::PATCH && link.path.is_some())
        {
            notes.add(Quirk::MissingPath);
        }
        let copies = entry.links.iter().filter(|link| link.rel == relation::DUPLICATE);
        let contradicting = copies.filter(|link| contradicts(link, metadata)).count();
        notes.add_many(Quirk::LinkContradicts, contradicting as u64);
        if self.role != Role::Changes {
            if self.last_loc == entry.loc {
                notes.add(Quirk::RepeatedLoc);
            }
            self.last_loc.clear();
            self.last_loc.push_str(&entry.loc);
        }
    }

    /// Runs the last checks at the end of the root element.
    pub(super) fn end(&self, notes: &mut Notes) {
        if self.falling && !self.rising {
            notes.add(Quirk::NewestFirst);
        }
    }

    fn change(&mut self, entry: &Entry, header: &Header, notes: &mut Notes) {
        if entry.metadata.change.is_none() {
            notes.add(Quirk::MissingChange);
        }
        let document = Interval::between(header.from.as_ref(), header.until.as_ref());
        match (&entry.metadata.datetime, &entry.lastmod) {
            (Some(time), _) => self.order(time.instant(), notes),
            // A `lastmod` is no time of change: it may have any order, and be before the document's interval.
            (None, Some(lastmod)) if document.since(lastmod).is_some() => {}
            (None, _) => notes.add(Quirk::NoChangeTime),
        }
        if is_later(entry.change_time(), self.latest) {
            notes.add(Quirk::FutureTime);
        }
        let outside = |time: Datetime| {
            header.from.is_some_and(|from| time < from) || header.until.is_some_and(|until| time > until)
        };
        if entry.metadata.datetime.is_some_and(outside) {
            notes.add(Quirk::ChangeOutsideInterval);
        }
    }

    fn capability(&mut self, metadata: &Metadata, header: &Header, notes: &mut Notes) {
        match &metadata.capability {
            // The targets of a Source Description are clear without it.
            None if header.capability != Some(Capability::CapabilityList) => {}
            None => notes.add(Quirk::MissingEntryCapability),
            // A Source Description has a Capability List for each set. Unknown names are not collected, since
            // a Source may send any number.
            Some(_) if header.capability != Some(Capability::CapabilityList) => {}
            Some(Capability::Other(_)) => {}
            // Sources name one Archive by several URIs.
            Some(known) if known.is_archive() => {}
            Some(known) if self.seen.contains(known) => notes.add(Quirk::RepeatedCapability),
            Some(known) => self.seen.push(known.clone()),
        }
    }

    fn snapshot(&mut self, entry: &Entry, header: &Header, notes: &mut Notes) {
        let metadata = &entry.metadata;
        if metadata.change.is_some() {
            notes.add(Quirk::ChangeInResourceList);
        } else if header.capability.as_ref().is_some_and(|kind| entry.names_part_of(kind)) {
            notes.add(Quirk::UrlsetAsIndex);
        } else if metadata.is_empty() && entry.lastmod.is_none() && entry.links.is_empty() {
            notes.add(Quirk::EntryWithoutMetadata);
        }
    }

    fn interval(&mut self, metadata: &Metadata, notes: &mut Notes) {
        interval(metadata.from, metadata.until, notes);
        if is_later(metadata.from.max(metadata.until), self.latest) {
            notes.add(Quirk::FutureTime);
        }
        if let Some(from) = metadata.from {
            if self.last_until.is_some_and(|until| from < until) {
                notes.add(Quirk::OverlappingIntervals);
            }
            self.order(from.instant(), notes);
        }
        self.last_until = metadata.until;
    }

    fn order(&mut self, time: Timestamp, notes: &mut Notes) {
        match self.last_time.replace(time) {
            Some(last) if time < last => {
                self.falling = true;
                notes.add(Quirk::OutOfOrder);
            }
            Some(last) if time > last => self.rising = true,
            _ => {}
        }
    }
}

impl Role {
    fn of(header: &Header) -> Self {
        match (&header.capability, header.is_index()) {
            (Some(Capability::Description | Capability::CapabilityList), false) => Self::Capabilities,
            (Some(Capability::ChangeDump), false) => Self::Intervals,
            (Some(kind), true) if kind.tells_changes() => Self::Intervals,
            (Some(kind), false) if kind.tells_changes() => Self::Changes,
            (Some(kind), false) if kind.tells_snapshot() => Self::Snapshot,
            _ => Self::Other,
        }
    }
}

/// Whether a link to the same bytes declares others than the entry: another length, or another digest of the same
/// algorithm.
fn contradicts(link: &Link, metadata: &Metadata) -> bool {
    if link.length.zip(metadata.length).is_some_and(|(linked, own)| linked != own) {
        return true;
    }
    let Some((linked, own)) = link.hash.as_deref().zip(metadata.hash.as_deref()) else { return false };
    linked.split_ascii_whitespace().filter_map(|hash| hash.split_once(':')).any(|(algorithm, digest)| {
        let of_same = own.split_ascii_whitespace().filter_map(|hash| hash.split_once(':'));
        let mut of_same = of_same.filter(|(own, _)| own.eq_ignore_ascii_case(algorithm)).peekable();
        of_same.peek().is_some() && !of_same.any(|(_, own)| own.eq_ignore_ascii_case(digest))
    })
}

/// Whether a time is later than the latest moment it can mean.
fn is_later(time: Option<Datetime>, latest: Option<Timestamp>) -> bool {
    time.zip(latest).is_some_and(|(time, latest)| time.instant() > latest)
}

fn interval(from: Option<Datetime>, until: Option<Datetime>, notes: &mut Notes) {
    if let (Some(from), Some(until)) = (from, until) {
        if until < from {
            notes.add(Quirk::ReversedInterval);
        } else if until == from {
            notes.add(Quirk::EmptyInterval);
        }
    }
}
