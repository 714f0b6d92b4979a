//! ZIPs of honest tools, and harmless oddities.

mod common;

use std::io::{Cursor, Write as _};
use std::sync::Arc;

use ::zip::CompressionMethod;
use ::zip::write::{SimpleFileOptions, ZipWriter};
use bytes::Bytes;
use common::counting::{Counting, Sparse};
use common::zips::{self, Zip, zip64_field};
use common::{block_on, noise};
use packages::zip::{Data, Directory, MemberReader, Method};
use packages::{Blocks, Limits, NameOddity, OddPlace, PackageError, PathMatch, ReadAhead, ReadAt};
use tokio::io::AsyncReadExt as _;

fn open(bytes: Vec<u8>) -> Directory {
    block_on(Directory::open(&Bytes::from(bytes), &Limits::default())).unwrap()
}

async fn read_all(source: &Bytes) -> Result<Vec<(String, Vec<u8>)>, PackageError> {
    let directory = Directory::open(source, &Limits::default()).await?;
    let mut all = Vec::new();
    for member in directory.members() {
        let (_, reader) = directory.read(source, &member, ReadAhead::default()).await?;
        all.push((member.name().into_owned(), reader.to_end(u64::MAX).await?));
    }
    Ok(all)
}

#[track_caller]
fn reads_as(zip: Vec<u8>, expected: &[(&str, &[u8])]) {
    let all = block_on(read_all(&Bytes::from(zip))).unwrap();
    let all: Vec<(&str, &[u8])> = all.iter().map(|(name, content)| (name.as_str(), &content[..])).collect();
    assert_eq!(all, expected);
}

fn two() -> Zip {
    Zip::new().stored("a", b"first").deflated("b", b"second second second")
}

const TWO: &[(&str, &[u8])] = &[("a", b"first"), ("b", b"second second second")];

#[test]
fn stored_and_deflated_members_are_read() {
    reads_as(two().build(), TWO);
}

#[test]
fn member_is_found_and_read_by_its_claim_within_its_reach() {
    for zip in [two(), two().with(|zip| zip.zip64 = true)] {
        let source = Counting::new(Bytes::from(zip.build()));
        let directory = block_on(Directory::open(&source, &Limits::default())).unwrap();
        for member in directory.members() {
            let before = source.reads();
            let claim = directory.claim(&member).unwrap();
            assert_eq!(source.reads(), before);
            let data = block_on(claim.locate(&source, member.name_bytes)).unwrap();
            assert_eq!(data, block_on(directory.locate(&source, &member)).unwrap());
            let reach = claim.reach(member.name_bytes.len());
            assert_eq!(reach.start, member.header_offset);
            assert!(data.offset + data.stored_length <= reach.end && reach.end <= claim.end, "{claim:?}");
        }
    }
}

#[test]
fn extra_fields_longer_than_a_claim_reaches_for_are_read_all_the_same() {
    let zip = Zip::new().stored("a", b"first").but(|part| part.local.extra = vec![0; 5_000]).stored("b", b"");
    let zip = Bytes::from(zip.build());
    let directory = open(zip.to_vec());
    let member = directory.find("a").unwrap();
    let claim = directory.claim(&member).unwrap();
    let data = block_on(claim.locate(&zip, member.name_bytes)).unwrap();
    assert!(data.offset > claim.reach(1).end);
    let reader = MemberReader::new(zip, data, ReadAhead::default());
    assert_eq!(block_on(reader.to_end(5)).unwrap(), b"first");
}

#[test]
fn empty_archive_has_no_members() {
    let directory = open(Zip::new().build());
    assert!(directory.is_empty());
    assert_eq!(directory.manifest().unwrap_err().name(), "no-manifest");
    assert!(open(Zip::new().with(|zip| zip.zip64 = true).build()).is_empty());
}

#[test]
fn empty_members_are_read() {
    reads_as(Zip::new().stored("a", b"").deflated("b", b"").build(), &[("a", b""), ("b", b"")]);
}

#[test]
fn longest_comment_is_passed_over() {
    reads_as(two().with(|zip| zip.comment = vec![b'c'; 65_535]).build(), TWO);
}

