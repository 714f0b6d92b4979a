//! Hostile ZIPs: each kind has its own refusal, and only the untrusted part is refused.

mod common;

use bytes::Bytes;
use common::block_on;
use common::counting::{Counting, Failing, Sparse};
use common::zips::{DEFLATE, Zip, deflate, zip64_field};
use packages::zip::{Data, Directory, MemberReader, Method};
use packages::{Limits, PackageError, ReadAhead, Scope};

fn open(bytes: Vec<u8>) -> Result<Directory, PackageError> {
    open_under(bytes, &Limits::default())
}

fn open_under(bytes: Vec<u8>, limits: &Limits) -> Result<Directory, PackageError> {
    block_on(Directory::open(&Bytes::from(bytes), limits))
}

/// Refused as a whole, under this name.
#[track_caller]
fn refused(bytes: Vec<u8>, name: &str) {
    let error = open(bytes).expect_err(name);
    assert_eq!((error.name(), error.scope()), (name, Scope::Package), "{error}");
}

/// The result of reading the member of this name.
fn read_under(zip: Vec<u8>, name: &str, limits: &Limits) -> Result<Vec<u8>, PackageError> {
    let bytes = Bytes::from(zip);
    block_on(async {
        let directory = Directory::open(&bytes, limits).await?;
        let member = directory.find(name).expect("the member is in the directory");
        let (_, reader) = directory.read(bytes.clone(), &member, ReadAhead::default()).await?;
        reader.to_end(u64::MAX).await
    })
}

fn read(zip: Vec<u8>, name: &str) -> Result<Vec<u8>, PackageError> {
    read_under(zip, name, &Limits::default())
}

/// The member `bad` is refused under this name, and the member `good` beside it is read all the same.
#[track_caller]
fn only_bad_is_refused(zip: &Zip, name: &str) {
    let zip = zip.clone().stored("good", b"good").build();
    let error = read(zip.clone(), "bad").expect_err(name);
    assert_eq!((error.name(), error.scope()), (name, Scope::Member), "{error}");
    assert_eq!(read(zip, "good").unwrap(), b"good");
}

/// Reading the member `bad` shows that the package cannot be trusted.
#[track_caller]
fn package_is_refused(zip: &Zip, name: &str) {
    let error = read(zip.build(), "bad").expect_err(name);
    assert_eq!((error.name(), error.scope()), (name, Scope::Package), "{error}");
}

fn two() -> Zip {
    Zip::new().stored("a", b"first").deflated("b", b"second second second")
}

// The end of the archive.

#[test]
fn no_archive_is_refused_as_what_it_looks_like() {
    let error = open(b"<html><title>Please sign in</title></html>".to_vec()).unwrap_err();
    assert!(error.to_string().contains("an HTML page"), "{error}");
    refused(b"PK".to_vec(), "not-an-archive");
    refused(Vec::new(), "truncated");
}

#[test]
fn archive_cut_anywhere_is_truncated() {
    let whole = two().build();
    for length in 4..whole.len() {
        refused(whole[..length].to_vec(), "truncated");
    }
}

#[test]
fn archive_cut_behind_a_stored_archive_is_not_taken_for_that_one() {
    let inner = two().build();
    let outer = Zip::new().stored("inner.zip", &inner).stored("later", b"later").build();
    let at = outer.windows(inner.len()).position(|window| window == inner).unwrap();
    refused(outer[..at + inner.len()].to_vec(), "bad-end");
    refused(outer[..at + inner.len() + 10].to_vec(), "bad-end");
}

#[test]
fn archive_over_several_files_is_refused() {
    refused(two().build_with(|end, _| end.disk = 1), "multi-disk");
    refused(two().build_with(|end, _| end.here = 1), "multi-disk");
    refused(two().but(|part| part.disk = 2).build(), "multi-disk");
    refused([b"PK\x07\x08", &two().build()[..60]].concat(), "multi-disk");
    let zip64 = || two().with(|zip| zip.zip64 = true);
    refused(zip64().build_with(|_, end| end.disks = 2), "multi-disk");
    refused(zip64().build_with(|_, end| end.disk = 1), "multi-disk");
    refused(zip64().build_with(|_, end| end.here = 1), "multi-disk");
}

#[test]
fn two_ends_are_ambiguous() {
    let other = Zip::new().stored("other", b"other").build();
    refused(two().with(|zip| zip.comment = other).build(), "ambiguous-end");
}

#[test]
fn directory_that_runs_into_the_end_is_refused() {
    refused(two().build_with(|end, _| end.size += 1), "bad-end");
    refused(two().build_with(|end, _| end.directory += 1), "bad-end");
}

