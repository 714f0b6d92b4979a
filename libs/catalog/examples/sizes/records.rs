//! Records as a first harvest of a plain Resource List leaves them: an entry has a digest, a length, a media type and a
//! last modification; the server repeats them and adds an ETag.

use std::collections::BTreeMap;

use fixity::{Computed, Digest};
use jiff::{SignedDuration, Timestamp};
use model::{
    Action, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, Listing, Location, Method,
    PackId, PendingRecord, Provenance, ResourceRecord, ResourceUri, RunId, Seq, SetId, Validators, Why,
};
use serde_json::{Value, json};

/// Resources of which the fields are counted.
const SAMPLE: u64 = 1000;
/// The length of each resource, in bytes.
const LENGTH: u64 = 2048;

/// URIs of a site whose list is not sorted by URI.
pub(crate) fn uri(n: u64) -> ResourceUri {
    let scattered = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let text = format!("https://repository.example.org/bitstream/handle/{scattered:016x}/article-{n}.pdf");
    text.parse().expect("the URI of an example is one")
}

pub(crate) fn computed(n: u64) -> Computed {
    let digest = Digest::from(fixity::Sha256::of(&n.to_be_bytes()));
    Computed::new(LENGTH, [digest]).expect("sha-256 is there")
}

/// Some time in the last years, to the second.
pub(crate) fn lastmod(n: u64) -> Timestamp {
    let seconds = n.wrapping_mul(7_919) % 200_000_000;
    Timestamp::from_second(1_560_000_000 + seconds as i64).expect("a time in these years")
}

/// When it was settled: to the nanosecond, some microseconds behind the one before.
fn settled_at(n: u64) -> Timestamp {
    let begin = Timestamp::from_second(1_780_000_000).expect("a time in these years");
    begin + SignedDuration::from_nanos((n * 181_000 + n.wrapping_mul(0x9E37_79B9) % 90_000) as i64)
}

fn listing() -> Listing {
    let at = Timestamp::from_second(1_779_999_000).ok();
    Listing {
        document: "https://repository.example.org/resync/resourcelist-0042.xml".into(),
        set: SetId::new("https://repository.example.org/resync/capabilitylist.xml"),
        change: None,
        change_time: None,
        as_of: at,
        latest: at,
        links: None,
        linked: None,
    }
}

fn declaration(n: u64) -> Declaration {
    Declaration {
        digests: computed(n).digests().to_vec(),
        length: Some(LENGTH),
        media_type: Some("application/pdf".to_owned()),
        lastmod: Some(lastmod(n)),
        ..Declaration::default()
    }
}

pub(crate) fn resource(n: u64, pack: PackId) -> ResourceRecord {
    let modified = lastmod(n);
    let last_modified = modified.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    ResourceRecord {
        bitstream: Some(Bitstream {
            location: Location::Pack {
                source: "repository-example-org-0123456789ab".parse().expect("a source id"),
                pack,
                offset: n % 1000 * (LENGTH + 60) + 50,
                stored_length: LENGTH,
                method: Method::Stored,
            },
            computed: computed(n),
            assurance: Assurance::Digest,
            media_type: Some("application/pdf".to_owned()),
            encoding: None,
            validators: Validators {
                etag: Some(format!("\"{:x}-{LENGTH:x}\"", modified.as_second())),
                last_modified: Some(last_modified),
            },
            final_url: None,
            stored_at: settled_at(n),
        }),
        declaration: declaration(n),
        listing: listing(),
        sets: vec![listing().set],
        deleted: None,
        collected: None,
        absent: None,
        settled_at: settled_at(n),
    }
}

pub(crate) fn change(n: u64, run: RunId) -> ChangeLogEntry {
    let event = ChangeEvent::Created { sha256: computed(n).sha256() };
    let at = settled_at(n) + SignedDuration::from_nanos(2_000);
    let account = Provenance { as_of: listing().as_of, ..Provenance::of(Why::New) };
    ChangeLogEntry { account, ..ChangeLogEntry::new(uri(n), event, at, run, listing().document) }
}

pub(crate) fn pending(n: u64) -> PendingRecord {
    let action = Action::Fetch { origin: "https://repository.example.org".parse().expect("an origin") };
    PendingRecord::new(Seq::new(n), action, declaration(n), listing(), Provenance::of(Why::New))
}

/// Prints what the fields of a record and of a change take as JSON, and of which.
pub(crate) fn print_fields() {
    let pack = PackId::fresh();
    let run = RunId::fresh();
    let mut fields = BTreeMap::new();
    for n in 0..SAMPLE {
        let record = serde_json::to_value(resource(n, pack)).expect("records serialise to JSON");
        count("resource", &record, &mut fields);
        let change = serde_json::to_value(change(n, run)).expect("changes serialise to JSON");
        count("change", &change, &mut fields);
    }
    for (field, bytes) in fields {
        println!("{}", json!({"figure": "as JSON", "field": field, "bytes": bytes as f64 / SAMPLE as f64}));
    }
}

/// Adds the bytes of a value to its field and to those around it.
fn count(name: &str, value: &Value, fields: &mut BTreeMap<String, usize>) {
    *fields.entry(name.to_owned()).or_default() += value.to_string().len();
    for (key, inner) in value.as_object().into_iter().flatten() {
        count(&format!("{name}.{key}"), inner, fields);
    }
}