#[test]
fn comment_that_looks_like_half_an_end_is_a_comment() {
    reads_as(
        two().with(|zip| zip.comment = b"PK\x05\x06 is how archives end, and PK\x06\x07".to_vec()).build(),
        TWO,
    );
    let zeros = [b"PK\x05\x06".as_slice(), &[0; 40]].concat();
    reads_as(two().with(|zip| zip.comment = zeros).build(), TWO);
}

#[test]
fn line_feed_after_the_end_is_told_and_passed_over() {
    let zip = two().with(|zip| zip.trailing = b"\r\n".to_vec()).build();
    assert_eq!(open(zip.clone()).trailing(), 2);
    reads_as(zip, TWO);
}

#[test]
fn program_in_front_is_told_and_passed_over() {
    let zip = two().with(|zip| zip.preamble = b"MZ a program".to_vec());
    assert_eq!(open(zip.build()).preamble(), 12);
    reads_as(zip.build(), TWO);
    reads_as(zip.with(|zip| zip.zip64 = true).build(), TWO);
}

#[test]
fn program_in_front_with_adjusted_offsets_is_passed_over() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.set_flush_on_finish_file(false);
    let mut file = Cursor::new(b"#!/bin/sh\n".to_vec());
    file.set_position(10);
    let mut writer = ZipWriter::new(file);
    writer.start_file("a", SimpleFileOptions::default()).unwrap();
    writer.write_all(b"first").unwrap();
    let zip = writer.finish().unwrap().into_inner();
    assert_eq!(open(zip.clone()).preamble(), 10);
    reads_as(zip, &[("a", b"first")]);
}

#[test]
fn bytes_between_members_and_directory_are_passed_over() {
    reads_as(two().with(|zip| zip.gap = vec![7; 100]).build(), TWO);
}

#[test]
fn zip64_end_is_followed() {
    reads_as(two().with(|zip| zip.zip64 = true).build(), TWO);
}

#[test]
fn sizes_in_zip64_fields_are_read() {
    let zip = Zip::new().stored("a", b"first").but(|part| {
        part.local.size = u32::MAX;
        part.local.compressed = u32::MAX;
        part.local.extra = zip64_field(&[5, 5]);
        part.central.size = u32::MAX;
        part.central.compressed = u32::MAX;
        part.offset = Some(u32::MAX);
        part.central.extra = [vec![0x55, 0x54, 1, 0, 0], zip64_field(&[5, 5, 0])].concat();
    });
    reads_as(zip.build(), &[("a", b"first")]);
}

#[test]
fn sizes_and_crc_after_the_data_are_taken_from_the_directory() {
    let mut zip = Zip::new().deflated("a", b"first first").but(|part| {
        part.local.flags = 1 << 3;
        part.central.flags = 1 << 3;
        part.local.crc32 = 0;
        part.local.size = 0;
        part.local.compressed = 0;
    });
    let central = zip.parts[0].central.clone();
    let mut descriptor = b"PK\x07\x08".to_vec();
    for number in [central.crc32, central.compressed, central.size] {
        descriptor.extend(number.to_le_bytes());
    }
    zip.parts[0].data.extend(descriptor);
    reads_as(zip.stored("b", b"second").build(), &[("a", b"first first"), ("b", b"second")]);
}

#[test]
fn long_extra_field_before_the_data_is_passed_over() {
    let zip = two().but(|part| part.local.extra = vec![0; 5_000]);
    reads_as(zip.stored("c", b"third").build(), &[TWO[0], TWO[1], ("c", b"third")]);
}

#[test]
fn more_members_than_an_old_end_record_can_count_are_read() {
    let mut zip = Zip::new();
    for number in 0..65_536 + 3 {
        zip = zip.stored(format!("{number}"), b"");
    }
    // Without ZIP64, the number wraps around to 3.
    let directory = open(zip.build());
    assert_eq!(directory.len(), 65_539);
    assert_eq!(directory.find("65538").unwrap().index, 65_538);
}

