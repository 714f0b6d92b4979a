//! Each record comes back as it was, from either form, and no bytes do harm.

use std::sync::Arc;

use fixity::{Algorithm, Computed, Hasher, Sha256};
use jiff::Timestamp;
use model::{
    Absence, Action, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, Linked, Links, Listing,
    Location, Method, MirrorPlan, PackId, PackageId, PatchPlan, PendingRecord, Provenance, ResourceRecord,
    ResourceUri, RunId, Seq, SetId, StoredBitstream, Validators, Version, Versions, Why,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use resourcesync::{Change, Link};

use super::{
    PageWriter, compact, read_holding, read_page, read_pending, read_resource, read_versions, write_resource,
};
use crate::change_page::Changes;
use crate::keyspace::KeySpace;
use crate::pending::Pending;
use crate::resources::Resources;
use crate::versions::History;

/// The larger strategies are boxed: in a debug build their values would not fit on the stack of a test.
fn text() -> impl Strategy<Value = String> {
    let nasty = vec(prop_oneof![Just('\u{1}'), Just('"'), Just('\\'), Just('ä'), Just('\n')], 0..9);
    prop_oneof![".{0,20}", nasty.prop_map(String::from_iter), Just("a/b".to_owned())]
}

fn moment() -> impl Strategy<Value = Timestamp> {
    let seconds = Timestamp::MIN.as_second() + 1..Timestamp::MAX.as_second();
    let any = (seconds, 0..1_000_000_000i32).prop_map(|(s, n)| Timestamp::new(s, n).unwrap());
    let usual = (0..3_000_000_000i64).prop_map(|second| Timestamp::from_second(second).unwrap());
    prop_oneof![any, usual, Just(Timestamp::MIN), Just(Timestamp::MAX)]
}

fn uri() -> impl Strategy<Value = ResourceUri> {
    text().prop_map(|path| ResourceUri::try_from(format!("https://example.org/{path}")).unwrap())
}

fn computed() -> impl Strategy<Value = Computed> {
    let algorithms = proptest::sample::subsequence(Algorithm::ALL.to_vec(), 0..=Algorithm::ALL.len());
    (algorithms, vec(any::<u8>(), 0..4)).prop_map(|(algorithms, bytes)| {
        let mut hasher = Hasher::new(algorithms);
        hasher.update(&bytes);
        hasher.finish()
    })
}

fn location() -> BoxedStrategy<Location> {
    let method = prop_oneof![Just(Method::Stored), Just(Method::Deflated)];
    let numbers = prop_oneof![any::<(u64, u64)>(), Just((7, 3))];
    (0..3, "[a-z0-9-]{1,80}", numbers, method, any::<[u8; 16]>())
        .prop_map(|(kind, source, (offset, stored_length), method, archive)| {
            let source = source.parse().unwrap();
            match kind {
                0 => Location::Object { sha256: Sha256::of(&archive) },
                1 => {
                    let pack = PackId::from_bytes(archive);
                    Location::Pack { source, pack, offset, stored_length, method }
                }
                _ => {
                    let package = PackageId::from_bytes(archive);
                    Location::Package { source, package, offset, stored_length, method }
                }
            }
        })
        .boxed()
}

fn last_modified() -> impl Strategy<Value = Option<String>> {
    let usual = |time: Timestamp| time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    option::of(prop_oneof![text(), moment().prop_map(usual)])
}

fn bitstream() -> BoxedStrategy<Bitstream> {
    let assurance = prop_oneof![Just(Assurance::Digest), Just(Assurance::Length), Just(Assurance::None)];
    let texts = (option::of(text()), option::of(text()), option::of(text()), option::of(text()));
    (option::of(location()), computed(), assurance, texts, last_modified(), moment())
        .prop_map(
            |(
                location,
                computed,
                assurance,
                (media_type, encoding, etag, final_url),
                last_modified,
                stored_at,
            )| {
                Bitstream {
                    location: location.unwrap_or(Location::Object { sha256: computed.sha256() }),
                    computed,
                    assurance,
                    media_type,
                    encoding,
                    validators: Validators { etag, last_modified },
                    final_url,
                    stored_at,
                }
            },
        )
        .boxed()
}

fn declaration() -> BoxedStrategy<Declaration> {
    let texts = (vec(text(), 0..3), option::of(text()), option::of(text()));
    (computed(), any::<bool>(), texts, option::of(any::<u64>()), option::of(moment()))
        .prop_map(|(computed, any_digest, (unjudged, media_type, encoding), length, lastmod)| {
            let mut digests = if any_digest { computed.digests().to_vec() } else { Vec::new() };
            digests.reverse();
            Declaration { digests, unjudged, length, media_type, encoding, lastmod }
        })
        .boxed()
}

fn listing() -> BoxedStrategy<Listing> {
    let change = prop_oneof![Just(Change::Created), Just(Change::Updated), Just(Change::Deleted)];
    let times = (option::of(moment()), option::of(moment()), option::of(moment()));
    let links = vec((text(), text()).prop_map(|(rel, href)| Link::new(&rel, &href)), 0..3);
    let linked = (uri(), text(), any::<bool>()).prop_map(|(from, rel, shared)| {
        let version = shared.then(|| model::LinkVersion::of(&rel));
        Box::new(Linked { from, rel, shared, version })
    });
    (text(), text(), option::of(change), times, links, option::of(linked))
        .prop_map(|(document, set, change, (change_time, as_of, latest), links, linked)| Listing {
            document: document.into(),
            set: SetId::new(set),
            change,
            change_time,
            as_of,
            latest,
            links: Links::of(&links),
            linked,
        })
        .boxed()
}

/// Any record. In most, what is declared is what was received, and the only set is that of the listing.
fn resource() -> BoxedStrategy<ResourceRecord> {
    let absent = (text(), option::of(moment()), moment()).prop_map(|(document, at, seen_at)| Absence {
        document,
        at,
        seen_at,
    });
    let bitstreams = (option::of(bitstream()), option::of(bitstream()));
    let rest = (option::of(moment()), option::of(absent), moment());
    let sets = option::of(vec(text().prop_map(SetId::new), 0..3));
    (bitstreams, declaration(), listing(), sets, rest, any::<[bool; 4]>())
        .prop_map(
            |((bitstream, deleted), declaration, listing, sets, (collected, absent, settled_at), same)| {
                let mut record = ResourceRecord {
                    sets: sets.unwrap_or_else(|| vec![listing.set.clone()]),
                    bitstream,
                    declaration,
                    listing,
                    deleted,
                    collected,
                    absent,
                    settled_at,
                };
                if let Some(bitstream) = &mut record.bitstream {
                    let declaration = &mut record.declaration;
                    if same[0] {
                        declaration.length = Some(bitstream.computed.length());
                        declaration.media_type.clone_from(&bitstream.media_type);
                        declaration.encoding.clone_from(&bitstream.encoding);
                    }
                    if same[1] {
                        declaration.digests = bitstream.computed.digests().to_vec();
                    }
                    if same[2] {
                        bitstream.stored_at = record.settled_at;
                    }
                    if same[3] {
                        let text = bitstream.validators.last_modified.as_deref().unwrap_or_default();
                        let parser = jiff::fmt::rfc2822::DateTimeParser::new();
                        declaration.lastmod = parser.parse_timestamp(text).ok();
                    }
                }
                record
            },
        )
        .boxed()
}

fn event() -> impl Strategy<Value = ChangeEvent> {
    let digest = any::<[u8; 32]>().prop_map(Sha256::from_bytes);
    (0..10, digest.clone(), digest, any::<bool>(), text(), moment()).prop_map(
        |(kind, sha256, before, absent, message, time)| match kind {
            0 => ChangeEvent::Updated { sha256, before },
            1 => ChangeEvent::Deleted { absent },
            2 => ChangeEvent::Restored { sha256 },
            3 => ChangeEvent::Healed { sha256, before },
            4 => ChangeEvent::Confirmed { sha256 },
            5 => ChangeEvent::Ignored { note: message },
            6 => ChangeEvent::Retried,
            7 => ChangeEvent::VersionLost { sha256, from: time, until: time, message },
            8 => ChangeEvent::Problem { reason: model::ProblemReason::Gap, message },
            _ => ChangeEvent::Created { sha256 },
        },
    )
}

fn change() -> BoxedStrategy<ChangeLogEntry> {
    let freed = (option::of(location()), vec(location(), 0..2));
    let account = (any::<bool>(), option::of(moment())).prop_map(|(new, as_of)| Provenance {
        why: new.then_some(Why::New),
        as_of,
        ..Provenance::default()
    });
    let names = (uri(), 0..3u8, prop_oneof![Just("http://h/list"), Just(""), Just("http://h/ä")]);
    (names, event(), moment(), freed, account)
        .prop_map(|((uri, run, document), event, at, (freed, freed_versions), account)| {
            let run = RunId::from_bytes([run; 16]);
            let document = Arc::from(document);
            ChangeLogEntry {
                freed,
                freed_versions,
                account,
                ..ChangeLogEntry::new(uri, event, at, run, document)
            }
        })
        .boxed()
}

fn pending() -> BoxedStrategy<PendingRecord> {
    let account = option::of(moment()).prop_map(|as_of| Provenance { as_of, ..Provenance::default() });
    let numbers = (any::<u64>(), any::<u32>(), option::of(moment()), any::<[bool; 4]>());
    (numbers, declaration(), listing(), option::of(bitstream()), account)
        .prop_map(|((seq, attempts, next_attempt_at, given), declaration, listing, candidate, account)| {
            let origin = "https://example.org".parse().unwrap();
            let action = if given[0] { Action::Fetch { origin } } else { Action::Delete };
            let candidate = candidate.map(|of| {
                let Bitstream { location, computed, media_type, encoding, validators, final_url, .. } = of;
                let modified = next_attempt_at;
                let stored = StoredBitstream {
                    location,
                    computed,
                    media_type,
                    encoding,
                    validators,
                    modified,
                    final_url,
                };
                Box::new(stored)
            });
            PendingRecord {
                attempts,
                next_attempt_at,
                candidate,
                repair: given[1],
                mirror: given[2].then(|| Box::new(MirrorPlan { begun: 2, ..MirrorPlan::default() })),
                patch: given[3].then(|| Box::new(PatchPlan { steps: Vec::new(), unused: None })),
                ..PendingRecord::new(Seq::new(seq), action, declaration, listing, account)
            }
        })
        .boxed()
}

fn versions() -> BoxedStrategy<Versions> {
    let times = (moment(), moment(), option::of(moment()), option::of(moment()));
    let version = (bitstream(), declaration(), listing(), times).prop_map(
        |(bitstream, declaration, listing, (from, until, source_from, lost))| Version {
            bitstream,
            declaration,
            listing,
            from,
            until,
            source_from,
            lost,
        },
    );
    (vec(version, 0..3), option::of(moment())).prop_map(|(kept, since)| Versions { kept, since }).boxed()
}

/// The record as its space reads it from either form.
fn from_both<S: KeySpace>(record: &S::Record) -> [Result<S::Record, String>; 2] {
    let mut bytes = Vec::new();
    S::write(&mut bytes, record);
    assert!(compact(&bytes).is_some());
    [S::read(&bytes), S::read(&serde_json::to_vec(record).unwrap())]
}

fn written(record: &ResourceRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_resource(&mut bytes, record);
    bytes
}

fn page(entries: &[ChangeLogEntry]) -> Vec<u8> {
    let mut page = PageWriter::new();
    entries.iter().for_each(|entry| page.append(entry));
    page.into_bytes()
}

proptest! {
    #[test]
    fn a_resource_comes_back_as_it_was_from_either_form(record in resource()) {
        let bytes = written(&record);
        prop_assert!(compact(&bytes).is_some());
        let json = serde_json::to_vec(&record).unwrap();
        prop_assert_eq!(Resources::read(&json), Ok(record.clone()));
        prop_assert_eq!(Resources::read_holding(&bytes), Resources::read_holding(&json));
        prop_assert_eq!(Resources::read(&bytes), Ok(record));
    }

    #[test]
    fn a_plan_comes_back_as_it_was_from_either_form(record in pending()) {
        prop_assert_eq!(from_both::<Pending>(&record), [Ok(record.clone()), Ok(record)]);
    }

    #[test]
    fn versions_come_back_as_they_were_from_either_form(versions in versions()) {
        prop_assert_eq!(from_both::<History>(&versions), [Ok(versions.clone()), Ok(versions)]);
    }

    #[test]
    fn a_page_comes_back_as_it_was(entries in vec(change(), 0..8)) {
        let bytes = page(&entries);
        let read = Changes::read(&bytes).unwrap().numbered(99).unwrap();
        prop_assert!(read.map(|(_, entry)| entry).eq(entries));
    }

    #[test]
    fn damaged_records_are_errors_or_other_records(
        record in resource(), at in any::<proptest::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()
    ) {
        let mut bytes = written(&record);
        let at = 1 + at.index(bytes.len() - 1);
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let whole = Resources::read(&bytes);
        prop_assert!(!cut || whole.is_err());
        // What can be read can be written again.
        if let Ok(read) = whole {
            prop_assert_eq!(Resources::read(&written(&read)), Ok(read));
        }
        Resources::read_holding(&bytes).ok();
    }

    #[test]
    fn damaged_pages_are_errors_or_other_pages(
        entries in vec(change(), 1..5), at in any::<proptest::sample::Index>(), byte in any::<u8>()
    ) {
        let mut bytes = page(&entries);
        let at = 1 + at.index(bytes.len() - 1);
        bytes[at] = byte;
        Changes::read(&bytes).ok();
    }

    #[test]
    fn any_bytes_are_errors_or_records(bytes in vec(any::<u8>(), 0..300)) {
        read_resource(&bytes).ok();
        read_holding(&bytes).ok();
        read_page(&bytes).ok();
        read_pending(&bytes).ok();
        read_versions(&bytes).ok();
        Resources::read(&bytes).ok();
        Changes::read(&bytes).ok();
    }
}

/// As a catalog of schema 2 has it. It must be read for ever.
const JSON: &str = r#"{"bitstream":{"location":{"kind":"pack","source":"example-org-0","pack":"01ARZ3NDEKTSV4RRFFQ69G5FAV","offset":110,"stored_length":3,"method":"stored"},"computed":{"length":3,"digests":["md5:900150983cd24fb0d6963f7d28e17f72","sha-256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"]},"assurance":"digest","media_type":"text/plain","validators":{"etag":"\"x\"","last_modified":"Sun, 06 Nov 1994 08:49:37 GMT"},"stored_at":"2026-01-02T03:04:05.678901234Z"},"declaration":{"digests":["sha-256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],"length":3,"lastmod":"1994-11-06T08:49:37Z"},"listing":{"document":"https://example.org/list.xml","set":"https://example.org/capabilitylist.xml","as_of":"2026-01-01T00:00:00Z","latest":"2026-01-01T00:00:00Z","links":[{"rel":"describedby","href":"https://example.org/x"}]},"sets":["https://example.org/capabilitylist.xml"],"settled_at":"2026-01-02T03:04:05.678901234Z"}"#;

/// The same record in the compact form.
const COMPACT_HEX: &str = include_str!("golden/resource.hex");

/// A page of schema 2.
const PAGE_JSON: &str = r#"[{"uri":"https://example.org/a","event":"created","sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","at":"2026-01-02T03:04:05.6789Z","run":"01ARZ3NDEKTSV4RRFFQ69G5FAV","document":"https://example.org/list.xml","account":{"why":"new"}},{"uri":"https://example.org/b","event":"problem","reason":"timeout","message":"no answer","at":"2026-01-02T03:04:05.7Z","run":"01ARZ3NDEKTSV4RRFFQ69G5FAV","document":"https://example.org/list.xml"}]"#;

/// The same page in the compact form.
const PAGE_HEX: &str = include_str!("golden/page.hex");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.trim().as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Compares with a golden file, or writes it with `WRITE_GOLDEN=1`.
fn golden(name: &str, kept: &str, bytes: &[u8]) {
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        let path = format!("{}/src/stored/golden/{name}.hex", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, hex(bytes) + "\n").unwrap();
    } else {
        assert_eq!(hex(bytes), kept.trim(), "{name}");
    }
}

