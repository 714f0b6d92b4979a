//! Reads ResourceSync Archives: which versions a Source's lists of the past name.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use catalog::Lookups;
use documents::Part;
use jiff::Timestamp;
use model::{ResourceUri, SetId};
use planning::{EntryContext, Horizon};
use resourcesync::{Capability, Change, Entry, Header, Interval, Item, Mode, relation};
use secrets::redacted;
use url::Url;
use web::Client;

use crate::candidate::Candidate;
use crate::error::BackfillError;
use crate::member::Member;
use crate::report::Unread;
use crate::resource::place;

/// Maximum documents: Archives, their parts, and the lists of the past with their parts.
pub(crate) const MOST_DOCUMENTS: usize = 2_000;
/// Maximum nesting of indexes.
const MOST_LEVELS: usize = 3;

/// What the Archives of a Source name.
#[derive(Debug, Default)]
pub(crate) struct Archived {
    /// The versions of each resource, in no order.
    pub(crate) versions: HashMap<ResourceUri, Vec<Candidate>>,
    count: usize,
    /// Maximum versions that are held in memory.
    most: usize,
    /// Documents that were asked for: what fails counts too, so that failures have an end.
    pub(crate) tried: usize,
    /// Limits that were met. Each is told once.
    met: HashSet<&'static str>,
    /// Documents that were read.
    pub(crate) documents: u64,
    /// Archives of dumps.
    pub(crate) dumps: u64,
    pub(crate) requests: u64,
    pub(crate) unread: Vec<Unread>,
}

/// A document to read.
pub(crate) struct Next {
    pub(crate) url: Url,
    pub(crate) set: SetId,
    /// What it is expected to be.
    pub(crate) kind: Capability,
    level: usize,
}

/// Reads the Archives of all sets: of Resource Lists the newest one from before `since` and all later ones, of Change
/// Lists those that reach beyond it; and so of dumps, of whose packages only the manifests are read. At most `most`
/// versions are held in memory. Failures of the Source are part of the result.
///
/// # Errors
/// Those of the catalog.
pub(crate) async fn read(
    client: &Client,
    catalog: &Lookups,
    since: Option<Timestamp>,
    now: Timestamp,
    most: usize,
) -> Result<Archived, BackfillError> {
    let mut found = Archived { most, ..Archived::default() };
    for (set, record) in catalog.sets().await? {
        for link in record.capabilities.iter().filter(|link| link.capability.is_archive()) {
            let is_of_dumps =
                matches!(link.capability, Capability::ResourceDumpArchive | Capability::ChangeDumpArchive);
            found.dumps += u64::from(is_of_dumps);
            let Ok(url) = Url::parse(&link.uri) else { continue };
            let archive = Next { url, set: set.clone(), kind: link.capability.clone(), level: 0 };
            let lists = found.list_documents(client, archive, now).await;
            for list in wanted(lists, since) {
                if is_of_dumps {
                    found.read_dump(client, list, now).await;
                } else {
                    found.read_list(client, list, now).await;
                }
            }
        }
    }
    Ok(found)
}

/// Whether the entries of a document are its parts.
///
/// # Errors
/// What it is, if it is not of this kind.
fn parts_of(header: &Header, kind: &Capability) -> Result<bool, String> {
    if kind.is_archive() {
        return documents::expect_archive(header, kind);
    }
    documents::expect_kind(header, kind).map(|()| header.is_index())
}

/// A list of the past, and the time that it is of.
struct Listed {
    next: Next,
    /// `at` of a snapshot, `from` of changes.
    from: Option<Timestamp>,
    /// `until` of changes.
    until: Option<Timestamp>,
}

/// The lists that say what there was since a time.
fn wanted(lists: Vec<Listed>, since: Option<Timestamp>) -> Vec<Next> {
    let Some(since) = since else { return lists.into_iter().map(|list| list.next).collect() };
    let is_list = |list: &Listed| list.next.kind.tells_snapshot();
    let before = lists.iter().filter(|list| is_list(list)).filter_map(|list| list.from);
    let newest_before = before.filter(|at| *at <= since).max();
    let is_wanted = |list: &Listed| {
        if is_list(list) {
            list.from.is_none_or(|at| since <= at || Some(at) == newest_before)
        } else {
            list.until.is_none_or(|until| since <= until)
        }
    };
    lists.into_iter().filter(is_wanted).map(|list| list.next).collect()
}