#[test]
fn directory_elsewhere_than_told_is_refused() {
    refused(two().build_with(|end, _| end.directory -= 1), "bad-end");
}

#[test]
fn directory_in_two_places_is_refused() {
    let second = Zip::new().stored("a", b"first").build();
    let directory = second.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    let fake = second[directory..second.len() - 22].to_vec();
    let length = fake.len() as u32;
    let zip = Zip::new().stored("b", b"other").with(|zip| zip.gap = fake);
    refused(zip.build_with(|end, _| end.directory -= length), "bad-end");
}

#[test]
fn zip64_end_that_contradicts_the_shorter_one_is_refused() {
    let zip = || two().with(|zip| zip.zip64 = true);
    refused(zip().build_with(|end, _| (end.here, end.members) = (2, 1)), "bad-end");
    refused(zip().build_with(|end, _| end.directory = 3), "bad-end");
    refused(zip().build_with(|end, _| end.size = 3), "bad-end");
    refused(zip().build_with(|_, end| end.size = u64::MAX), "bad-end");
    refused(zip().build_with(|_, end| end.directory = u64::MAX), "bad-end");
}

#[test]
fn zip64_locator_that_leads_nowhere_is_refused() {
    let mut zip = two().with(|zip| zip.zip64 = true).build();
    let record = zip.windows(4).rposition(|window| window == b"PK\x06\x06").unwrap();
    zip[record] = b'X';
    refused(zip, "bad-end");
}

// The directory.

#[test]
fn other_number_of_members_than_declared_is_refused() {
    refused(two().build_with(|end, _| (end.here, end.members) = (3, 3)), "wrong-count");
    refused(two().build_with(|end, _| (end.here, end.members) = (1, 1)), "wrong-count");
    let zip64 = two().with(|zip| zip.zip64 = true);
    refused(zip64.build_with(|_, end| (end.here, end.members) = (65_538, 65_538)), "wrong-count");
}

#[test]
fn directory_of_other_bytes_is_refused() {
    let mut zip = two().build();
    let second = zip.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    zip[second] = b'X';
    refused(zip, "bad-directory");
}

#[test]
fn directory_cut_in_a_record_is_refused() {
    let mut zip = two().build();
    let second = zip.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    zip[second + 28] = 200;
    refused(zip, "bad-directory");
}

#[test]
fn missing_short_and_double_zip64_fields_are_refused() {
    let zip = |extra: Vec<u8>| {
        Zip::new().stored("a", b"first").but(|part| {
            part.central.size = u32::MAX;
            part.central.extra = extra;
        })
    };
    refused(zip(Vec::new()).build(), "bad-directory");
    refused(zip(vec![1, 0, 4, 0, 5, 0, 0, 0]).build(), "bad-directory");
    refused(zip([zip64_field(&[5]), zip64_field(&[6])].concat()).build(), "bad-directory");
    assert_eq!(open(zip(zip64_field(&[5])).build()).unwrap().member(0).size, 5);
}

#[test]
fn member_that_overlaps_another_is_refused() {
    // One header, two names: the classic bomb of 42 KB that inflate to petabytes.
    refused(two().but(|part| part.offset = Some(0)).build(), "overlap");
    // A member that begins inside another.
    refused(two().but(|part| part.offset = Some(33)).build(), "overlap");
    // One that contains the next.
    let swallowing =
        Zip::new().stored("a", b"first").both(|fields| (fields.compressed, fields.size) = (20, 20));
    refused(swallowing.stored("b", b"second").build(), "overlap");
}

#[test]
fn member_that_runs_into_the_directory_is_refused() {
    refused(Zip::new().stored("a", b"a").both(|fields| fields.compressed = 2).build(), "overlap");
    refused(Zip::new().stored("a", b"a").but(|part| part.offset = Some(1)).build(), "overlap");
    refused(Zip::new().stored("a", b"a").but(|part| part.offset = Some(u32::MAX - 1)).build(), "overlap");
}

#[test]
fn member_that_its_own_header_makes_overlap_is_refused() {
    // The directory omits the 40 bytes of extra field that move the data of `bad` into `next`.
    let zip = Zip::new()
        .stored("bad", b"0123456789")
        .but(|part| {
            part.local.extra = vec![0; 40];
            part.data.clear();
        })
        .stored("next", b"next");
    package_is_refused(&zip, "overlap");
}

