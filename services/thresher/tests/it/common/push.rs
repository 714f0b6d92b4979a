//! Fleets that hubs can reach, and the notifications of a Source.

use std::fs;

use jiff::Timestamp;
use resourcesync::{Entry, Item, Options, Reader};
use simulated_source::{Change, SimTime, SimulatedSource};

use super::Fleet;

impl Fleet {
    /// The configuration lines of a fleet with this `public_url`, with `more` fields of its gateway.
    pub(crate) fn push(&self, public_url: &str, more: &str) -> String {
        let key = self.path("push-key");
        fs::write(&key, "a key that nobody guesses, of more than 32 bytes\n").expect("our own folder");
        let gateway = self.gateway().replace("gateway: {", &format!("gateway: {{{more}"));
        format!("{gateway}\npush: {{public_url: '{public_url}', key: {{file: '{}'}}}}", key.display())
    }
}

/// The notifications of a Source, in order: each interval begins where the one before ended.
#[derive(Debug)]
pub(crate) struct Teller {
    told: SimTime,
}

impl Teller {
    /// Begins with changes from now on.
    pub(crate) fn of(source: &SimulatedSource) -> Self {
        Self { told: source.now() }
    }

    /// The Change Notification of all changes since the last one.
    pub(crate) fn tell(&mut self, source: &SimulatedSource, changes: &[Change]) -> String {
        let (from, until) = self.next(source);
        source.notification(from, until, changes)
    }

    /// The interval of these changes, and an entry of each.
    pub(crate) fn entries(
        &mut self,
        source: &SimulatedSource,
        changes: &[Change],
    ) -> (Timestamp, Timestamp, Vec<Entry>) {
        let (from, until) = self.next(source);
        let text = source.notification(from, until, changes);
        let mut reader = Reader::new(text.as_bytes(), Options::default()).expect("a document");
        let mut entries = Vec::new();
        while let Some(item) = reader.next().expect("a document that is whole") {
            let Item::Entry(entry) = item else { panic!("not an entry in {text}") };
            entries.push(*entry);
        }
        (from.timestamp(), until.timestamp(), entries)
    }

    fn next(&mut self, source: &SimulatedSource) -> (SimTime, SimTime) {
        let until = source.now();
        (std::mem::replace(&mut self.told, until), until)
    }
}
