//! Matching entries and members by path.

use fixity::Computed;
use model::{Assurance, Disposition, Location, MemberResult, Method, ProblemReason};

use crate::case::{Case, dump, entry, holding};
use crate::zips::Zip;

const A: &[u8] = b"the content of a";
const B: &[u8] = b"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

#[tokio::test]
async fn members_are_adopted_where_they_lie_stored_and_deflated() {
    let case = Case::new().await;
    let manifest = dump(&[holding("a", "/a.txt", A), holding("b", "/b.txt", B), entry("c", r#"path="/c""#)]);
    let zip = Zip::new()
        .deflated("manifest.xml", &manifest)
        .stored("a.txt", A)
        .deflated("b.txt", B)
        .stored("c", b"");
    let unpacked = case.unpack(zip.build()).await;
    assert_eq!((unpacked.contents.entries, unpacked.contents.slices, unpacked.contents.unlisted), (3, 1, 0));
    assert!(unpacked.contents.manifest.quirks.is_empty(), "{:?}", unpacked.contents.manifest.quirks);
    for (loc, content, expected) in
        [("a", A, Method::Stored), ("b", B, Method::Deflated), ("c", &b""[..], Method::Stored)]
    {
        let stored = unpacked.taken(loc);
        assert_eq!(stored.computed, Computed::of(content), "{loc}");
        let Location::Package { source, method, .. } = &stored.location else { panic!("{stored:?}") };
        assert_eq!((source, method), (&case.source, &expected));
        assert_eq!(case.bytes(stored).await, content);
    }
}

#[tokio::test]
async fn what_was_proved_is_told_of_each() {
    let case = Case::new().await;
    let manifest = dump(&[
        entry("digest", r#"path="/a" hash="md5:ca4f9dcf204e2037bfe5884867bead98""#),
        entry("length", r#"path="/b" length="40" type="text/x-b""#),
        entry("nothing", r#"path="/c""#),
    ]);
    let zip =
        Zip::new().stored("manifest.xml", &manifest).stored("a", b"payload-x").stored("b", B).stored("c", A);
    let unpacked = case.unpack(zip.build()).await;
    let assurance = |loc| match unpacked.of(loc) {
        MemberResult::Verified { assurance, .. } => Some(*assurance),
        _ => None,
    };
    assert_eq!(assurance("length"), Some(Assurance::Length));
    assert_eq!(assurance("nothing"), Some(Assurance::None));
    assert_eq!(unpacked.taken("length").media_type.as_deref(), Some("text/x-b"));
    let md5 = unpacked.failure("digest").evidence.computed.clone();
    assert!(md5.is_some_and(|md5| md5.starts_with("md5:")), "declared algorithms are computed");
}

#[tokio::test]
async fn a_path_finds_the_member_of_its_name_and_no_other() {
    let case = Case::new().await;
    let manifest = dump(&[
        holding("slash", "/a/1", A),
        holding("no-slash", "a/2", A),
        holding("both-odd", "../x/3", A),
        holding("dot", "./a/4", A),
        holding("case", "/A/5", A),
        holding("backslash", r"/a\6", A),
        holding("gone", "/a/none", A),
    ]);
    let mut zip = Zip::new().stored("manifest.xml", &manifest).stored("../x/3", A);
    for name in ["a/1", "a/2", "a/4", "a/5", "a/6"] {
        zip = zip.stored(name, A);
    }
    let unpacked = case.unpack(zip.build()).await;
    for loc in ["slash", "no-slash", "both-odd"] {
        unpacked.taken(loc);
    }
    for loc in ["dot", "case", "backslash", "gone"] {
        let failure = unpacked.failure(loc);
        assert_eq!(failure.reason, ProblemReason::Malformed, "{loc}");
        assert_eq!(failure.disposition, Disposition::Retry { after: None });
        assert!(failure.message.contains("asked for by itself"), "{}", failure.message);
    }
    assert!(unpacked.failure("gone").message.contains("“/a/none”"), "{}", unpacked.failure("gone").message);
    assert_eq!(unpacked.contents.unlisted, 3);
    assert_eq!(unpacked.contents.unlisted_names, ["a/4", "a/5", "a/6"]);
}

#[tokio::test]
async fn members_that_no_entry_names_are_counted_without_manifest_and_folders() {
    let case = Case::new().await;
    let manifest = dump(&[holding("a", "/d/a", A)]);
    let zip =
        Zip::new().stored("manifest.xml", &manifest).stored("d/", b"").stored("d/a", A).stored("d/left", B);
    let unpacked = case.unpack(zip.build()).await;
    assert_eq!(
        (unpacked.contents.unlisted, &unpacked.contents.unlisted_names[..]),
        (1, &["d/left".to_owned()][..])
    );
}

#[tokio::test]
async fn wrong_bytes_are_told_with_member_package_and_both_values() {
    let case = Case::new().await;
    let manifest = dump(&[
        holding("digest", "/a", b"another content!"),
        holding("length", "/b", b"shorter"),
        holding("good", "/c", A),
    ]);
    let zip = Zip::new().stored("manifest.xml", &manifest).stored("a", A).deflated("b", B).stored("c", A);
    let unpacked = case.unpack(zip.build()).await;
    let failure = unpacked.failure("digest");
    assert_eq!(failure.reason, ProblemReason::DigestMismatch);
    let computed = format!("sha-256:{}", fixity::Sha256::of(A));
    assert_eq!(failure.evidence.computed, Some(computed));
    for part in ["http://e.org/digest", "“/a”", crate::case::PACKAGE, "asked for by itself"] {
        assert!(failure.message.contains(part), "{part}: {}", failure.message);
    }
    let failure = unpacked.failure("length");
    assert_eq!(failure.reason, ProblemReason::LengthMismatch);
    assert_eq!(failure.evidence.expected.as_deref(), Some("7 bytes"));
    assert_eq!(failure.evidence.computed.as_deref(), Some("40 bytes"));
    unpacked.taken("good");
}

#[tokio::test]
async fn zip64_and_sizes_behind_the_data_are_read() {
    let case = Case::new().await;
    let manifest = dump(&[holding("a", "/a", A), holding("b", "/b", B)]);
    let zip = Zip::new()
        .stored("manifest.xml", &manifest)
        .deflated("a", A)
        .both(|fields| fields.flags |= 8)
        .but(|part| {
            let local = &mut part.local;
            let numbers = (local.crc32, local.compressed, local.size);
            local.crc32 = 0;
            local.compressed = 0;
            local.size = 0;
            part.data.extend(0x0807_4b50_u32.to_le_bytes());
            for number in [numbers.0, numbers.1, numbers.2] {
                part.data.extend(number.to_le_bytes());
            }
        })
        .stored("b", B)
        .with(|zip| zip.zip64 = true);
    let unpacked = case.unpack(zip.build()).await;
    assert_eq!(case.bytes(unpacked.taken("a")).await, A);
    assert_eq!(case.bytes(unpacked.taken("b")).await, B);
}

#[tokio::test]
async fn a_manifest_elsewhere_is_read_and_counted() {
    let case = Case::new().await;
    let manifest = dump(&[holding("a", "/dump/a", A)]);
    let zip = Zip::new().stored("dump/manifest.xml", &manifest).stored("dump/a", A);
    let unpacked = case.unpack(zip.build()).await;
    unpacked.taken("a");
    assert_eq!(unpacked.contents.manifest.quirks["manifest-elsewhere"], 1);
    assert_eq!(unpacked.contents.unlisted, 0);
}
