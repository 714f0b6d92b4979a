//! Complete cards of small Sources, as text and as JSON. This test writes the files:
//! `WRITE_CARDS=1 cargo test -p report --test cards`.
#![allow(missing_docs)]

use std::sync::Arc;

use catalog::{Batch, Catalog, CatalogConfig};
use fixity::Computed;
use jiff::Timestamp;
use model::{
    Absence, Assurance, Bitstream, CapabilityLink, Declaration, DiscoveryReport, DocumentRecord,
    DocumentState, Ignored, Listing, Location, Mode, Phase, ProblemReason, ProblemRecord, Remark,
    ResourceRecord, RunId, RunRecord, SetId, SetRecord, Subject, Validators, VisitedDocument,
};
use report::ReportCard;
use resourcesync::{Capability, Root};

const WAY_IN: &str = "https://me:word@example.org/";
const CAPS: &str = "https://example.org/caps.xml";
const LIST: &str = "https://example.org/list.xml";
const CHANGES: &str = "https://example.org/changes.xml";

/// A catalog under construction.
struct Known {
    batch: Batch,
    run: RunId,
}

fn time(text: &str) -> Timestamp {
    format!("2026-11-{text}Z").parse().unwrap()
}

impl Known {
    /// A set with its lists, and a run that has ended.
    fn new() -> Self {
        let mut batch = Batch::new();
        let run: RunId = "01KA9ZZZZZ0000000000000000".parse().unwrap();
        let link = |capability, uri: &str| CapabilityLink::new(capability, uri);
        let set = SetRecord {
            capabilities: vec![link(Capability::ResourceList, LIST), link(Capability::ChangeList, CHANGES)],
            baseline_at: Some(time("01T00:00:00")),
            has_baseline: true,
            synchronized_to: Some(time("03T00:00:00")),
            ..SetRecord::default()
        };
        batch.put_set(&SetId::new(CAPS), &set);
        batch.put_run(&RunRecord {
            id: run,
            mode: Mode::Incremental,
            phase: Phase::Finished,
            options: String::new(),
            view: false,
            started_at: time("04T10:00:00"),
            cancelled: false,
            finished_at: Some(time("04T10:05:00")),
            counters: Default::default(),
        });
        Self { batch, run }
    }

    fn look(&mut self, change: impl FnOnce(&mut DiscoveryReport)) {
        let document = |url: &str, capability, entries| VisitedDocument {
            url: url.to_owned(),
            capability: Some(capability),
            root: Root::UrlSet,
            entries: Some(entries),
            has_up: true,
            has_validators: true,
            quirks: Default::default(),
            links: None,
        };
        let mut look = DiscoveryReport {
            at: time("04T09:59:00"),
            documents: vec![
                document("https://example.org/.well-known/resourcesync", Capability::Description, 1),
                document(CAPS, Capability::CapabilityList, 2),
            ],
            remarks: Vec::new(),
            well_known_missing: None,
            title: None,
            oai: None,
        };
        look.documents[0].has_up = false;
        change(&mut look);
        self.batch.put_look(&look);
    }

    fn document(&mut self, uri: &str, capability: Capability, change: impl FnOnce(&mut DocumentRecord)) {
        let mut record = DocumentRecord {
            set: SetId::new(CAPS),
            capability,
            parent: None,
            run: self.run,
            selection: None,
            state: DocumentState::Done,
            root: Some(Root::UrlSet),
            validators: Validators { etag: Some("\"1\"".to_owned()), last_modified: None },
            digest: None,
            at: None,
            at_latest: None,
            from: None,
            until: None,
            until_latest: None,
            archived_until: None,
            oldest_change: None,
            latest_change: None,
            unseen_before: None,
            documents: 0,
            packages: 0,
            unpacked: None,
            entries: 2,
            bad: 0,
            doubtful: false,
            quirks: Default::default(),
        };
        change(&mut record);
        self.batch.put_document(uri, &record);
    }

    fn resource(&mut self, path: &str, change: impl FnOnce(&mut ResourceRecord)) {
        let computed = Computed::of(path.as_bytes());
        let mut record = ResourceRecord {
            bitstream: Some(Bitstream {
                location: Location::Object { sha256: computed.sha256() },
                assurance: Assurance::Digest,
                media_type: None,
                encoding: None,
                final_url: None,
                validators: Validators::default(),
                stored_at: time("04T10:01:00"),
                computed: computed.clone(),
            }),
            declaration: Declaration {
                digests: computed.digests().to_vec(),
                length: Some(computed.length()),
                lastmod: Some(time("01T00:00:00")),
                ..Declaration::default()
            },
            listing: Listing {
                latest: None,
                links: None,
                linked: None,
                document: LIST.into(),
                set: SetId::new(CAPS),
                change: None,
                change_time: None,
                as_of: None,
            },
            sets: vec![SetId::new(CAPS)],
            deleted: None,
            collected: None,
            absent: None,
            settled_at: time("04T10:01:00"),
        };
        change(&mut record);
        self.batch.put_resource(&format!("https://example.org/{path}").parse().unwrap(), &record);
    }