#[test]
fn members_are_found_by_exactly_their_name() {
    let directory = open(two().stored("/c", b"").stored("d/e", b"").stored("../f", b"").build());
    assert_eq!(directory.find("b").unwrap().index, 1);
    assert!(directory.find("B").is_none());
    assert!(directory.find("").is_none());
    let path = |path| directory.find_path(path).map(|(member, how)| (member.name().into_owned(), how));
    assert_eq!(path("/a"), Some(("a".to_owned(), PathMatch::LeadingSlash)));
    assert_eq!(path("a"), Some(("a".to_owned(), PathMatch::Exact)));
    assert_eq!(path("/c"), Some(("/c".to_owned(), PathMatch::Exact)));
    assert_eq!(path("c"), Some(("/c".to_owned(), PathMatch::LeadingSlash)));
    assert_eq!(path("../f"), Some(("../f".to_owned(), PathMatch::Exact)));
    for other in ["d/../a", "./a", "d\\e", "//a", "f", "D/e"] {
        assert_eq!(path(other), None, "{other}");
    }
}

#[test]
fn odd_names_are_told_and_their_members_read() {
    let zip = Zip::new().stored("../../etc/passwd", b"1").stored("/abs", b"2").stored("a\\b", b"3").build();
    let directory = open(zip.clone());
    let oddities: Vec<_> = directory.members().map(|member| member.name_oddities()).collect();
    assert_eq!(oddities, [[NameOddity::ParentFolder], [NameOddity::Absolute], [NameOddity::Backslash]]);
    reads_as(zip, &[("../../etc/passwd", b"1"), ("/abs", b"2"), ("a\\b", b"3")]);
}

#[test]
fn names_in_utf8_and_in_code_page_437_are_found() {
    let directory =
        open(Zip::new().stored("bär", b"").stored(b"b\x84r.txt", b"").stored("日本", b"").build());
    assert_eq!(directory.find("bär").unwrap().index, 0);
    assert_eq!(directory.find("bär.txt").unwrap().index, 1);
    assert_eq!(directory.find("日本").unwrap().index, 2);
    assert_eq!(directory.member(1).name_oddities(), [NameOddity::NotUtf8]);
}

#[test]
fn manifest_is_found_where_it_should_be_and_where_it_is() {
    let top = open(Zip::new().stored("a/manifest.xml", b"").stored("manifest.xml", b"").build());
    let (member, manifest) = top.manifest().unwrap();
    assert_eq!((member.index, manifest.odd), (1, None));
    let deep = open(Zip::new().stored("a/", b"").stored("a/Manifest.xml", b"").build());
    let (member, manifest) = deep.manifest().unwrap();
    assert_eq!(member.index, 1);
    assert_eq!(manifest.odd, Some(OddPlace::Folder { prefix: "a/".to_owned() }));
}

#[test]
fn archive_of_the_zip_crate_is_read() {
    let contents = [noise(1, 3_000_000), vec![b'x'; 300_000], noise(2, 10), Vec::new()];
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (number, content) in contents.iter().enumerate() {
        let methods = [CompressionMethod::Deflated, CompressionMethod::Stored];
        let options =
            SimpleFileOptions::default().compression_method(methods[number / 2]).large_file(number % 2 == 1);
        writer.start_file(format!("m/{number}"), options).unwrap();
        writer.write_all(content).unwrap();
    }
    let zip = writer.finish().unwrap().into_inner();
    let all = block_on(read_all(&Bytes::from(zip))).unwrap();
    assert!(all.iter().map(|(_, content)| content).eq(&contents));
}

#[test]
fn streamed_archive_of_the_zip_crate_is_read() {
    let mut writer = ZipWriter::new_stream(Vec::new());
    for name in ["a", "b"] {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(&noise(3, 100_000)).unwrap();
    }
    let zip = writer.finish().unwrap().into_inner();
    let content = noise(3, 100_000);
    reads_as(zip, &[("a", &content), ("b", &content)]);
}

#[test]
fn recorded_data_is_read_without_a_directory() {
    let zip = Bytes::from(two().build());
    let directory = open(zip.to_vec());
    let data = block_on(directory.locate(&zip, &directory.member(1))).unwrap();
    assert_eq!((data.method, data.length), (Method::Deflated, 20));
    for crc32 in [data.crc32, None] {
        let reader = MemberReader::new(zip.clone(), Data { crc32, ..data }, ReadAhead::default());
        assert_eq!(block_on(reader.to_end(20)).unwrap(), b"second second second");
    }
    let reader = MemberReader::new(zip.clone(), data, ReadAhead::default());
    assert_eq!(block_on(reader.to_end(19)).unwrap_err().name(), "member-too-large");
}

