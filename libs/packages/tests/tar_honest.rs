//! Tars as honest tools write them.

mod common;

use common::tars::{ALL, Tar, compressed, header, record, sum};
use common::{block_on, noise};
use packages::tar::{Entries, Item};
use packages::{Compression, Limits, ManifestFinder, NameOddity, PackageError, Packaging};
use tokio::io::AsyncReadExt as _;

/// All files of a tar with name and content, or the name of the refusal.
fn read(tar: &[u8]) -> Result<Vec<(String, Vec<u8>)>, PackageError> {
    block_on(async {
        let mut entries = Entries::open(tar, &Limits::default()).await?;
        let mut all = Vec::new();
        while let Some(item) = entries.next().await? {
            match item {
                Item::Member(member) => {
                    let content = entries.to_end(u64::MAX).await?;
                    assert_eq!(content.len() as u64, member.size);
                    all.push((member.name().into_owned(), content));
                }
                Item::Refused(error) => all.push((error.name().to_owned(), Vec::new())),
            }
        }
        Ok(all)
    })
}

#[track_caller]
fn reads_as(tar: &[u8], expected: &[(&str, &[u8])]) {
    let all = read(tar).unwrap();
    let all: Vec<(&str, &[u8])> = all.iter().map(|(name, content)| (name.as_str(), &content[..])).collect();
    assert_eq!(all, expected);
}

#[test]
fn files_are_read_and_folders_passed_over() {
    let tar =
        Tar::new().entry(b'5', "d/", b"").file("d/a", b"first").file("b", b"").entry(b'7', "c", &[7; 512]);
    reads_as(&tar.end(), &[("d/a", b"first"), ("b", b""), ("c", &[7; 512])]);
}

#[test]
fn folder_with_a_size_has_no_content() {
    let tar = Tar::new().raw(&header(b'5', b"d", 255), b"").file("d/a", b"first");
    reads_as(&tar.end(), &[("d/a", b"first")]);
}

#[test]
fn tar_without_members_is_read() {
    reads_as(&Tar::new().end(), &[]);
    reads_as(&[0; 10_240], &[]);
}

#[test]
fn compression_is_told_by_the_bytes() {
    let big = noise(1, 300_000);
    let tar = Tar::new().file("a", b"first").file("big", &big).end();
    for compression in ALL {
        let tar = compressed(&tar, compression);
        reads_as(&tar, &[("a", b"first"), ("big", &big)]);
        let entries = block_on(Entries::open(&tar[..], &Limits::default())).unwrap();
        assert_eq!(entries.packaging(), Packaging::Tar(compression));
    }
}

#[test]
fn compressed_parts_one_after_the_other_are_one_tar() {
    let tar = Tar::new().file("a", &noise(2, 5_000)).file("b", b"second").end();
    let (one, other) = tar.split_at(3_000);
    for compression in &ALL[1..] {
        let both = [compressed(one, *compression), compressed(other, *compression)].concat();
        reads_as(&both, &[("a", &noise(2, 5_000)), ("b", b"second")]);
    }
}

#[test]
fn content_that_nobody_reads_is_passed_over() {
    let tar = Tar::new().file("a", &noise(3, 200_000)).file("b", &noise(4, 1_000)).file("c", b"third").end();
    block_on(async {
        let mut entries = Entries::open(&tar[..], &Limits::default()).await.unwrap();
        let mut names = Vec::new();
        while let Some(Item::Member(member)) = entries.next().await.unwrap() {
            if member.index == 1 {
                let mut some = [0; 10];
                entries.reader().read_exact(&mut some).await.unwrap();
                assert_eq!(some, noise(4, 10)[..]);
            }
            names.push(member.name().into_owned());
        }
        assert_eq!(names, ["a", "b", "c"]);
        assert!(entries.chunk().await.unwrap().is_none());
        assert!(entries.next().await.unwrap().is_none());
    });
}

#[test]
fn gnu_long_name_is_the_name() {
    let name = "n/".repeat(300) + "end";
    reads_as(
        &Tar::new().long_name(&name).file("n/n/n", b"long").file("b", b"").end(),
        &[(&name, b"long"), ("b", b"")],
    );
}

#[test]
fn pax_path_is_the_name() {
    let name = "ä/".repeat(300) + "line\nfeed";
    let tar = Tar::new().pax(&[("mtime", "1.5"), ("path", &name), ("comment", "")]).file("short", b"long");
    reads_as(&tar.file("b", b"").end(), &[(&name, b"long"), ("b", b"")]);
}

#[test]
fn both_kinds_of_long_name_may_agree() {
    let tar = Tar::new().pax(&[("path", "a/b")]).long_name("a/b").file("short", b"1");
    reads_as(&tar.end(), &[("a/b", b"1")]);
}