    fn problem(&mut self, subject: Subject, reason: ProblemReason, message: &str) {
        self.batch.put_problem(&subject, &problem(reason, message));
    }

    async fn card(self) -> ReportCard {
        let store = Arc::new(object_store::memory::InMemory::new());
        let catalog = Catalog::open(store, "catalogs/one", CatalogConfig::default()).await.unwrap();
        catalog.commit(self.batch).await.unwrap();
        let card = report::gather(&"example-org".parse().unwrap(), WAY_IN, &catalog).await.unwrap();
        catalog.close().await.unwrap();
        card
    }
}

fn problem(reason: ProblemReason, message: &str) -> ProblemRecord {
    ProblemRecord {
        reason,
        message: message.to_owned(),
        first_seen: time("02T10:00:00"),
        last_seen: time("04T10:02:00"),
        attempts: 3,
        retry: true,
        next_attempt_at: None,
        ignored: None,
        evidence: Default::default(),
        declaration: None,
        listing: None,
        repair: false,
    }
}

/// A Source without findings.
fn perfect() -> Known {
    let mut known = Known::new();
    known.look(|_| ());
    known.document(LIST, Capability::ResourceList, |list| list.at = Some(time("01T00:00:00")));
    known.document(CHANGES, Capability::ChangeList, |changes| {
        changes.from = Some(time("01T00:00:00"));
        changes.latest_change = Some(time("03T00:00:00"));
    });
    known.resource("a", |_| ());
    known.resource("b", |_| ());
    known
}

/// A Source with some of every finding.
fn odd() -> Known {
    let mut known = Known::new();
    known.look(|look| {
        look.well_known_missing = Some("https://example.org/.well-known/resourcesync".to_owned());
        look.documents.remove(0);
        look.documents[0].has_up = false;
        look.documents[0].quirks.insert("relation-case".to_owned(), 1);
        for hint in ["no-resource-list", "up", "entries-without-capability"] {
            let remark = Remark { url: CAPS.to_owned(), hint: hint.to_owned(), text: String::new() };
            look.remarks.push(remark);
        }
    });
    known.document(LIST, Capability::ResourceList, |list| {
        list.bad = 1;
        list.doubtful = true;
        list.validators = Validators::default();
        list.entries = 60_000;
        let quirks =
            [("too-many-entries", 1), ("zone-less-time", 59_999), ("gzip", 1), ("of-a-later-version", 4)];
        list.quirks.extend(quirks.map(|(name, n)| (name.to_owned(), n)));
    });
    // An index with a gap, a second document without validators, and one that the index does not name any more.
    known.document(CHANGES, Capability::ChangeList, |index| {
        index.root = Some(Root::SitemapIndex);
        index.entries = 3;
    });
    for (n, from, until) in
        [(1, "01T00:00:00", "02T00:00:00"), (2, "02T12:00:00", "03T00:00:00"), (3, "03T00:00:00", "")]
    {
        known.document(&format!("https://example.org/changes-{n}.xml"), Capability::ChangeList, |changes| {
            changes.parent = Some(CHANGES.to_owned());
            changes.from = Some(time(from));
            changes.until = (!until.is_empty()).then(|| time(until));
            changes.latest_change = Some(time("03T04:00:00"));
            changes.quirks.insert("zone-less-time".to_owned(), n);
            if n == 3 {
                changes.validators = Validators::default();
            }
        });
    }
    known.document("https://example.org/old-list.xml", Capability::ResourceList, |old| {
        old.run = "01KA000000000000000000000F".parse().unwrap();
        old.quirks.insert("newest-first".to_owned(), 1);
    });
    known.document("https://example.org/broken.xml?token=secret", Capability::ChangeList, |broken| {
        broken.state = DocumentState::Failed;
        broken.root = None;
    });
    known.resource("a", |_| ());
    known.resource("b", |b| b.declaration.digests.clear());
    known.resource("c", |c| {
        c.declaration = Declaration { unjudged: vec!["crc32:ab".to_owned()], ..Declaration::default() };
        c.absent = Some(Absence { document: LIST.to_owned(), at: None, seen_at: time("04T10:03:00") });
    });
    known.resource("gone", |gone| gone.bitstream = None);
    for n in 0..5 {
        let subject = Subject::Resource(format!("https://example.org/missing/{n}"));
        known.problem(
            subject,
            ProblemReason::HttpClientError,
            "the server answered 404 Not Found; is it still there?",
        );
    }
    let entry = Subject::Entry(format!("{LIST}#17:5"));
    known.problem(entry, ProblemReason::Malformed, "the entry was left out: it has no loc");
    let document = Subject::Document("https://example.org/broken.xml?token=secret".to_owned());
    known.problem(
        document,
        ProblemReason::Truncated,
        "the document was not read to its end: it ends within an element",
    );
    let own = Subject::Resource("https://example.org/a".to_owned());
    known.problem(own, ProblemReason::MissingBytes, "/home/me/copy is damaged");
    known
}

