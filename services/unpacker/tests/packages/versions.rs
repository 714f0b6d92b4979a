//! Entries that are no plain members: deletions, several versions, unreadable entries.

use bus::HandlerResult;
use model::{MemberOutcome, MemberResult, PackageResult, ProblemReason, UnpackTask};
use resourcesync::{Capability, Change};

use crate::case::{Case, changes, dump, entry, holding};
use crate::tars::Tar;
use crate::zips::Zip;

const A: &[u8] = b"content";

fn changed(loc: &str, change: &str, time: &str, path: Option<&str>) -> String {
    let path = path.map(|path| format!(r#"path="{path}""#)).unwrap_or_default();
    entry(loc, &format!(r#"change="{change}" datetime="2026-01-{time}T00:00:00Z" {path}"#))
}

#[tokio::test]
async fn a_deletion_names_no_member_and_needs_none() {
    let case = Case::new().await;
    let manifest =
        changes(&[changed("gone", "deleted", "02", None), changed("new", "created", "03", Some("/n"))]);
    let unpacked = case.unpack(Zip::new().stored("manifest.xml", &manifest).stored("n", A).build()).await;
    assert_eq!(unpacked.of("gone"), &MemberResult::NoMember);
    assert_eq!(unpacked.items[0].entry.metadata.change, Some(Change::Deleted));
    assert_eq!(unpacked.contents.manifest.capability, Some(Capability::ChangeDumpManifest));
    unpacked.taken("new");
}

#[tokio::test]
async fn of_several_versions_the_last_is_unpacked_and_the_others_are_counted() {
    let case = Case::new().await;
    let manifest = changes(&[
        changed("a", "created", "02", Some("/1")),
        changed("b", "created", "02", Some("/2")),
        changed("a", "updated", "03", Some("/3")),
        changed("b", "deleted", "04", None),
        changed("a", "updated", "03", Some("/4")),
    ]);
    let mut zip = Zip::new().stored("manifest.xml", &manifest);
    for (name, content) in [("1", "one"), ("2", "two"), ("3", "three"), ("4", "four")] {
        zip = zip.stored(name, content.as_bytes());
    }
    let unpacked = case.unpack(zip.build()).await;
    assert_eq!((unpacked.contents.entries, unpacked.contents.overtaken, unpacked.items.len()), (5, 3, 2));
    assert_eq!(case.bytes(unpacked.taken("a")).await, "four");
    assert_eq!(unpacked.of("b"), &MemberResult::NoMember);
    assert_eq!(unpacked.contents.unlisted, 0, "members of versions that are overtaken are named");
}

/// LNK-10: where versions are kept, every bitstream of a Change Dump counts.
#[tokio::test]
async fn earlier_versions_are_unpacked_where_they_are_wanted_and_marked() {
    let case = Case::new().await;
    let manifest = changes(&[
        changed("a", "created", "02", Some("/1")),
        changed("b", "created", "02", Some("/2")),
        changed("a", "deleted", "03", None),
        changed("b", "deleted", "04", None),
        changed("a", "updated", "05", Some("/4")),
        changed("a", "updated", "04", Some("/3")),
    ]);
    let contents = [("1", "one"), ("2", "two"), ("3", "three"), ("4", "four")];
    let mut zip = Zip::new().stored("manifest.xml", &manifest);
    let mut tar = Tar::new().file("manifest.xml", &manifest);
    for (name, content) in contents {
        zip = zip.stored(name, content.as_bytes());
        tar = tar.file(name, content.as_bytes());
    }
    let task = UnpackTask::Open { settled: 0, keep_earlier: true };
    let of_zip = case.unpack_by(zip.build(), task.clone()).await;
    let stored = case.put(tar.end()).await;
    let (work, mut said) = case.work(&case.job(&stored, task)).await;
    assert_eq!((work, said.len()), (HandlerResult::Done, 2), "{said:?}");
    let Some(PackageResult::Slice { items: of_tar, .. }) = said.pop() else { panic!("{said:?}") };
    let Some(PackageResult::Opened(contents_of_tar)) = said.pop() else { panic!("{said:?}") };
    for (contents, items) in [(&of_zip.contents, &of_zip.items), (&contents_of_tar, &of_tar)] {
        assert_eq!((contents.entries, contents.overtaken, contents.keeps_earlier), (6, 1, true));
        let mut found = Vec::new();
        for MemberOutcome { entry, result, .. } in items {
            let bytes = match result {
                MemberResult::Verified { stored, .. } => Some(case.bytes(stored).await),
                MemberResult::NoMember => None,
                other => panic!("{other:?}"),
            };
            let name = entry.loc.rsplit('/').next().unwrap().to_owned();
            found.push((name, entry.earlier, bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())));
        }
        found.sort();
        let expected = [
            ("a", false, Some("four")),
            ("a", true, Some("one")),
            ("a", true, Some("three")),
            ("b", false, None),
            ("b", true, Some("two")),
        ];
        let expected =
            expected.map(|(name, earlier, bytes)| (name.to_owned(), earlier, bytes.map(str::to_owned)));
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn where_the_newest_comes_first_the_times_of_the_changes_decide() {
    let case = Case::new().await;
    let manifest = changes(&[
        changed("a", "updated", "09", Some("/new")),
        changed("a", "updated", "05", Some("/old")),
        changed("a", "created", "01", Some("/older")),
    ]);
    let zip = Zip::new()
        .stored("manifest.xml", &manifest)
        .stored("new", b"n")
        .stored("old", b"o")
        .stored("older", b"x");
    let unpacked = case.unpack(zip.build()).await;
    assert_eq!(case.bytes(unpacked.taken("a")).await, "n");
    assert_eq!(unpacked.contents.overtaken, 2);
}

#[tokio::test]
async fn a_lastmod_is_no_time_of_change_and_the_order_decides() {
    let case = Case::new().await;
    // The content of the second version is older than that of the first: it was restored.
    let version = |lastmod: &str, change: &str, path: &str| {
        entry("a", &format!(r#"change="{change}" path="{path}""#))
            .replace("</loc>", &format!("</loc><lastmod>{lastmod}</lastmod>"))
    };
    for (first, second) in [("2026-01-05", "2000-01-01"), ("2026-01-05T00:00:00Z", "2026-01-04T00:00:00Z")] {
        let manifest = changes(&[version(first, "updated", "/1"), version(second, "updated", "/2")]);
        let zip = Zip::new().stored("manifest.xml", &manifest).stored("1", b"1").stored("2", b"2");
        let unpacked = case.unpack(zip.build()).await;
        assert_eq!(case.bytes(unpacked.taken("a")).await, "2", "{first} {second}");
    }
}

#[tokio::test]
async fn times_that_are_not_certain_do_not_change_the_order_of_the_manifest() {
    let case = Case::new().await;
    // Times without zone, a day that contains the other time, and a time in the future.
    for (first, second) in [("05T00:00:00", "04T00:00:00"), ("05T10:00:00Z", "05")] {
        let first = entry("a", &format!(r#"change="updated" datetime="2026-01-{first}" path="/1""#));
        let second = entry("a", &format!(r#"change="updated" datetime="2026-01-{second}" path="/2""#));
        let future = entry("b", r#"change="updated" datetime="2999-01-01T00:00:00Z" path="/1""#);
        let now = entry("b", r#"change="updated" datetime="2026-01-01T00:00:00Z" path="/2""#);
        let manifest = changes(&[first, future, second, now]);
        let zip = Zip::new().stored("manifest.xml", &manifest).stored("1", b"1").stored("2", b"2");
        let unpacked = case.unpack(zip.build()).await;
        for loc in ["a", "b"] {
            assert_eq!(case.bytes(unpacked.taken(loc)).await, "2", "{loc}");
        }
    }
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_told_with_its_place() {
    let case = Case::new().await;
    let bad = "<url><loc>http://e.org/x</loc><loc>http://e.org/y</loc></url>\n".to_owned();
    let manifest = dump(&[bad, holding("a", "/a", A)]);
    let unpacked = case.unpack(Zip::new().stored("manifest.xml", &manifest).stored("a", A).build()).await;
    let item = unpacked.items.iter().find(|item| matches!(&item.result, MemberResult::BadEntry(_))).unwrap();
    assert_eq!((item.entry.line, item.entry.column), (2, 1));
    assert!(matches!(&item.result, MemberResult::BadEntry(why) if why.contains("more than one loc")));
    assert_eq!(unpacked.contents.entries, 2);
    unpacked.taken("a");
}

#[tokio::test]
async fn a_manifest_without_entries_is_opened_and_has_no_slices() {
    let case = Case::new().await;
    let unpacked = case.unpack(Zip::new().stored("manifest.xml", &dump(&[])).build()).await;
    assert_eq!((unpacked.contents.slices, unpacked.contents.index, unpacked.contents.entries), (0, None, 0));
}

#[tokio::test]
async fn a_manifest_that_breaks_off_is_refused_and_so_is_an_index() {
    let case = Case::new().await;
    let mut broken = dump(&[holding("a", "/a", A)]);
    broken.truncate(broken.len() - 5);
    let failure = case.refusal(Zip::new().stored("manifest.xml", &broken).stored("a", A).build()).await;
    assert_eq!(failure.reason, ProblemReason::Malformed);
    assert!(failure.message.contains("manifest"), "{}", failure.message);
    let index = String::from_utf8(dump(&[])).unwrap().replace("urlset", "sitemapindex");
    let failure = case.refusal(Zip::new().stored("manifest.xml", index.as_bytes()).build()).await;
    assert_eq!(failure.reason, ProblemReason::WrongKind);
}
