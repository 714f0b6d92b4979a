//! Pages of the change log. An entry leaves out what is as in the entry before it.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use model::{ChangeEvent, ChangeLogEntry, Location, Provenance, ResourceUri, RunId};
use serde::{Deserialize, Serialize};

use super::digest::Raw;
use super::location::{LocationForm, archive_of};
use super::{COMPACT, json_unless_default, read_json, read_next, write};

/// An entry.
#[derive(Debug, Serialize, Deserialize)]
struct EntryForm<'a> {
    /// The document, if it is another one.
    document: Option<&'a str>,
    /// The run, if it is another one.
    #[serde(borrow)]
    run: Option<Raw<'a>>,
    /// [`Provenance`] as JSON, if it is another one.
    account: Option<&'a str>,
    /// [`Rare`] as JSON.
    rare: Option<&'a str>,
    #[serde(borrow)]
    freed: Option<LocationForm<'a>>,
    /// How many bytes at its beginning the URI shares with the one before.
    shared: u32,
    /// The rest of the URI.
    uri: &'a str,
    /// Nanoseconds since the entry before.
    later: i128,
    #[serde(borrow)]
    event: EventForm<'a>,
}

/// An event.
#[derive(Debug, Serialize, Deserialize)]
enum EventForm<'a> {
    /// One that is rare, as JSON.
    Other(&'a str),
    Created(#[serde(borrow)] Raw<'a>),
    Updated(#[serde(borrow)] Raw<'a>, #[serde(borrow)] Raw<'a>),
    Deleted(bool),
    Restored(#[serde(borrow)] Raw<'a>),
    Healed(#[serde(borrow)] Raw<'a>, #[serde(borrow)] Raw<'a>),
    Confirmed(#[serde(borrow)] Raw<'a>),
}

/// Fields that few entries have. A later optional field goes here.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Rare<'a> {
    #[serde(default, skip_serializing_if = "is_empty")]
    freed_versions: Cow<'a, [Location]>,
}

/// What an entry is compared with: the one before, or nothing.
#[derive(Debug, Clone)]
struct Before {
    uri: Option<ResourceUri>,
    document: Arc<str>,
    run: Option<RunId>,
    account: Provenance,
    at: Timestamp,
}

/// A page that is written.
#[derive(Debug)]
pub(crate) struct PageWriter {
    bytes: Vec<u8>,
    before: Before,
}

impl Default for Before {
    fn default() -> Self {
        Self {
            uri: None,
            document: "".into(),
            run: None,
            account: Provenance::default(),
            at: Timestamp::UNIX_EPOCH,
        }
    }
}

impl PageWriter {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![COMPACT], before: Before::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn append(&mut self, entry: &ChangeLogEntry) {
        let ChangeLogEntry { uri, event, at, run, document, freed, freed_versions, account } = entry;
        let before = &self.before;
        let run_bytes = run.to_bytes();
        let account_json = (*account != before.account)
            // Structs of strings, numbers and lists.
            .then(|| serde_json::to_string(account).expect("records serialise to JSON"));
        let rare = json_unless_default(&Rare { freed_versions: Cow::Borrowed(freed_versions) });
        let archive = freed.as_ref().map(archive_of);
        let freed = freed.as_ref().zip(archive.as_ref());
        let shared = shared_bytes(before.uri.as_ref().map_or("", ResourceUri::as_str), uri.as_str());
        let other_event;
        let form = EntryForm {
            document: (*document != before.document).then_some(&**document),
            run: (Some(*run) != before.run).then_some(Raw(&run_bytes)),
            account: account_json.as_deref(),
            rare: rare.as_deref(),
            freed: freed.map(|(freed, archive)| LocationForm::of(freed, archive, None)),
            shared: shared as u32,
            uri: &uri.as_str()[shared..],
            later: at.as_nanosecond() - before.at.as_nanosecond(),
            event: match event {
                ChangeEvent::Created { sha256 } => EventForm::Created(Raw::of(sha256)),
                ChangeEvent::Updated { sha256, before } => {
                    EventForm::Updated(Raw::of(sha256), Raw::of(before))
                }
                ChangeEvent::Deleted { absent } => EventForm::Deleted(*absent),
                ChangeEvent::Restored { sha256 } => EventForm::Restored(Raw::of(sha256)),
                ChangeEvent::Healed { sha256, before } => EventForm::Healed(Raw::of(sha256), Raw::of(before)),
                ChangeEvent::Confirmed { sha256 } => EventForm::Confirmed(Raw::of(sha256)),
                ChangeEvent::Ignored { .. }
                | ChangeEvent::Retried
                | ChangeEvent::VersionLost { .. }
                | ChangeEvent::Problem { .. } => {
                    // Structs of strings and numbers.
                    other_event = serde_json::to_string(event).expect("records serialise to JSON");
                    EventForm::Other(&other_event)
                }
            },
        };
        write(&mut self.bytes, &form);
        self.before = Before {
            uri: Some(uri.clone()),
            document: Arc::clone(document),
            run: Some(*run),
            account: account.clone(),
            at: *at,
        };
    }
}

/// Reads the entries of a page from its compact form.
pub(crate) fn read_page(mut form: &[u8]) -> Result<Vec<ChangeLogEntry>, String> {
    let mut before = Before::default();
    let mut entries = Vec::new();
    while !form.is_empty() {
        let (entry, rest) = read_next::<EntryForm<'_>>(form)?;
        entries.push(entry.read(&mut before)?);
        form = rest;
    }
    Ok(entries)
}

impl EntryForm<'_> {
    fn read(self, before: &mut Before) -> Result<ChangeLogEntry, String> {
        if let Some(document) = self.document {
            before.document = document.into();
        }
        if let Some(run) = self.run {
            before.run = Some(RunId::from_bytes(run.array()?));
        }
        if let Some(account) = self.account {
            before.account = read_json(account)?;
        }
        let shared = before.uri.as_ref().map_or("", ResourceUri::as_str).get(..self.shared as usize);
        let shared = shared.ok_or("its URI shares more than the one before has")?;
        let uri = ResourceUri::try_from([shared, self.uri].concat()).map_err(|error| error.to_string())?;
        let at = before.at.as_nanosecond().checked_add(self.later).ok_or("its time is none")?;
        before.at = Timestamp::from_nanosecond(at).map_err(|error| error.to_string())?;
        before.uri = Some(uri.clone());
        let Rare { freed_versions } = self.rare.map_or(Ok(Rare::default()), read_json)?;
        Ok(ChangeLogEntry {
            uri,
            event: self.event.read()?,
            at: before.at,
            run: before.run.ok_or("it names no run")?,
            document: Arc::clone(&before.document),
            freed: self.freed.map(|freed| freed.read(None)).transpose()?,
            freed_versions: freed_versions.into_owned(),
            account: before.account.clone(),
        })
    }
}

impl EventForm<'_> {
    fn read(self) -> Result<ChangeEvent, String> {
        Ok(match self {
            Self::Other(json) => read_json(json)?,
            Self::Created(sha256) => ChangeEvent::Created { sha256: sha256.sha256()? },
            Self::Updated(sha256, before) => {
                ChangeEvent::Updated { sha256: sha256.sha256()?, before: before.sha256()? }
            }
            Self::Deleted(absent) => ChangeEvent::Deleted { absent },
            Self::Restored(sha256) => ChangeEvent::Restored { sha256: sha256.sha256()? },
            Self::Healed(sha256, before) => {
                ChangeEvent::Healed { sha256: sha256.sha256()?, before: before.sha256()? }
            }
            Self::Confirmed(sha256) => ChangeEvent::Confirmed { sha256: sha256.sha256()? },
        })
    }
}

/// How many bytes at the beginning of two texts are equal: whole characters only.
fn shared_bytes(one: &str, other: &str) -> usize {
    let equal = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    one.floor_char_boundary(equal).min(other.floor_char_boundary(equal))
}

fn is_empty(locations: &[Location]) -> bool {
    locations.is_empty()
}
