//! Packages and members that are refused.

use model::{Disposition, MemberResult, PackageResult, ProblemReason, UnpackTask};

use crate::case::{Case, dump, entry, holding};
use crate::zips::Zip;

const A: &[u8] = b"the content of a";
const RETRY: Disposition = Disposition::Retry { after: None };

fn zip() -> Zip {
    let manifest = dump(&[holding("a", "/a", A), holding("b", "/b", A)]);
    Zip::new().stored("manifest.xml", &manifest).stored("a", A)
}

async fn refused(zip: &[u8], reason: ProblemReason, disposition: Disposition) -> String {
    let case = Case::new().await;
    let failure = case.refusal(zip.to_vec()).await;
    assert_eq!((failure.reason, failure.disposition), (reason, disposition), "{}", failure.message);
    assert!(failure.message.contains(crate::case::PACKAGE), "{}", failure.message);
    failure.message
}

#[tokio::test]
async fn without_a_manifest_or_with_two_nothing_is_taken() {
    let none = Zip::new().stored("a", A).build();
    refused(&none, ProblemReason::WrongKind, Disposition::Refuse).await;
    let two = Zip::new().stored("x/manifest.xml", &dump(&[])).stored("y/manifest.xml", &dump(&[])).build();
    refused(&two, ProblemReason::Malformed, Disposition::Refuse).await;
}

#[tokio::test]
async fn what_is_no_archive_is_told_as_what_it_looks_like() {
    let message =
        refused(b"<html><body>Log in</body></html>", ProblemReason::WrongKind, Disposition::Refuse).await;
    assert!(message.contains("an HTML page"), "{message}");
}

#[tokio::test]
async fn what_is_cut_off_is_fetched_again_unless_its_digest_was_right() {
    let whole = zip().stored("b", A).build();
    let cut = &whole[..whole.len() - 30];
    refused(cut, ProblemReason::Truncated, RETRY).await;

    let case = Case::new().await;
    let stored = case.put(cut.to_vec()).await;
    let mut job = case.job(&stored, UnpackTask::default());
    job.declaration.digests = vec![stored.computed.sha256().into()];
    let PackageResult::Failed(failure) = case.answer(&job).await else { panic!("it was opened") };
    assert_eq!((failure.reason, failure.disposition), (ProblemReason::Truncated, Disposition::Refuse));
}

#[tokio::test]
async fn a_header_that_contradicts_the_directory_refuses_the_package_from_there_on() {
    let case = Case::new().await;
    let zip = zip().stored("b", A).but(|part| part.local.name = b"c".to_vec()).build();
    let stored = case.put(zip).await;
    let opened = case.answer(&case.job(&stored, UnpackTask::default())).await;
    let PackageResult::Opened(contents) = opened else { panic!("{opened:?}") };
    let task = UnpackTask::Slice { index: contents.index.unwrap(), number: 0 };
    let answer = case.answer(&case.job(&stored, task)).await;
    let PackageResult::Failed(failure) = answer else { panic!("{answer:?}") };
    assert_eq!((failure.reason, failure.disposition), (ProblemReason::HostilePackage, Disposition::Refuse));
    assert!(failure.message.contains("“c”") && failure.message.contains("no more of it"), "{failure:?}");
}

#[tokio::test]
async fn a_member_of_a_name_that_is_no_text_is_read_by_it() {
    // By code page 437 its name is the one in the manifest.
    let manifest = dump(&[holding("a", "/caf\u{e9}", A)]);
    let zip = Zip::new().stored("manifest.xml", &manifest).stored("x", A);
    let zip = zip.but(|part| {
        part.local.name = b"caf\x82".to_vec();
        part.central.name = b"caf\x82".to_vec();
    });
    let case = Case::new().await;
    let unpacked = case.unpack(zip.build()).await;
    let [item] = unpacked.items.as_slice() else { panic!("{unpacked:?}") };
    let MemberResult::Verified { stored, .. } = &item.result else { panic!("{item:?}") };
    assert_eq!(case.bytes(stored).await, A);
}

#[tokio::test]
async fn members_that_share_bytes_refuse_the_package() {
    let first = Zip::new().stored("manifest.xml", &dump(&[])).build();
    let directory = first.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap() as u32;
    let zip = zip().stored("b", A).but(|part| part.offset = Some(directory));
    let zip = zip.stored("c", A).but(|part| part.offset = Some(directory));
    refused(&zip.build(), ProblemReason::HostilePackage, Disposition::Refuse).await;
}