#[test]
fn records_of_json_are_read_and_the_compact_form_never_changes() {
    let record = Resources::read(JSON.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&record).unwrap(), JSON);
    golden("resource", COMPACT_HEX, &written(&record));
    assert_eq!(Resources::read(&bytes_of(&hex(&written(&record)))), Ok(record));
    let entries: Vec<ChangeLogEntry> = serde_json::from_str(PAGE_JSON).unwrap();
    golden("page", PAGE_HEX, &page(&entries));
    let from_json: Vec<_> = Changes::read(PAGE_JSON.as_bytes()).unwrap().numbered(9).unwrap().collect();
    let compact: Vec<_> = Changes::read(&page(&entries)).unwrap().numbered(9).unwrap().collect();
    assert_eq!(from_json, compact);
}

#[test]
fn what_is_declared_and_received_is_stored_once() {
    let record = Resources::read(JSON.as_bytes()).unwrap();
    let bytes = written(&record);
    let sha256 = record.bitstream.unwrap().computed.sha256();
    assert_eq!(memchr::memmem::find_iter(&bytes, sha256.as_bytes()).count(), 1);
    let set = record.listing.set.as_str();
    assert_eq!(memchr::memmem::find_iter(&bytes, set).count(), 1);
    assert!(bytes.len() * 3 < JSON.len(), "{} bytes", bytes.len());
}

#[test]
fn a_form_of_a_later_version_is_an_error() {
    let mut bytes = written(&Resources::read(JSON.as_bytes()).unwrap());
    bytes.push(0);
    assert!(Resources::read(&bytes).unwrap_err().contains("1 bytes follow its end"));
    bytes[0] = super::COMPACT + 1;
    assert!(Resources::read(&bytes).is_err());
    assert!(Resources::read_holding(&bytes).is_err());
}

/// A later version adds optional fields to the JSON within the form.
#[test]
fn an_unknown_rare_field_is_skipped() {
    let mut record = Resources::read(JSON.as_bytes()).unwrap();
    record.collected = Some(Timestamp::UNIX_EPOCH);
    let bytes = written(&record);
    let known = br#"{"collected":"1970-01-01T00:00:00Z"}"#;
    let later = br#"{"collectee":"1970-01-01T00:00:00Z"}"#;
    let at = memchr::memmem::find(&bytes, known).unwrap();
    let bytes = [&bytes[..at], later, &bytes[at + known.len()..]].concat();
    record.collected = None;
    assert_eq!(Resources::read(&bytes), Ok(record));
}
