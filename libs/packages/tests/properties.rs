//! Properties of any bytes, and of any honest archive.

mod common;

use std::io::{Cursor, Write as _};

use ::zip::CompressionMethod;
use ::zip::write::{SimpleFileOptions, ZipWriter};
use bytes::Bytes;
use common::block_on;
use common::counting::Counting;
use common::tars::{ALL, Tar, compressed};
use common::zips::Zip;
use packages::tar::{Entries, Item};
use packages::zip::Directory;
use packages::{Limits, PackageError, ReadAhead, Scope};
use proptest::prelude::*;

const MOST: u64 = 1 << 20;

/// Names and contents.
type Contents = Vec<(Vec<u8>, Vec<u8>)>;

fn limits() -> Limits {
    Limits { inflated_bytes_total: MOST, ..Limits::default() }
}

/// Reads whatever is readable; no error may be the store's.
fn read_zip(bytes: Vec<u8>) -> Result<Contents, PackageError> {
    let length = bytes.len() as u64;
    let package = Counting::new(Bytes::from(bytes));
    block_on(async {
        let directory = Directory::open(&package, &limits()).await?;
        assert!(u64::from(directory.len()) * 46 <= length, "every member has a record");
        // The tail, the directory once more, and a few records.
        assert!(package.bytes() <= 2 * length + 1_000, "{} of {length}", package.bytes());
        let mut all = Vec::new();
        let mut stored = 0;
        for member in directory.members() {
            assert!(member.header_offset + member.compressed_size <= length);
            stored += member.compressed_size;
            let _ = (member.name(), member.name_oddities(), directory.find(&member.name()).unwrap());
            let read = directory.read(&package, &member, ReadAhead::default()).await;
            let content = match read {
                Ok((_, reader)) => reader.to_end(MOST).await,
                Err(error) => Err(error),
            };
            match content {
                Ok(content) => {
                    assert_eq!(content.len() as u64, member.size);
                    assert_eq!(crc32fast::hash(&content), member.crc32);
                    all.push((member.name_bytes.to_vec(), content));
                }
                Err(error) => assert_ne!(error.scope(), Scope::Store, "{error}"),
            }
        }
        assert!(stored <= length, "no byte is counted twice");
        let _ = directory.manifest();
        Ok(all)
    })
}

fn read_tar(bytes: &[u8]) -> Result<Contents, PackageError> {
    block_on(async {
        let mut entries = Entries::open(bytes, &limits()).await?;
        let mut all = Vec::new();
        while let Some(item) = entries.next().await? {
            match item {
                Item::Member(member) => {
                    let content = entries.to_end(MOST).await?;
                    assert_eq!(content.len() as u64, member.size);
                    all.push((member.name_bytes, content));
                }
                Item::Refused(error) => assert_eq!(error.scope(), Scope::Member, "{error}"),
            }
        }
        Ok(all)
    })
}

fn contents() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let content = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..2_000),
        (any::<u8>(), 0..5_000_usize).prop_map(|(byte, length)| vec![byte; length]),
    ];
    proptest::collection::btree_map("[a-zä./\\\\]{1,30}[a-z]", content, 0..8)
        .prop_map(|map| map.into_iter().collect())
}

/// Changes some bytes of an archive.
fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    proptest::collection::vec((any::<usize>(), any::<u8>()), 1..5)
}

fn change(bytes: &mut [u8], changes: &[(usize, u8)]) {
    let length = bytes.len();
    changes.iter().for_each(|&(at, byte)| bytes[at % length] = byte);
}

fn build_zip(contents: &[(String, Vec<u8>)], deflate: bool) -> Zip {
    contents.iter().fold(Zip::new(), |zip, (name, content)| {
        if deflate { zip.deflated(name, content) } else { zip.stored(name, content) }
    })
}

fn build_tar(contents: &[(String, Vec<u8>)]) -> Vec<u8> {
    contents.iter().fold(Tar::new(), |tar, (name, content)| tar.long_name(name).file("x", content)).end()
}

fn expected(contents: &[(String, Vec<u8>)]) -> Contents {
    contents.iter().map(|(name, content)| (name.clone().into_bytes(), content.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..3_000)) {
        let _ = read_zip(bytes.clone());
        let _ = read_tar(&bytes);
    }

    #[test]
    fn any_honest_zip_is_read(contents in contents(), streamed in any::<bool>()) {
        let bytes = if streamed { write_streamed(&contents) } else { write(&contents) };
        prop_assert_eq!(read_zip(bytes).unwrap(), expected(&contents));
    }

    #[test]
    fn any_changed_zip_is_refused_or_read(
        contents in contents(), deflate in any::<bool>(), zip64 in any::<bool>(), changes in changes(),
    ) {
        let mut bytes = build_zip(&contents, deflate).with(|zip| zip.zip64 = zip64).build();
        prop_assert_eq!(read_zip(bytes.clone()).unwrap(), expected(&contents));
        change(&mut bytes, &changes);
        let _ = read_zip(bytes);
    }

    #[test]
    fn any_honest_tar_is_read(contents in contents()) {
        let tar = build_tar(&contents);
        for compression in ALL {
            prop_assert_eq!(read_tar(&compressed(&tar, compression)).unwrap(), expected(&contents));
        }
    }

    #[test]
    fn any_changed_tar_is_refused_or_read(contents in contents(), changes in changes(), inside in any::<bool>()) {
        let mut tar = build_tar(&contents);
        if inside {
            change(&mut tar, &changes);
        }
        for compression in ALL {
            let mut bytes = compressed(&tar, compression);
            if !inside {
                change(&mut bytes, &changes);
            }
            let _ = read_tar(&bytes);
        }
    }
}

fn write(contents: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (number, (name, content)) in contents.iter().enumerate() {
        let method = [CompressionMethod::Stored, CompressionMethod::Deflated][number % 2];
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(name.as_str(), options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// With sizes and CRC-32 after the data.
fn write_streamed(contents: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = ZipWriter::new_stream(Vec::new());
    for (name, content) in contents {
        writer.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}