#[test]
fn header_whose_extra_field_swallows_the_directory_is_refused() {
    let mut zip = Zip::new().stored("bad", b"bad").build();
    zip[28..30].copy_from_slice(&u16::MAX.to_le_bytes());
    let error = read(zip, "bad").unwrap_err();
    assert_eq!((error.name(), error.scope()), ("overlap", Scope::Package), "{error}");
}

#[test]
fn more_members_than_the_limit_are_refused() {
    let limits = Limits { members: 2, ..Limits::default() };
    assert_eq!(open_under(two().build(), &limits).unwrap().len(), 2);
    let three = two().stored("c", b"");
    assert_eq!(open_under(three.build(), &limits).unwrap_err().name(), "too-many-members");
    // The declared number is not trusted, either.
    let lying = three.build_with(|end, _| (end.here, end.members) = (1, 1));
    assert_eq!(open_under(lying, &limits).unwrap_err().name(), "too-many-members");
}

#[test]
fn longer_directory_than_the_limit_is_refused_unread() {
    let limits = Limits { directory_bytes: 10, ..Limits::default() };
    assert_eq!(open_under(two().build(), &limits).unwrap_err().name(), "directory-too-large");
}

#[test]
fn more_bytes_than_the_limit_for_all_are_refused() {
    let limits = Limits { inflated_bytes_total: 24, ..Limits::default() };
    assert_eq!(open_under(two().build(), &limits).unwrap_err().name(), "too-many-bytes");
    let limits = Limits { inflated_bytes_total: 25, ..Limits::default() };
    assert_eq!(open_under(two().build(), &limits).unwrap().inflated_bytes(), 25);
}

#[test]
fn sizes_that_overflow_when_added_are_too_many_bytes() {
    let huge = |zip: Zip, name: &str| {
        zip.deflated(name, b"").but(|part| {
            part.central.size = u32::MAX;
            part.central.extra = zip64_field(&[u64::MAX - 1]);
        })
    };
    refused(huge(huge(Zip::new(), "a"), "b").build(), "too-many-bytes");
}

#[test]
fn claimed_members_cost_no_memory_before_they_are_seen() {
    let zip =
        two().with(|zip| zip.zip64 = true).build_with(|_, end| (end.here, end.members) = (900_000, 900_000));
    refused(zip, "wrong-count");
}

// One member.

#[test]
fn encrypted_member_is_refused() {
    for flag in [1, 1 | 1 << 6, 1 << 13] {
        only_bad_is_refused(
            &Zip::new().stored("bad", b"bad").both(|fields| fields.flags = flag),
            "encrypted",
        );
    }
}

#[test]
fn unknown_method_is_refused() {
    for method in [1, 6, 9, 12, 14, 93, 95, 98, 99, 65_535] {
        only_bad_is_refused(
            &Zip::new().stored("bad", b"bad").both(|fields| fields.method = method),
            "unknown-method",
        );
    }
}

#[test]
fn patch_data_is_refused() {
    only_bad_is_refused(
        &Zip::new().stored("bad", b"bad").both(|fields| fields.flags = 1 << 5),
        "unknown-method",
    );
}

#[test]
fn members_of_one_name_are_refused_and_no_others() {
    only_bad_is_refused(&Zip::new().stored("bad", b"one").stored("bad", b"other"), "duplicate-name");
    let zip = open(Zip::new().stored("a", b"1").stored("b", b"2").stored("a", b"3").build()).unwrap();
    let twice: Vec<bool> = zip.members().map(|member| member.duplicate).collect();
    assert_eq!(twice, [true, false, true]);
}

#[test]
fn links_devices_and_folders_are_no_files() {
    let unix = |mode: u32| {
        Zip::new().stored("bad", b"/etc/passwd").but(|part| {
            part.made_by = 3 << 8 | 20;
            part.attributes = mode << 16;
        })
    };
    only_bad_is_refused(&unix(0o120_777), "link");
    only_bad_is_refused(&unix(0o020_666), "device");
    only_bad_is_refused(&unix(0o060_666), "device");
    only_bad_is_refused(&unix(0o010_666), "device");
    only_bad_is_refused(&unix(0o140_666), "device");
    only_bad_is_refused(&unix(0o040_755), "folder");
    assert_eq!(read(unix(0o100_644).build(), "bad").unwrap(), b"/etc/passwd");
    let error = read(Zip::new().stored("bad/", b"").build(), "bad/").unwrap_err();
    assert_eq!(error.name(), "folder");
}

