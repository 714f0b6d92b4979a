//! A strict reader over HTTP: it checks each document and each body that it meets, and counts the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use fixity::Sha256;
use jiff::Timestamp;
use model::ResourceUri;
use publish::PublishedPath;
use reqwest::Client;
use resourcesync::{Capability, Change, Entry, Header, Item, Mode, Options, Reader};
use simulated_source::SimulatedSource;

use crate::common::api::send;

/// What the Source had and has, and what readers met.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// Each digest that a resource had so far, by the URL that it is published at.
    digests: BTreeMap<String, BTreeSet<String>>,
    /// What the Source has now.
    pub(super) present: BTreeMap<String, String>,
    /// Answers, by their status.
    pub(super) answers: BTreeMap<u16, u64>,
    /// Bodies of another version than the one of the entry that led to them.
    pub(super) other_versions: u64,
}

/// A publication under the eyes of its readers.
#[derive(Debug)]
pub(super) struct Seen {
    base: String,
    client: Client,
    truth: Mutex<Truth>,
}

/// A reader, and what it holds: the digest of each URL.
#[derive(Debug, Default)]
pub(super) struct Follower {
    pub(super) held: BTreeMap<String, String>,
    to: Option<Timestamp>,
}

impl Seen {
    pub(super) fn new(base: &str) -> Self {
        let client = Client::builder().no_proxy().build().unwrap();
        Self { base: base.to_owned(), client, truth: Mutex::default() }
    }

    pub(super) fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().expect("no holder panics")
    }

    /// Notes what the Source has now. Called before any of it can be published.
    pub(super) fn note(&self, source: &SimulatedSource) {
        let path = |uri: &str| PublishedPath::of(&uri.parse::<ResourceUri>().unwrap()).as_str().to_owned();
        let present = source.expected().map(|now| (format!("{}{}", self.base, path(&now.uri)), now.sha256));
        let mut truth = self.truth();
        truth.present = present.collect();
        for (url, sha256) in truth.present.clone() {
            truth.digests.entry(url).or_default().insert(sha256);
        }
    }

    /// The body of an answer by 200; none of 410.
    async fn get(&self, url: &str) -> Option<Vec<u8>> {
        let answer = send(self.client.get(url)).await;
        *self.truth().answers.entry(answer.status).or_default() += 1;
        match answer.status {
            200 => Some(answer.body),
            410 => None,
            other => panic!("{url} is answered by {other}"),
        }
    }

    pub(super) async fn document(&self, url: &str, kind: &Capability) -> (Header, Vec<Entry>) {
        let body = self.get(url).await.unwrap_or_else(|| panic!("{url} is gone"));
        let options = Options { mode: Mode::Strict, ..Options::default() };
        let mut reader = Reader::new(&body[..], options).unwrap_or_else(|error| panic!("{url}: {error}"));
        let header = reader.header().unwrap().clone();
        assert_eq!(header.capability.as_ref(), Some(kind), "{url}");
        let mut entries = Vec::new();
        while let Some(item) = reader.next().unwrap_or_else(|error| panic!("{url}: {error}")) {
            let Item::Entry(entry) = item else { panic!("{url}: a bad entry") };
            entries.push(*entry);
        }
        assert_eq!(reader.summary().quirks.iter().count(), 0, "{url}");
        (header, entries)
    }

    /// Reads what an entry leads to: the version that it declares, or another one that the Source had or has. A file
    /// gets the bytes of an update before the lists tell it, and an old list stays while a new one is read.
    async fn read(&self, entry: &Entry) -> (String, String) {
        let hash = entry.metadata.hash.as_deref().expect("a hash");
        let declared = hash.strip_prefix("sha-256:").expect("sha-256").to_owned();
        let body = self.get(&entry.loc).await;
        let mut truth = self.truth();
        let Some(body) = body else {
            assert!(!truth.present.contains_key(&entry.loc), "{} is gone, and the Source has it", entry.loc);
            return (entry.loc.clone(), declared);
        };
        let found = Sha256::of(&body).to_string();
        if found != declared {
            assert!(truth.digests[&entry.loc].contains(&found), "{} was never {found}", entry.loc);
            truth.other_versions += 1;
        }
        (entry.loc.clone(), declared)
    }
}

impl Follower {
    /// Goes from the Source Description to the lists: the Resource List once, and the changes since. All that they name
    /// is read.
    pub(super) async fn walk(&mut self, seen: &Seen) {
        let description = format!("{}.well-known/resourcesync", seen.base);
        let (_, sets) = seen.document(&description, &Capability::Description).await;
        let (_, lists) = seen.document(&sets[0].loc, &Capability::CapabilityList).await;
        let list_of = |kind: &Capability| {
            let list = lists.iter().find(|entry| entry.metadata.capability.as_ref() == Some(kind));
            list.unwrap_or_else(|| panic!("no {kind:?}")).loc.clone()
        };
        if self.to.is_none() {
            let (header, entries) =
                seen.document(&list_of(&Capability::ResourceList), &Capability::ResourceList).await;
            for entry in &entries {
                let (url, sha256) = seen.read(entry).await;
                assert!(self.held.insert(url, sha256).is_none(), "{} is listed twice", entry.loc);
            }
            self.to = header.at.map(|at| at.instant());
        }
        self.follow(seen, &list_of(&Capability::ChangeList)).await;
    }

    async fn follow(&mut self, seen: &Seen, index: &str) {
        let (header, lists) = seen.document(index, &Capability::ChangeList).await;
        let since = self.to.expect("a Resource List");
        let begin = header.from.expect("from").instant();
        assert!(begin <= since, "a gap: changes since {begin}, and {since} is known");
        let mut until = None;
        for list in lists {
            assert!(until.is_none() || until == list.metadata.from, "lists join");
            until = list.metadata.until;
            if until.is_some_and(|until| until.instant() < since) {
                continue;
            }
            let (header, changes) = seen.document(&list.loc, &Capability::ChangeList).await;
            assert_eq!(header.from, list.metadata.from);
            for change in changes {
                let time = change.metadata.datetime.expect("a time").instant();
                if self.to.is_some_and(|to| time <= to) {
                    continue;
                }
                self.to = Some(time);
                if change.metadata.change == Some(Change::Deleted) {
                    self.held.remove(&change.loc);
                } else {
                    let (url, sha256) = seen.read(&change).await;
                    self.held.insert(url, sha256);
                }
            }
        }
    }
}