impl Archived {
    pub(crate) fn give_up(&mut self, url: &Url, reason: &'static str, message: String) {
        self.unread.push(Unread::new(url, reason, message));
    }

    /// Tells that a limit was met, once: an Archive may name millions of documents beyond it.
    pub(crate) fn meet(&mut self, url: &Url, reason: &'static str, message: impl FnOnce() -> String) {
        if self.met.insert(reason) {
            self.give_up(url, reason, message());
        }
    }

    /// Adds a list that an Archive names.
    fn add(&mut self, lists: &mut Vec<Listed>, list: Listed) {
        if lists.len() < MOST_DOCUMENTS {
            lists.push(list);
        } else {
            self.meet(&list.next.url, "limit-documents", || {
                format!("at most {MOST_DOCUMENTS} lists are read")
            });
        }
    }

    /// The lists that an Archive names, over all parts of its index.
    async fn list_documents(&mut self, client: &Client, archive: Next, now: Timestamp) -> Vec<Listed> {
        let mut lists = Vec::new();
        self.walk(client, archive, now, |found, next, header, entry| {
            // A sitemap does not say that it is an Archive.
            let kind = match (&next.kind, &header.capability) {
                (_, None) => return,
                (Capability::ResourceListArchive, _) => Capability::ResourceList,
                (Capability::ResourceDumpArchive, _) => Capability::ResourceDump,
                (Capability::ChangeDumpArchive, _) => Capability::ChangeDump,
                _ => Capability::ChangeList,
            };
            let Ok(url) = Url::parse(&entry.loc) else { return };
            let metadata = entry.metadata;
            let from = metadata.at.or(metadata.from).or(entry.lastmod);
            let until = metadata.until.map(|until| until.instant());
            let next = Next { url, set: next.set.clone(), kind, level: 0 };
            found.add(&mut lists, Listed { next, from: from.map(|from| from.instant()), until });
        })
        .await;
        lists
    }

    /// Notes the versions of a list of the past, over all parts of its index.
    async fn read_list(&mut self, client: &Client, list: Next, now: Timestamp) {
        self.walk(client, list, now, |found, next, header, entry| found.note(next, header, entry, now)).await;
    }

    /// Reads a document, and the parts of an index. Gives each entry to `take`.
    pub(crate) async fn walk(
        &mut self,
        client: &Client,
        first: Next,
        now: Timestamp,
        mut take: impl FnMut(&mut Self, &Next, &Header, Entry),
    ) {
        let mut seen = HashSet::from([first.url.clone()]);
        let mut queue = VecDeque::from([first]);
        while let Some(next) = queue.pop_front() {
            if self.tried >= MOST_DOCUMENTS || next.level > MOST_LEVELS {
                self.meet(&next.url, "limit-documents", || {
                    format!("at most {MOST_DOCUMENTS} documents and {MOST_LEVELS} levels are read")
                });
                return;
            }
            self.tried += 1;
            let options = documents::read_options(Mode::Tolerant, now);
            let (requests, opened) = documents::open_anew(client, &next.url, options).await;
            self.requests += requests;
            let mut stream = match opened {
                Ok(stream) => stream,
                Err(error) => {
                    self.give_up(&next.url, error.reason().as_str(), error.to_string());
                    continue;
                }
            };
            self.documents += 1;
            let mut header: Option<Header> = None;
            let mut has_parts = false;
            while let Some(part) = stream.next().await {
                match part {
                    Part::Header(head) => match parts_of(&head, &next.kind) {
                        Ok(any) => (has_parts, header) = (any, Some(head)),
                        Err(why) => {
                            self.give_up(&next.url, "wrong-kind", why);
                            break;
                        }
                    },
                    Part::Items(items) => {
                        let Some(header) = &header else { break };
                        for item in items {
                            let Item::Entry(entry) = item else { continue };
                            if !has_parts {
                                take(self, &next, header, *entry);
                                continue;
                            }
                            let Ok(url) = Url::parse(&entry.loc) else { continue };
                            // One more than is read, so that the limit is told.
                            if queue.len() <= MOST_DOCUMENTS && seen.insert(url.clone()) {
                                let (set, kind) = (next.set.clone(), next.kind.clone());
                                queue.push_back(Next { url, set, kind, level: next.level + 1 });
                            }
                        }
                    }
                    Part::Broken(error, _) => {
                        self.give_up(&next.url, error.reason().as_str(), error.to_string());
                        break;
                    }
                    Part::End(_) => break,
                }
            }
        }
    }

