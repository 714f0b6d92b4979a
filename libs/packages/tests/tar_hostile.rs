//! Hostile tars: each kind has its own refusal, and only the untrusted part is refused.

mod common;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use common::tars::{ALL, Tar, compressed, header, record, sum};
use common::{block_on, noise};
use packages::tar::{Entries, Item};
use packages::{Compression, Limits, PackageError, Scope};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

/// Names of files and of refusals, in order.
fn read_under(source: impl AsyncRead + Send, limits: &Limits) -> Result<Vec<String>, PackageError> {
    block_on(async {
        let mut entries = Entries::open(source, limits).await?;
        let mut all = Vec::new();
        while let Some(item) = entries.next().await? {
            match item {
                Item::Member(member) => {
                    while entries.chunk().await?.is_some() {}
                    all.push(member.name().into_owned());
                }
                Item::Refused(error) => {
                    assert_eq!(error.scope(), Scope::Member, "{error}");
                    assert!(entries.chunk().await?.is_none(), "what is refused is not read");
                    all.push(error.name().to_owned());
                }
            }
        }
        Ok(all)
    })
}

fn read(tar: &[u8]) -> Result<Vec<String>, PackageError> {
    read_under(tar, &Limits::default())
}

/// Refused as a whole, under this name.
#[track_caller]
fn refused(tar: &[u8], name: &str) {
    refused_under(tar, &Limits::default(), name);
}

#[track_caller]
fn refused_under(tar: &[u8], limits: &Limits, name: &str) {
    let error = read_under(tar, limits).expect_err(name);
    assert_eq!((error.name(), error.scope()), (name, Scope::Package), "{error}");
}

/// The members before and behind are read all the same.
#[track_caller]
fn only_this_is_refused(tar: Tar, name: &str) {
    let tar = Tar([Tar::new().file("before", b"1").0, tar.0].concat()).file("behind", b"2").end();
    assert_eq!(read(&tar).unwrap(), ["before", name, "behind"]);
}

fn one() -> Tar {
    Tar::new().file("a", b"first")
}

#[test]
fn no_archive_is_refused_as_what_it_looks_like() {
    refused(b"<html>", "not-an-archive");
    refused(b"", "truncated");
    refused(b"PK\x03\x04", "not-an-archive");
    for compression in &ALL[1..] {
        refused(&compressed(&noise(1, 2_000), *compression), "not-an-archive");
    }
}

#[test]
fn tar_cut_anywhere_is_truncated() {
    let tar = Tar::new().file("a", &noise(2, 700)).long_name("b").file("b", b"2").end();
    for length in 512..tar.len() - 1_024 {
        refused(&tar[..length], "truncated");
    }
}

#[test]
fn compressed_tar_cut_anywhere_is_truncated() {
    let tar = Tar::new().file("a", &noise(3, 1_000)).file("b", b"2").end();
    for compression in &ALL[1..] {
        let whole = compressed(&tar, *compression);
        for length in 8..whole.len() {
            refused(&whole[..length], "truncated");
        }
    }
}

#[test]
fn damaged_compression_is_refused_at_its_end_at_the_latest() {
    let tar = Tar::new().file("a", &noise(4, 1_000)).end();
    for compression in [Compression::Gzip, Compression::Xz] {
        let mut whole = compressed(&tar, compression);
        // The checksum of gzip is eight bytes before the end, that of xz further inside.
        let middle = if compression == Compression::Gzip { whole.len() - 6 } else { whole.len() / 2 };
        whole[middle] ^= 0xff;
        refused(&whole, "bad-compression");
    }
}

#[test]
fn wrong_checksum_is_refused() {
    let mut tar = one().file("b", b"2").end();
    tar[1024] ^= 1;
    refused(&tar, "bad-header");
}

#[test]
fn size_that_is_no_number_is_refused() {
    for size in [b"-0000000001\0", b"00000000018\0", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"] {
        let mut bad = header(b'0', b"a", 0);
        bad[124..136].copy_from_slice(size);
        sum(&mut bad);
        refused(&one().raw(&bad, b"").end(), "bad-header");
    }
}