#[tokio::test]
async fn more_than_the_limits_refuses_the_package() {
    let mut case = Case::new().await;
    case.config.max_members = 2;
    let failure = case.refusal(zip().stored("b", A).build()).await;
    assert_eq!(failure.reason, ProblemReason::HostilePackage);

    let mut case = Case::new().await;
    let entries: Vec<_> = (0..4).map(|n| holding(&n.to_string(), "/a", A)).collect();
    case.config.max_members = 3;
    let many_entries = Zip::new().stored("manifest.xml", &dump(&entries)).stored("a", A).build();
    let failure = case.refusal(many_entries.clone()).await;
    assert_eq!(failure.reason, ProblemReason::HostilePackage);

    let mut case = Case::new().await;
    let entries: Vec<_> = (0..20).map(|n| entry(&n.to_string(), r#"path="/zeros""#)).collect();
    let named_often =
        Zip::new().stored("manifest.xml", &dump(&entries)).deflated("zeros", &[0; 100_000]).build();
    case.config.max_inflated_bytes = 1_000_000;
    let failure = case.refusal(named_often.clone()).await;
    assert_eq!(failure.reason, ProblemReason::HostilePackage, "what all entries together inflate to counts");
    case.config.max_inflated_bytes = 2_000_000;
    assert!(matches!(case.open(named_often).await, PackageResult::Opened(_)));
}

#[tokio::test]
async fn a_member_that_is_refused_leaves_the_others() {
    let case = Case::new().await;
    let names = ["encrypted", "method", "twice", "link", "crc", "size", "deflate", "good"];
    let entries: Vec<_> = names.iter().map(|name| holding(name, &format!("/{name}"), A)).collect();
    let zip = Zip::new()
        .stored("manifest.xml", &dump(&entries))
        .stored("encrypted", A)
        .both(|fields| fields.flags |= 1)
        .stored("method", A)
        .both(|fields| fields.method = 12)
        .stored("twice", A)
        .stored("twice", A)
        .stored("link", A)
        .but(|part| (part.made_by, part.attributes) = (3 << 8 | 20, 0o120_777 << 16))
        .stored("crc", A)
        .both(|fields| fields.crc32 ^= 1)
        .deflated("size", A)
        .both(|fields| fields.size += 1)
        .deflated("deflate", A)
        .but(|part| part.data.fill(0xff))
        .stored("good", A);
    let unpacked = case.unpack(zip.build()).await;
    let reasons = [
        ("encrypted", ProblemReason::Malformed, "encrypted"),
        ("method", ProblemReason::Malformed, "method 12"),
        ("twice", ProblemReason::Malformed, "name of another member"),
        ("link", ProblemReason::Malformed, "a link"),
        ("crc", ProblemReason::DigestMismatch, "CRC-32"),
        ("size", ProblemReason::LengthMismatch, "17 bytes"),
        ("deflate", ProblemReason::Truncated, "inflated"),
    ];
    for (loc, reason, word) in reasons {
        let failure = unpacked.failure(loc);
        assert_eq!((failure.reason, failure.disposition), (reason, RETRY), "{}", failure.message);
        for part in [word, loc, "asked for by itself"] {
            assert!(failure.message.contains(part), "{part}: {}", failure.message);
        }
    }
    assert!(unpacked.failure("crc").evidence.expected.is_some());
    unpacked.taken("good");
    assert!(
        unpacked.items.iter().filter(|item| matches!(item.result, MemberResult::Verified { .. })).count()
            == 1
    );
}

#[tokio::test]
async fn a_damaged_manifest_refuses_the_package() {
    let wrong = zip().stored("b", A).with(|zip| {
        zip.parts[0].local.crc32 ^= 1;
        zip.parts[0].central.crc32 ^= 1;
    });
    refused(&wrong.build(), ProblemReason::DigestMismatch, RETRY).await;
    let encrypted = zip().stored("b", A).with(|zip| {
        zip.parts[0].local.flags |= 1;
        zip.parts[0].central.flags |= 1;
    });
    refused(&encrypted.build(), ProblemReason::Malformed, Disposition::Refuse).await;
}