    /// Notes the version that an entry of a list names.
    fn note(&mut self, next: &Next, header: &Header, entry: Entry, now: Timestamp) {
        let changes = next.kind == Capability::ChangeList;
        let context = EntryContext {
            document: redacted(&next.url).into(),
            set: next.set.clone(),
            changes,
            at: header.at,
            completed: header.completed,
            interval: Interval::OPEN,
            kind: None,
            horizon: Horizon::at(now),
        };
        self.add_version(&next.url, &context, entry, None);
    }

    /// Notes the version that an entry of the document at `url` names, with its place in a package. A deletion is no
    /// version.
    pub(crate) fn add_version(
        &mut self,
        url: &Url,
        context: &EntryContext,
        entry: Entry,
        member: Option<Member>,
    ) {
        let most = self.most;
        if self.count >= most {
            self.meet(url, "limit-entries", || {
                format!("more than {most} versions; a later `since` reads fewer lists")
            });
            return;
        }
        let links = entry.links.clone();
        let Ok(read) = context.read(entry) else { return };
        if read.listing.change == Some(Change::Deleted) {
            return;
        }
        let own = read.listing.change_time.or(read.declaration.lastmod);
        let Some(time) = own.or(read.listing.as_of) else { return };
        let memento = links.iter().find(|link| link.rel.eq_ignore_ascii_case(relation::MEMENTO));
        self.count += 1;
        self.versions.entry(read.uri).or_default().push(Candidate {
            time,
            url: memento.and_then(|link| place(&link.href)),
            member,
            declared: read.declaration,
            named_by: Arc::clone(&read.listing.document),
            is_dated: own.is_some(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(kind: Capability, from: i64, until: Option<i64>) -> Listed {
        let second = |number| Timestamp::from_second(number).unwrap();
        let url = format!("http://h/{from}").parse().unwrap();
        let next = Next { url, set: SetId::new("s"), kind, level: 0 };
        Listed { next, from: Some(second(from)), until: until.map(second) }
    }

    #[test]
    fn lists_beyond_the_limit_are_told_once() {
        let (mut found, mut lists) = (Archived::default(), Vec::new());
        for at in 0..MOST_DOCUMENTS as i64 + 100 {
            found.add(&mut lists, listed(Capability::ResourceList, at, None));
        }
        assert_eq!((lists.len(), found.unread.len()), (MOST_DOCUMENTS, 1));
        assert_eq!(found.unread[0].reason, "limit-documents");
    }

    #[test]
    fn a_state_is_its_newest_list_and_the_changes_since() {
        let lists = || {
            let mut lists: Vec<_> =
                [10, 20, 30, 40].map(|at| listed(Capability::ResourceList, at, None)).into();
            lists.extend(
                [(1, Some(9)), (11, Some(24)), (25, None)]
                    .map(|(from, until)| listed(Capability::ChangeList, from, until)),
            );
            lists
        };
        let urls = |since: Option<i64>| -> Vec<String> {
            let since = since.map(|since| Timestamp::from_second(since).unwrap());
            wanted(lists(), since).iter().map(|next| next.url.path()[1..].to_owned()).collect()
        };
        assert_eq!(urls(None).len(), 7);
        assert_eq!(urls(Some(24)), ["20", "30", "40", "11", "25"]);
        assert_eq!(urls(Some(5)), ["10", "20", "30", "40", "1", "11", "25"]);
    }
}