#[test]
fn name_longer_than_the_limit_is_refused() {
    let name = "n".repeat(40);
    let limits = Limits { name_bytes: 39, ..Limits::default() };
    let zip = Zip::new().stored(&name, b"bad").build();
    assert_eq!(read_under(zip.clone(), &name, &limits).unwrap_err().name(), "name-too-long");
    let limits = Limits { name_bytes: 40, ..Limits::default() };
    assert_eq!(read_under(zip, &name, &limits).unwrap(), b"bad");
}

#[test]
fn member_larger_than_the_limit_is_refused_before_it_is_inflated() {
    let limits = Limits { member_bytes: 4, ..Limits::default() };
    let zip = Zip::new().deflated("bad", b"01234").build();
    assert_eq!(read_under(zip, "bad", &limits).unwrap_err().name(), "member-too-large");
}

#[test]
fn member_denser_than_the_limit_is_refused_before_it_is_inflated() {
    let zip = Zip::new().deflated("bad", &vec![0; 100_000]).build();
    let limits = Limits { ratio_floor_bytes: 99_999, ratio: 100, ..Limits::default() };
    assert_eq!(read_under(zip.clone(), "bad", &limits).unwrap_err().name(), "member-too-dense");
    let limits = Limits { ratio_floor_bytes: 100_000, ..limits };
    assert_eq!(read_under(zip, "bad", &limits).unwrap().len(), 100_000);
}

#[test]
fn densest_possible_member_is_over_the_default_limit() {
    let content = vec![0; 65 << 20];
    let error = read(Zip::new().deflated("bad", &content).build(), "bad").unwrap_err();
    assert_eq!(error.name(), "member-too-dense");
}

#[test]
fn wrong_crc_is_refused() {
    only_bad_is_refused(&Zip::new().stored("bad", b"bad").both(|fields| fields.crc32 ^= 1), "wrong-crc");
    only_bad_is_refused(&Zip::new().deflated("bad", b"bad").both(|fields| fields.crc32 ^= 1), "wrong-crc");
}