#[test]
fn parts_of_members_are_the_same_bytes() {
    let content = noise(4, 500).repeat(700);
    let zip = Bytes::from(Zip::new().stored("s", &content).deflated("d", &content).build());
    let directory = open(zip.to_vec());
    let length = content.len() as u64;
    let parts =
        [0..0, 0..1, 5..70_000, 65_535..65_537, 0..length, 1..length, length - 1..length, length..length];
    for member in directory.members() {
        let data = block_on(directory.locate(&zip, &member)).unwrap();
        for part in parts.clone() {
            let reader = MemberReader::range(&zip, data, part.clone(), ReadAhead { chunk: 1_000, reads: 3 });
            let read = block_on(reader.to_end(u64::MAX)).unwrap();
            assert!(read == content[part.start as usize..part.end as usize], "{part:?} of {member:?}");
        }
        let behind = MemberReader::range(&zip, data, length - 1..length + 5, ReadAhead::default());
        assert_eq!(block_on(behind.to_end(u64::MAX)).unwrap(), content[content.len() - 1..]);
        let reversed = MemberReader::range(&zip, data, length + 5..3, ReadAhead::default());
        assert_eq!(block_on(reversed.to_end(u64::MAX)).unwrap(), b"");
    }
}

#[test]
fn part_of_a_stored_member_costs_only_its_bytes() {
    let content = noise(5, 1_000_000);
    let zip = Counting::new(Bytes::from(Zip::new().stored("s", &content).build()));
    let data =
        Data { offset: 31, stored_length: 1_000_000, method: Method::Stored, length: 1_000_000, crc32: None };
    let reader = MemberReader::range(&zip, data, 500_000..500_100, ReadAhead::default());
    assert_eq!(block_on(reader.to_end(u64::MAX)).unwrap(), content[500_000..500_100]);
    assert_eq!((zip.reads(), zip.bytes()), (1, 100));
}

#[test]
fn member_is_an_async_read_whose_errors_are_found_inside() {
    let zip = |bad: u32| {
        let content = noise(6, 200_000);
        Bytes::from(Zip::new().deflated("a", &content).both(|fields| fields.crc32 ^= bad).build())
    };
    let read = |zip: Bytes| {
        block_on(async {
            let directory = Directory::open(&zip, &Limits::default()).await.unwrap();
            let member = directory.member(0);
            let (_, reader) = directory.read(zip.clone(), &member, ReadAhead::default()).await.unwrap();
            let mut content = Vec::new();
            reader.into_async_read().read_to_end(&mut content).await.map(|_| content)
        })
    };
    assert!(read(zip(0)).unwrap() == noise(6, 200_000));
    let error = PackageError::from_io(read(zip(1)).unwrap_err());
    assert_eq!(error.name(), "wrong-crc", "{error}");
}

#[test]
fn member_beyond_four_gibibytes_is_found_and_read_in_bounded_pieces() {
    const GAP: u64 = 5 << 30;
    let small = Zip::new().stored("small", b"small");
    let mut far = small.clone();
    far.parts[0].offset = Some(u32::MAX);
    far.parts[0].central.extra = zip64_field(&[GAP]);
    far.zip64 = true;
    // The header and data stand at 5 GiB, the directory follows them.
    let bytes = far.build_with(|_, end| {
        end.directory += GAP;
        end.locator += GAP;
    });
    let length = GAP + bytes.len() as u64;
    let package = Counting::new(Sparse { length, parts: Arc::new(vec![(GAP, bytes.into())]) });
    block_on(async {
        let directory = Directory::open(&package, &Limits::default()).await.unwrap();
        let member = directory.find("small").unwrap();
        assert_eq!((member.header_offset, directory.preamble()), (GAP, GAP));
        let (_, reader) = directory.read(&package, &member, ReadAhead::default()).await.unwrap();
        assert_eq!(reader.to_end(10).await.unwrap(), b"small");
    });
    assert!(package.bytes() < 1 << 20, "{} bytes", package.bytes());
}