#[test]
fn ustar_prefix_is_the_beginning_of_the_name() {
    let mut long = header(b'0', b"name", 1);
    long[345..351].copy_from_slice(b"prefix");
    sum(&mut long);
    // A GNU header has another field there.
    let mut gnu = long;
    gnu[257..265].copy_from_slice(b"ustar  \0");
    sum(&mut gnu);
    reads_as(&Tar::new().raw(&long, b"1").raw(&gnu, b"2").end(), &[("prefix/name", b"1"), ("name", b"2")]);
}

#[test]
fn old_headers_without_magic_are_read() {
    let old = |name: &[u8], size| {
        let mut old = header(0, name, size);
        old[257..265].fill(0);
        sum(&mut old);
        old
    };
    reads_as(&Tar::new().raw(&old(b"d/", 0), b"").raw(&old(b"d/a", 1), b"1").end(), &[("d/a", b"1")]);
}

#[test]
fn checksum_of_signed_bytes_is_right_too() {
    let mut signed = header(b'0', "ä".as_bytes(), 1);
    signed[148..156].copy_from_slice(b"        ");
    let sum: i64 = signed.iter().map(|&byte| i64::from(byte as i8)).sum();
    signed[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    reads_as(&Tar::new().raw(&signed, b"1").end(), &[("ä", b"1")]);
}

#[test]
fn size_in_base_256_is_read() {
    let mut big = header(b'0', b"a", 0);
    big[124..136].copy_from_slice(b"\x80\0\0\0\0\0\0\0\0\0\0\x05");
    sum(&mut big);
    reads_as(&Tar::new().raw(&big, b"first").file("b", b"2").end(), &[("a", b"first"), ("b", b"2")]);
}

#[test]
fn size_for_which_the_header_has_no_room_is_taken_from_pax() {
    let size = 9_u64 << 30;
    let tar = Tar::new().pax(&[("size", &size.to_string())]).file("big", b"").end();
    block_on(async {
        let mut entries = Entries::open(&tar[..], &Limits::default()).await.unwrap();
        let Some(Item::Member(member)) = entries.next().await.unwrap() else { panic!("no member") };
        assert_eq!(member.size, size);
        assert_eq!(entries.next().await.unwrap_err().name(), "truncated");
    });
}

#[test]
fn global_comment_is_passed_over() {
    let comment = record("comment", "0123456789abcdef");
    reads_as(&Tar::new().entry(b'g', "pax_global_header", &comment).file("a", b"1").end(), &[("a", b"1")]);
}

#[test]
fn label_of_a_volume_is_passed_over() {
    reads_as(&Tar::new().entry(b'V', "label", b"").file("a", b"1").end(), &[("a", b"1")]);
}

#[test]
fn long_zeros_after_the_end_are_no_matter() {
    let mut tar = Tar::new().file("a", b"1").end();
    tar.resize(1 << 20, 0);
    for compression in ALL {
        reads_as(&compressed(&tar, compression), &[("a", b"1")]);
    }
}

#[test]
fn odd_names_are_told_and_their_members_read() {
    let tar = Tar::new().file("../../etc/passwd", b"1").file("/abs", b"2").file("a\\b", b"3").end();
    reads_as(&tar, &[("../../etc/passwd", b"1"), ("/abs", b"2"), ("a\\b", b"3")]);
    block_on(async {
        let mut entries = Entries::open(&tar[..], &Limits::default()).await.unwrap();
        let Some(Item::Member(member)) = entries.next().await.unwrap() else { panic!("no member") };
        assert_eq!(member.name_oddities(), [NameOddity::ParentFolder]);
    });
}

#[test]
fn manifest_is_found_among_names_that_pass() {
    let tar = Tar::new().entry(b'5', "./", b"").file("./a", b"").file("./manifest.xml", b"<urlset/>").end();
    block_on(async {
        let mut entries = Entries::open(&tar[..], &Limits::default()).await.unwrap();
        let mut finder = ManifestFinder::default();
        while let Some(item) = entries.next().await.unwrap() {
            if let Item::Member(member) = item {
                finder.see_at(member.index, &member.name());
            }
        }
        let manifest = finder.finish().unwrap();
        assert_eq!((manifest.index, manifest.name.as_str()), (2, "./manifest.xml"));
    });
}

#[test]
fn archive_of_the_tar_crate_is_read() {
    let mut builder = ::tar::Builder::new(Vec::new());
    let long = "deep/".repeat(60) + "file";
    for (number, name) in ["a", "b/c", &long].into_iter().enumerate() {
        let content = noise(number as u64, 100_000 * number);
        let mut header = ::tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append_data(&mut header, name, &content[..]).unwrap();
    }
    let tar = builder.into_inner().unwrap();
    let b = noise(1, 100_000);
    let c = noise(2, 200_000);
    reads_as(&tar, &[("a", b""), ("b/c", &b), (&long, &c)]);
    reads_as(&compressed(&tar, Compression::Xz), &[("a", b""), ("b/c", &b), (&long, &c)]);
}
