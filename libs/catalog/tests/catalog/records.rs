//! Records to put into a catalog.

use catalog::{Catalog, Lookups};
use fixity::{Computed, Sha256};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{
    Action, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, DocumentRecord, Listing,
    Location, Origin, PendingRecord, ProblemReason, ProblemRecord, ResourceRecord, ResourceUri, RunId,
    RunRecord, Seq, SetId, Validators,
};
use resourcesync::Capability;
use serde_json::json;

pub(crate) fn uri(path: &str) -> ResourceUri {
    format!("https://example.org/{path}").parse().unwrap()
}

pub(crate) fn listing() -> Listing {
    Listing {
        document: "https://example.org/resourcelist.xml".into(),
        set: SetId::new("https://example.org/capabilitylist.xml"),
        change: None,
        change_time: None,
        as_of: None,
        latest: None,
        links: None,
        linked: None,
    }
}

pub(crate) fn resource(content: &str) -> ResourceRecord {
    let computed = Computed::of(content.as_bytes());
    ResourceRecord {
        bitstream: Some(Bitstream {
            location: Location::Object { sha256: computed.sha256() },
            computed,
            assurance: Assurance::None,
            media_type: Some("text/plain".to_owned()),
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: Timestamp::UNIX_EPOCH,
        }),
        declaration: Declaration::default(),
        listing: listing(),
        sets: vec![listing().set],
        deleted: None,
        collected: None,
        absent: None,
        settled_at: Timestamp::UNIX_EPOCH,
    }
}

pub(crate) fn pending(seq: u64) -> PendingRecord {
    PendingRecord {
        seq: Seq::new(seq),
        action: Action::Fetch { origin: "https://example.org".parse::<Origin>().unwrap() },
        declaration: Declaration::default(),
        listing: listing(),
        attempts: 0,
        next_attempt_at: None,
        candidate: None,
        repair: false,
        mirror: None,
        patch: None,
        account: Default::default(),
    }
}

/// From JSON of an earlier version: later fields are missing.
pub(crate) fn document() -> DocumentRecord {
    serde_json::from_value(json!({
        "set": listing().set,
        "capability": Capability::ResourceList,
        "run": RunId::fresh(),
        "state": { "state": "queued" },
    }))
    .unwrap()
}

pub(crate) fn problem(message: &str) -> ProblemRecord {
    ProblemRecord {
        reason: ProblemReason::Gap,
        message: message.to_owned(),
        first_seen: Timestamp::UNIX_EPOCH,
        last_seen: Timestamp::UNIX_EPOCH,
        attempts: 1,
        retry: true,
        next_attempt_at: None,
        ignored: None,
        evidence: Default::default(),
        declaration: None,
        listing: None,
        repair: false,
    }
}

pub(crate) fn run() -> RunRecord {
    serde_json::from_value(json!({
        "id": RunId::fresh(),
        "mode": "baseline",
        "phase": "planning",
        "started_at": Timestamp::UNIX_EPOCH,
        "counters": {},
    }))
    .unwrap()
}

pub(crate) fn change(path: &str) -> ChangeLogEntry {
    let event = ChangeEvent::Created { sha256: Sha256::of(path.as_bytes()) };
    ChangeLogEntry::new(uri(path), event, Timestamp::UNIX_EPOCH, RunId::fresh(), listing().document)
}

/// The paths of all resources whose URI begins with `https://example.org/<prefix>`.
pub(crate) async fn paths(lookups: &Lookups, prefix: &str, after: Option<&str>) -> Vec<String> {
    let prefix = format!("https://example.org/{prefix}");
    let after = after.map(uri);
    let scan = lookups.scan_resources(Some(&prefix), after.as_ref()).await.unwrap();
    scan.map_ok(|(uri, _)| uri.as_str()["https://example.org/".len()..].to_owned())
        .try_collect()
        .await
        .unwrap()
}

/// Commits one resource.
pub(crate) async fn put(catalog: &Catalog, path: &str) -> Result<(), catalog::CatalogError> {
    let mut batch = catalog::Batch::new();
    batch.put_resource(&uri(path), &resource(path));
    catalog.commit(batch).await
}