#[test]
fn size_beyond_everything_is_refused_unread() {
    let mut bad = header(b'0', b"a", 0);
    bad[124..136].copy_from_slice(b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff");
    sum(&mut bad);
    // The member is over the limit for one; skipping it finds that the tar ends first.
    refused(&one().raw(&bad, b"").end(), "truncated");
}

#[test]
fn pax_size_that_differs_from_the_header_is_refused() {
    // A reader that ignores PAX records sees `hidden` as a member; one that reads them sees it as content.
    let hidden = Tar::new().file("hidden", b"hidden").0;
    let smuggling = Tar::new().pax(&[("size", &hidden.len().to_string())]);
    let zero = smuggling.clone().raw(&header(b'0', b"a", 0), &hidden);
    refused(&zero.end(), "bad-header");
    // And the other way round.
    refused(&Tar::new().pax(&[("size", "0")]).raw(&header(b'0', b"a", 1_024), &hidden).end(), "bad-header");
}

#[test]
fn pax_size_is_not_taken_for_the_size_of_a_header_in_between() {
    // `size` belongs to the file, not to the long name before it.
    let tar = Tar::new().pax(&[("size", "5")]).long_name("the/name").file("a", b"first").file("b", b"2");
    assert_eq!(read(&tar.end()).unwrap(), ["the/name", "b"]);
}

#[test]
fn pax_records_that_contradict_each_other_are_refused() {
    refused(&Tar::new().pax(&[("path", "b"), ("path", "c")]).file("a", b"1").end(), "bad-header");
    refused(&Tar::new().pax(&[("size", "1"), ("size", "2")]).file("a", b"1").end(), "bad-header");
    refused(&Tar::new().pax(&[("path", "b")]).pax(&[("path", "c")]).file("a", b"1").end(), "bad-header");
    refused(&Tar::new().pax(&[("path", "b")]).long_name("c").file("a", b"1").end(), "bad-header");
    refused(&Tar::new().long_name("b").long_name("c").file("a", b"1").end(), "bad-header");
}

#[test]
fn malformed_pax_records_are_refused() {
    for data in ["99 path=a\n", "path=a\n", "9 path=ab\n", "10 size=-1\n", "7 path=\n", "8 path=\n"] {
        refused(&Tar::new().entry(b'x', "x", data.as_bytes()).file("a", b"1").end(), "bad-header");
    }
}

#[test]
fn name_or_size_for_all_members_is_refused() {
    for (key, value) in [("path", "a"), ("size", "1"), ("GNU.sparse.major", "1")] {
        refused(&Tar::new().entry(b'g', "g", &record(key, value)).file("a", b"1").end(), "bad-header");
    }
}

#[test]
fn header_that_extends_nothing_is_refused() {
    refused(&one().pax(&[("path", "b")]).end(), "bad-header");
    refused(&one().long_name("b").end(), "bad-header");
}

#[test]
fn longer_extensions_than_the_limit_are_refused_unread() {
    let limits = Limits { extension_bytes: 1_000, ..Limits::default() };
    refused_under(
        &Tar::new().long_name(&"n".repeat(1_000)).file("a", b"1").end(),
        &limits,
        "extension-too-large",
    );
    refused_under(&one().raw(&header(b'x', b"x", 4 << 30), b"").end(), &limits, "extension-too-large");
    refused_under(&one().raw(&header(b'g', b"g", 4 << 30), b"").end(), &limits, "extension-too-large");
    // Several together, too.
    let several = Tar::new().entry(b'K', "K", &[b'k'; 600]).entry(b'K', "K", &[b'k'; 600]).file("a", b"1");
    refused_under(&several.end(), &limits, "extension-too-large");
}

#[test]
fn links_and_devices_are_refused_alone() {
    let entry = |typeflag| Tar::new().entry(typeflag, "bad", b"");
    only_this_is_refused(entry(b'1'), "link");
    only_this_is_refused(entry(b'2'), "link");
    for typeflag in [b'3', b'4', b'6'] {
        only_this_is_refused(entry(typeflag), "device");
    }
}

#[test]
fn link_with_content_is_refused_with_all() {
    // Some readers look for the next header in it.
    let hidden = Tar::new().file("hidden", b"hidden").0;
    for typeflag in [b'1', b'2', b'3', b'4', b'6'] {
        refused(&one().entry(typeflag, "bad", &hidden).end(), "bad-header");
    }
}

#[test]
fn sparse_files_are_refused_alone() {
    only_this_is_refused(Tar::new().entry(b'S', "bad", b"data"), "sparse");
    only_this_is_refused(Tar::new().pax(&[("GNU.sparse.major", "1")]).file("bad", b"data"), "sparse");
    // With two blocks of its map behind the header.
    let mut extended = header(b'S', b"bad", 4);
    extended[482] = 1;
    sum(&mut extended);
    let mut tar = Tar::new().raw(&extended, b"");
    let mut map = [b'7'; 512];
    map[504] = 1;
    tar.0.extend(map);
    map[504] = 0;
    tar.0.extend(map);
    tar.0.extend([0; 512]);
    only_this_is_refused(tar, "sparse");
}

#[test]
fn map_of_a_sparse_file_without_end_is_truncated() {
    let mut extended = header(b'S', b"bad", 0);
    extended[482] = 1;
    sum(&mut extended);
    let mut tar = Tar::new().raw(&extended, b"").0;
    tar.extend([1; 5_120]);
    refused(&tar, "truncated");
}

#[test]
fn continued_member_of_another_volume_is_refused() {
    refused(&Tar::new().entry(b'M', "a", b"rest").end(), "multi-disk");
}

#[test]
fn unknown_type_is_refused_alone() {
    for typeflag in *b"89AZNa" {
        only_this_is_refused(Tar::new().entry(typeflag, "bad", b"content"), "unknown-type");
    }
}

#[test]
fn second_member_of_a_name_is_refused() {
    only_this_is_refused(Tar::new().file("before", b"other"), "duplicate-name");
}

#[test]
fn name_longer_than_the_limit_is_refused_alone() {
    let limits = Limits { name_bytes: 20, ..Limits::default() };
    let tar =
        Tar::new().long_name(&"n".repeat(21)).file("n", b"1").long_name(&"n".repeat(20)).file("n", b"1");
    assert_eq!(read_under(&tar.end()[..], &limits).unwrap(), ["name-too-long", &"n".repeat(20)]);
}

#[test]
fn member_larger_than_the_limit_is_refused_alone() {
    let limits = Limits { member_bytes: 4, ..Limits::default() };
    let tar = Tar::new().file("a", b"12345").file("b", b"1234");
    assert_eq!(read_under(&tar.end()[..], &limits).unwrap(), ["member-too-large", "b"]);
}

#[test]
fn more_members_than_the_limit_are_refused() {
    let limits = Limits { members: 2, ..Limits::default() };
    let two = one().entry(b'5', "d/", b"");
    assert_eq!(read_under(&two.clone().end()[..], &limits).unwrap(), ["a"]);
    refused_under(&two.entry(b'2', "c", b"").end(), &limits, "too-many-members");
}

#[test]
fn more_bytes_than_the_limit_for_all_are_refused() {
    let tar = Tar::new().file("a", &[1; 1_000_000]).end();
    let limits = Limits { inflated_bytes_total: 500_000, ..Limits::default() };
    for compression in ALL {
        refused_under(&compressed(&tar, compression), &limits, "too-many-bytes");
    }
}

#[test]
fn denser_tar_than_the_limit_is_refused_on_the_way() {
    let tar = Tar::new().file("a", &vec![0; 4 << 20]).end();
    let limits = Limits { ratio_floor_bytes: 1 << 20, ratio: 50, ..Limits::default() };
    for compression in &ALL[1..] {
        refused_under(&compressed(&tar, *compression), &limits, "package-too-dense");
    }
    assert_eq!(read_under(&tar[..], &limits).unwrap(), ["a"]);
}

#[test]
fn zeros_without_end_behind_the_end_are_bounded_like_all_else() {
    let limits = Limits { inflated_bytes_total: 10 << 20, ..Limits::default() };
    let tar = one().end();
    let error = read_under(tar.chain(tokio::io::repeat(0)), &limits).unwrap_err();
    assert_eq!(error.name(), "too-many-bytes");
}

#[test]
fn decoder_that_wants_too_much_memory_is_refused() {
    let tar = Tar::new().file("a", &noise(5, 300_000)).end();
    let limits = Limits { decoder_bytes: 1 << 16, ..Limits::default() };
    refused_under(&compressed(&tar, Compression::Xz), &limits, "decoder-too-large");
    refused_under(&compressed(&tar, Compression::Zstd), &limits, "decoder-too-large");
    // A frame of zstd with a window of 2 GiB.
    refused(b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", "decoder-too-large");
}

#[test]
fn second_tar_behind_the_end_is_refused() {
    let two = [one().end(), Tar::new().file("b", b"2").end()].concat();
    for compression in ALL {
        refused(&compressed(&two, compression), "trailing-bytes");
    }
    // A single block of zeros is an end as well.
    let mut lone = one().0;
    lone.extend([0; 512]);
    refused(&Tar(lone).file("b", b"2").end(), "trailing-bytes");
}

#[test]
fn tar_without_its_end_is_truncated() {
    for compression in ALL {
        refused(&compressed(&one().0, compression), "truncated");
    }
}

#[test]
fn source_that_fails_is_worth_another_try() {
    struct Failing;
    impl AsyncRead for Failing {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the store has gone")))
        }
    }
    let tar = Tar::new().file("a", &noise(6, 300_000)).end();
    for compression in ALL {
        let whole = compressed(&tar, compression);
        for length in [0, 100, 200_000] {
            let error = read_under(whole[..length].chain(Failing), &Limits::default()).unwrap_err();
            assert_eq!(
                (error.name(), error.scope()),
                ("read", Scope::Store),
                "{compression:?} {length}: {error}"
            );
        }
    }
}

#[test]
fn after_an_error_there_is_no_good_end() {
    let tar = one().0;
    block_on(async {
        let mut entries = Entries::open(&tar[..], &Limits::default()).await.unwrap();
        assert!(matches!(entries.next().await, Ok(Some(Item::Member(_)))));
        assert_eq!(entries.next().await.unwrap_err().name(), "truncated");
        assert!(entries.next().await.is_err());
        assert!(entries.chunk().await.is_err());
    });
}
