//! A strict reader of a publication: it checks every document and every byte that it meets.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fixity::Sha256;
use jiff::Timestamp;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use resourcesync::{Capability, Change, Entry, Header, Item, Mode, Options, Reader, relation};

use crate::world::BASE;

/// A document: its header and its entries.
pub(crate) struct Document {
    pub(crate) header: Header,
    pub(crate) entries: Vec<Entry>,
}

/// A reader, and what it holds: the digest of each URI.
pub(crate) struct Follower {
    objects: Arc<dyn ObjectStore>,
    pub(crate) held: BTreeMap<String, String>,
    to: Option<Timestamp>,
    /// Resources whose bytes are not those of the Resource List, with the digest of their bytes.
    newer: BTreeMap<String, String>,
    /// Whether a publication was killed, and is not complete.
    is_between: bool,
    /// Which of the sets it reads, in the order of the Source Description.
    set: usize,
    /// Whether it reads lists alone: the bytes are served from elsewhere.
    is_without_bytes: bool,
}

pub(crate) async fn file(objects: &Arc<dyn ObjectStore>, url: &str) -> Bytes {
    let path = url.strip_prefix(BASE).unwrap_or_else(|| panic!("{url} is not below the base"));
    let path = percent_encoding::percent_decode_str(path).decode_utf8().unwrap();
    let found =
        objects.get(&Path::parse(&*path).unwrap()).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    found.bytes().await.unwrap()
}

pub(crate) async fn document(objects: &Arc<dyn ObjectStore>, url: &str) -> Document {
    let bytes = file(objects, url).await;
    let options = Options { mode: Mode::Strict, ..Options::default() };
    let mut reader = Reader::new(&bytes[..], options).unwrap_or_else(|error| panic!("{url}: {error}"));
    let header = reader.header().unwrap().clone();
    let mut entries = Vec::new();
    while let Some(item) = reader.next().unwrap_or_else(|error| panic!("{url}: {error}")) {
        match item {
            Item::Entry(entry) => entries.push(*entry),
            Item::Bad(bad) => panic!("{url}: {}", bad.reason),
        }
    }
    let summary = reader.summary();
    assert_eq!(summary.quirks.iter().count(), 0, "{url}: {:?}", summary.quirks);
    Document { header, entries }
}

impl Follower {
    pub(crate) fn new(objects: &Arc<dyn ObjectStore>) -> Self {
        Self {
            objects: Arc::clone(objects),
            held: BTreeMap::new(),
            to: None,
            newer: BTreeMap::new(),
            is_between: false,
            set: 0,
            is_without_bytes: false,
        }
    }

    /// A reader of the lists of a set.
    pub(crate) fn of_set(objects: &Arc<dyn ObjectStore>, set: usize) -> Self {
        Self { set, is_without_bytes: true, ..Self::new(objects) }
    }

    /// Reads the lists of a publication that is complete: bytes that are newer than the Resource List are told in a
    /// Change List.
    pub(crate) async fn follow(&mut self) {
        self.walk().await;
        for (uri, sha256) in std::mem::take(&mut self.newer) {
            assert!(
                self.held.get(&uri).is_none_or(|held| *held == sha256),
                "the bytes of {uri} are told by no list"
            );
        }
    }

    /// The same of a publication that was killed: nothing is missing, but bytes may be newer than all lists.
    pub(crate) async fn follow_between(&mut self) {
        self.is_between = true;
        self.walk().await;
        self.is_between = false;
        self.newer.clear();
    }

    /// Goes from the Source Description to the lists: the Resource List once, and the changes since.
    async fn walk(&mut self) {
        let description =
            self.document(&format!("{BASE}.well-known/resourcesync"), Capability::Description).await;
        let capabilities =
            self.document(&description.entries[self.set].loc, Capability::CapabilityList).await;
        let list_of = |kind: &Capability| {
            let found =
                capabilities.entries.iter().find(|entry| entry.metadata.capability.as_ref() == Some(kind));
            found.map(|entry| entry.loc.clone()).expect("the capability")
        };
        if self.to.is_none() {
            self.read_resources(&list_of(&Capability::ResourceList)).await;
        }
        self.read_changes(&list_of(&Capability::ChangeList)).await;
    }

    async fn document(&self, url: &str, kind: Capability) -> Document {
        let found = document(&self.objects, url).await;
        assert_eq!(found.header.capability, Some(kind), "{url}");
        found
    }

    async fn read_resources(&mut self, url: &str) {
        let list = self.document(url, Capability::ResourceList).await;
        let mut entries = Vec::new();
        if list.header.is_index() {
            for part in &list.entries {
                let read = self.document(&part.loc, Capability::ResourceList).await;
                assert_eq!(read.header.link(relation::INDEX).map(|link| link.href.as_str()), Some(url));
                assert_eq!(read.header.at, part.metadata.at);
                entries.extend(read.entries);
            }
        } else {
            entries = list.entries;
        }
        for entry in entries {
            let (uri, sha256) = self.take(&entry).await;
            assert!(self.held.insert(uri, sha256).is_none(), "{} is listed twice", entry.loc);
        }
        self.to = list.header.at.map(|at| at.instant());
    }

    async fn read_changes(&mut self, url: &str) {
        let index = self.document(url, Capability::ChangeList).await;
        let last = index.entries.len() - 1;
        let since = self.to.expect("a Resource List");
        let begin = index.header.from.expect("from").instant();
        assert!(begin <= since, "a gap: changes since {begin}, and {since} is known");
        let mut until = None;
        for (at, entry) in index.entries.iter().enumerate() {
            assert_eq!(entry.metadata.until.is_none(), at == last, "the last list is open, and no other");
            assert!(until.is_none() || until == entry.metadata.from, "lists join");
            until = entry.metadata.until;
            if until.is_some_and(|until| until.instant() < since) {
                continue;
            }
            let list = self.document(&entry.loc, Capability::ChangeList).await;
            assert_eq!(list.header.from, entry.metadata.from);
            // The index leads on before a list gets its end, and a list may be closed after the index was read.
            let is_same = list.header.until == entry.metadata.until;
            let is_open = list.header.until.is_none() || entry.metadata.until.is_none();
            assert!(is_same || self.is_between && is_open, "{}", entry.loc);
            for change in list.entries {
                let time = change.metadata.datetime.expect("a time").instant();
                if self.to.is_some_and(|to| time <= to) {
                    continue;
                }
                self.to = Some(time);
                if change.metadata.change == Some(Change::Deleted) {
                    self.held.remove(&via(&change));
                } else {
                    let (uri, sha256) = declared(&change);
                    self.held.insert(uri, sha256);
                }
            }
        }
    }

    /// The declared digest of an entry. There are bytes, of this or of a later version.
    async fn take(&mut self, entry: &Entry) -> (String, String) {
        let (uri, sha256) = declared(entry);
        if self.is_without_bytes {
            return (uri, sha256);
        }
        let found = Sha256::of(&file(&self.objects, &entry.loc).await).to_string();
        if found != sha256 {
            self.newer.insert(uri.clone(), found);
        }
        (uri, sha256)
    }
}

/// The URI of the original; the entry's own where nothing was copied.
fn via(entry: &Entry) -> String {
    entry.link(relation::VIA).map_or(&entry.loc, |via| &via.href).clone()
}

pub(crate) fn declared(entry: &Entry) -> (String, String) {
    let hash = entry.metadata.hash.as_deref().expect("a hash");
    (via(entry), hash.strip_prefix("sha-256:").expect("sha-256").to_owned())
}