#[test]
fn member_that_inflates_to_more_than_declared_is_stopped_there() {
    let content = vec![b'x'; 1 << 20];
    only_bad_is_refused(&Zip::new().deflated("bad", &content).both(|fields| fields.size -= 1), "wrong-size");
    only_bad_is_refused(&Zip::new().deflated("bad", &content).both(|fields| fields.size = 0), "wrong-size");
    // Never more than declared is returned before the error.
    let zip = Bytes::from(Zip::new().deflated("bad", &content).both(|fields| fields.size = 70_000).build());
    block_on(async {
        let directory = Directory::open(&zip, &Limits::default()).await.unwrap();
        let member = directory.member(0);
        let (_, mut reader) = directory.read(zip.clone(), &member, ReadAhead::default()).await.unwrap();
        let mut given = 0;
        let error = loop {
            match reader.chunk().await {
                Ok(Some(chunk)) => given += chunk.len(),
                Ok(None) => panic!("a wrong size was taken for right"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.name(), "wrong-size");
        assert!(given <= 70_000, "{given}");
        assert_eq!(
            reader.chunk().await.unwrap_err().name(),
            "read",
            "an error must not be followed by a good end"
        );
    });
}

#[test]
fn member_that_inflates_to_less_than_declared_is_refused() {
    only_bad_is_refused(&Zip::new().deflated("bad", b"bad").both(|fields| fields.size += 1), "wrong-size");
}

#[test]
fn stored_member_of_two_sizes_is_refused() {
    only_bad_is_refused(&Zip::new().stored("bad", b"bad").both(|fields| fields.size = 2), "wrong-size");
}

#[test]
fn stored_bytes_behind_the_deflate_stream_are_refused() {
    let smuggling = |extra: usize| {
        Zip::new().deflated("bad", b"bad").but(|part| {
            part.data.extend(vec![b'x'; extra]);
            part.local.compressed += extra as u32;
            part.central.compressed += extra as u32;
        })
    };
    only_bad_is_refused(&smuggling(1), "wrong-size");
    only_bad_is_refused(&smuggling(3 << 20), "wrong-size");
}

#[test]
fn bytes_that_are_no_deflate_stream_are_refused() {
    let zip = Zip::new().deflated("bad", b"bad").but(|part| part.data[0] = 0xff);
    only_bad_is_refused(&zip, "bad-deflate");
}

#[test]
fn deflate_stream_that_ends_early_is_refused() {
    let whole = deflate(b"something of which the end is missing");
    let zip = Zip::new().deflated("bad", b"something of which the end is missing").but(|part| {
        part.data = whole[..whole.len() - 4].to_vec();
        part.local.compressed -= 4;
        part.central.compressed -= 4;
    });
    only_bad_is_refused(&zip, "bad-deflate");
}

// A member's own header against the directory.

#[test]
fn no_header_where_one_should_be_is_refused() {
    package_is_refused(&Zip::new().stored("bad", b"bad").but(|part| part.signature = 0), "no-header");
}

#[test]
fn header_with_another_name_is_refused() {
    package_is_refused(
        &Zip::new().stored("bad", b"bad").but(|part| part.local.name = b"bat".to_vec()),
        "header-contradicts",
    );
    package_is_refused(
        &Zip::new().stored("bad", b"bad").but(|part| part.local.name = b"bad.exe".to_vec()),
        "header-contradicts",
    );
}

#[test]
fn header_with_another_method_is_refused() {
    package_is_refused(
        &Zip::new().stored("bad", b"bad").but(|part| part.local.method = DEFLATE),
        "header-contradicts",
    );
}

#[test]
fn header_with_other_numbers_is_refused() {
    package_is_refused(
        &Zip::new().stored("bad", b"bad").but(|part| part.local.crc32 ^= 1),
        "header-contradicts",
    );
    package_is_refused(
        &Zip::new().stored("bad", b"bad").but(|part| part.local.size = 2),
        "header-contradicts",
    );
    package_is_refused(
        &Zip::new().stored("bad", b"bad").but(|part| part.local.compressed = 2),
        "header-contradicts",
    );
    package_is_refused(
        &Zip::new().stored("bad", b"bad").but(|part| part.local.size = 0),
        "header-contradicts",
    );
}

#[test]
fn header_that_leaves_numbers_for_later_may_not_give_wrong_ones() {
    let zip = |crc32| {
        Zip::new().stored("bad", b"bad").but(|part| {
            part.local.flags = 1 << 3;
            part.central.flags = 1 << 3;
            part.local.crc32 = crc32;
            part.local.size = 0;
            part.local.compressed = 0;
        })
    };
    assert_eq!(read(zip(0).build(), "bad").unwrap(), b"bad");
    package_is_refused(&zip(1), "header-contradicts");
}

#[test]
fn header_that_says_encrypted_is_refused() {
    package_is_refused(
        &Zip::new().stored("bad", b"bad").but(|part| part.local.flags = 1),
        "header-contradicts",
    );
}

#[test]
fn header_whose_zip64_field_gives_other_sizes_is_refused() {
    let zip = |extra: Vec<u8>| {
        Zip::new().stored("bad", b"bad").but(|part| {
            part.local.size = u32::MAX;
            part.local.compressed = u32::MAX;
            part.local.extra = extra;
        })
    };
    assert_eq!(read(zip(zip64_field(&[3, 3])).build(), "bad").unwrap(), b"bad");
    package_is_refused(&zip(zip64_field(&[3, 4])), "header-contradicts");
    package_is_refused(&zip(zip64_field(&[3])), "header-contradicts");
    package_is_refused(&zip(Vec::new()), "header-contradicts");
}

// The store.

#[test]
fn store_that_fails_is_worth_another_try() {
    let inner = Bytes::from(two().build());
    let opened = block_on(Directory::open(&inner, &Limits::default())).unwrap();
    let failing = |from, until| Failing { inner: inner.clone(), from, until };
    block_on(async {
        let error = Directory::open(&failing(0, 1), &Limits::default()).await.unwrap_err();
        assert_eq!((error.name(), error.scope()), ("read", Scope::Store));
        let error = opened.locate(&failing(0, 1), &opened.member(0)).await.unwrap_err();
        assert_eq!(error.scope(), Scope::Store);
        let data = opened.locate(&inner, &opened.member(0)).await.unwrap();
        let reader = MemberReader::new(failing(data.offset, data.offset + 1), data, ReadAhead::default());
        assert_eq!(reader.to_end(100).await.unwrap_err().scope(), Scope::Store);
    });
}

#[test]
fn record_that_leads_outside_the_package_is_refused_unread() {
    let package = Counting::new(Sparse { length: 100, parts: Default::default() });
    for (offset, stored_length) in [(90, 20), (100, 1), (u64::MAX, 1), (u64::MAX, u64::MAX)] {
        for method in [Method::Stored, Method::Deflated] {
            let data = Data { offset, stored_length, method, length: stored_length, crc32: None };
            let reader = MemberReader::new(&package, data, ReadAhead::default());
            let error = block_on(reader.to_end(u64::MAX)).unwrap_err();
            assert_eq!(error.scope(), Scope::Member, "{error}");
        }
    }
    assert!(package.bytes() <= 20);
}