#[test]
fn member_of_five_gibibytes_is_read_with_a_bounded_number_of_bytes_under_way() {
    let length: u64 = 5 << 30;
    let package = Counting::new(Sparse { length: length + 100, parts: Arc::default() });
    let ahead = ReadAhead { chunk: 64 << 10, reads: 4 };
    let data = Data { offset: 50, stored_length: length, method: Method::Stored, length, crc32: None };
    let mut reader = MemberReader::new(&package, data, ahead);
    block_on(async {
        for _ in 0..100 {
            assert_eq!(reader.chunk().await.unwrap().unwrap().len(), 64 << 10);
        }
    });
    assert!(package.bytes() <= (100 + 4) * (64 << 10), "{} bytes", package.bytes());
    assert_eq!(package.longest(), 64 << 10);
}

#[test]
fn small_members_read_in_their_order_through_blocks_cost_one_read_a_block() {
    let mut zip = Zip::new();
    for number in 0..2_000_u64 {
        zip = zip.stored(format!("{number:04}"), &noise(number, 500));
    }
    let bytes = Bytes::from(zip.build());
    let length = ReadAt::len(&bytes);
    let package = Arc::new(Counting::new(bytes));
    block_on(async {
        let directory = Directory::open(&package, &Limits::default()).await.unwrap();
        let opening = package.reads();
        let blocks = Blocks::new(Arc::clone(&package), 64 << 10);
        let mut seen = 0;
        for member in directory.slice(0..u32::MAX) {
            let (_, reader) = directory.read(&blocks, &member, ReadAhead::default()).await.unwrap();
            assert_eq!(reader.to_end(500).await.unwrap(), noise(seen, 500));
            seen += 1;
        }
        assert_eq!(seen, 2_000);
        assert!(package.reads() - opening <= length.div_ceil(64 << 10), "{} reads", package.reads());
        assert!(opening <= 3, "{opening}");
    });
}

#[test]
fn blocks_answer_like_what_they_read() {
    let bytes = Bytes::from(noise(7, 10_000));
    let blocks = Blocks::new(bytes.clone(), 64);
    block_on(async {
        for (offset, length) in
            [(0, 1), (63, 2), (0, 64), (10, 63), (100, 500), (9_999, 1), (10_000, 0), (5_000, 40)]
        {
            let expected = bytes.read_at(offset, length).await.unwrap();
            assert_eq!(blocks.read_at(offset, length).await.unwrap(), expected, "{length} at {offset}");
        }
        assert!(blocks.read_at(9_999, 2).await.is_err());
        assert!(blocks.read_at(u64::MAX, 2).await.is_err());
    });
}

#[test]
fn blocks_of_a_part_read_nothing_outside_it_and_still_answer_for_all() {
    let bytes = Bytes::from(noise(8, 10_000));
    let package = Arc::new(Counting::new(bytes.clone()));
    let blocks = Blocks::within(Arc::clone(&package), 1_000..1_150, 64);
    block_on(async {
        let mut at = 1_000;
        while at < 1_150 {
            let length = (1_150 - at).min(7) as usize;
            let expected = bytes.read_at(at, length).await.unwrap();
            assert_eq!(blocks.read_at(at, length).await.unwrap(), expected, "{length} at {at}");
            at += length as u64;
        }
        assert_eq!((package.reads(), package.bytes()), (3, 150));
        for (offset, length) in [(0, 3), (998, 3), (1_149, 2), (9_999, 1)] {
            let expected = bytes.read_at(offset, length).await.unwrap();
            assert_eq!(blocks.read_at(offset, length).await.unwrap(), expected, "{length} at {offset}");
        }
        assert_eq!(package.reads(), 7);
        assert!(blocks.read_at(9_999, 2).await.is_err());
    });
}

#[test]
fn slices_of_a_package_are_all_its_members_once_in_their_order() {
    let mut zip = zips::Zip::new();
    for number in 0..10 {
        zip = zip.stored(format!("{number}"), b"");
    }
    let directory = open(zip.build());
    let names = |ranks| directory.slice(ranks).map(|member| member.name().into_owned()).collect::<Vec<_>>();
    let all = [names(0..4), names(4..8), names(8..12), names(12..20)].concat();
    assert_eq!(all, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    assert_eq!(directory.slice(8..12).len(), 2);
}