#[tokio::test]
async fn perfect_source_gives_a_card_without_findings() {
    let card = perfect().card().await;
    assert_eq!(card.findings, []);
    assert_eq!(card.problems, []);
    compare("perfect", &card);
}

#[tokio::test]
async fn odd_source_gives_its_findings_with_sections_and_counts() {
    let card = odd().card().await;
    let found: Vec<(&str, &str, u64)> = card
        .findings
        .iter()
        .map(|finding| (finding.finding.as_str(), finding.severity.as_str(), finding.count))
        .collect();
    let expected = [
        ("zone-less-time", "must", 60_005),
        ("bad-entry", "must", 1),
        ("no-up-link", "must", 1),
        ("no-well-known", "must", 1),
        ("too-many-entries", "must", 1),
        ("truncated", "must", 1),
        ("no-validators", "should", 1),
        ("relation-case", "should", 1),
        ("unjudged-digest", "should", 1),
        ("http-client-error", "hint", 5),
        ("no-digest", "hint", 2),
        ("gap-between-changes", "hint", 1),
        ("no-lastmod", "hint", 1),
        ("no-resource-list", "hint", 1),
    ];
    assert_eq!(found, expected);
    compare("odd", &card);
}

#[tokio::test]
async fn what_is_the_operators_own_is_not_told() {
    let card = odd().card().await;
    for text in [card.text(), serde_json::to_string(&card).unwrap()] {
        for own in ["me:word", "/home/me", "secret", "missing-bytes"] {
            assert!(!text.contains(own), "{own} in {text}");
        }
    }
    assert_eq!(card.coverage.own_problems, 1);
}

#[tokio::test]
async fn what_is_ignored_is_told_apart_and_is_no_finding() {
    let mut known = perfect();
    known.problem(
        Subject::Resource("https://example.org/known".to_owned()),
        ProblemReason::DigestMismatch,
        "the bytes have another digest than declared",
    );
    let mut ignored = problem(ProblemReason::HttpClientError, "the server answered 404 Not Found");
    ignored.ignored = Some(Ignored { note: "not for the owner".to_owned(), at: time("04T11:00:00") });
    known.batch.put_problem(&Subject::Resource("https://example.org/gone".to_owned()), &ignored);
    let card = known.card().await;
    let reasons =
        |groups: &[report::ProblemGroup]| groups.iter().map(|group| group.reason).collect::<Vec<_>>();
    assert_eq!(reasons(&card.problems), [ProblemReason::DigestMismatch]);
    assert_eq!(reasons(&card.ignored), [ProblemReason::HttpClientError]);
    assert_eq!((card.coverage.problems, card.coverage.ignored), (1, 1));
    let found: Vec<&str> = card.findings.iter().map(|finding| finding.finding.as_str()).collect();
    assert_eq!(found, ["digest-mismatch"]);
    let text = card.text();
    let (open, apart) = text.split_once("Known problems, about which nothing is to be done").unwrap();
    assert!(open.contains("example.org/known") && !open.contains("example.org/gone"), "{text}");
    assert!(apart.contains("https://example.org/gone") && !text.contains("not for the owner"), "{text}");
}

#[tokio::test]
async fn a_catalog_that_holds_nothing_yet_gives_an_empty_card() {
    let card = Known { batch: Batch::new(), run: RunId::fresh() }.card().await;
    assert_eq!(card.coverage.listed, None);
    assert!(card.text().contains("never"), "{}", card.text());
}

/// Compares a card with the files of its name.
#[track_caller]
fn compare(name: &str, card: &ReportCard) {
    let text = card.text();
    for line in text.lines() {
        assert!(line.chars().count() <= 100 && !line.ends_with(' '), "{line:?}");
    }
    let json = serde_json::to_string_pretty(card).unwrap() + "\n";
    for (kind, now) in [("txt", text), ("json", json)] {
        let path = format!("{}/tests/cards/{name}.{kind}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("WRITE_CARDS").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = now.lines().zip(before.lines()).find(|(now, before)| now != before);
        assert!(now == before, "{path} is not what the card says (first difference: {differs:?})");
    }
}

#[tokio::test]
async fn a_bot_defence_gets_a_letter_that_says_what_to_let_in() {
    let mut known = perfect();
    let mut challenged = problem(ProblemReason::Challenged, "a challenge came");
    challenged.evidence.user_agent = Some("thresher/1 (+mailto:a@example.org)".to_owned());
    for path in ["a", "b"] {
        let uri = format!("https://example.org/{path}");
        known.batch.put_problem(&Subject::Resource(uri), &challenged);
    }
    let card = known.card().await;
    let to_let_in = card.to_let_in.as_ref().unwrap();
    assert_eq!(to_let_in.origins, ["https://example.org"]);
    let text = card.text();
    for part in
        ["A letter", "thresher/1 (+mailto:a@example.org)", "https://example.org", "addresses", "/robots.txt"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert_eq!(perfect().card().await.to_let_in, None);
}
