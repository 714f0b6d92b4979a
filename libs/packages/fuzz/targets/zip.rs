//! Any bytes as a ZIP: no panic, no byte counted for two members, nothing read or inflated beyond the limits.
//! Content matches size and CRC-32, in any chunks, and equals the content that the `zip` crate reads under
//! the same name.
//!
//! The first byte of the input chooses the limits, the rest is the package.

#![no_main]

use std::collections::HashMap;
use std::io::{Cursor, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use packages::zip::{Data, Directory, MemberReader};
use packages::{Blocks, Limits, PackageError, ReadAhead, ReadAt, Scope};

/// The most bytes of all members together, so that no input takes long.
const MOST: u64 = 256 << 10;

struct Counting {
    bytes: Bytes,
    read: AtomicU64,
}

#[async_trait]
impl ReadAt for Counting {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn read_at(&self, offset: u64, length: usize) -> std::io::Result<Bytes> {
        assert!(offset + length as u64 <= self.len(), "{length} bytes at {offset} of {}", self.len());
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        self.bytes.read_at(offset, length).await
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((flags, package)) = input.split_first() else { return };
    let narrow = Limits {
        members: 3,
        name_bytes: 8,
        member_bytes: 600,
        ratio: 4,
        ratio_floor_bytes: 50,
        ..Limits::default()
    };
    let limits = if flags & 1 == 0 { Limits::default() } else { narrow };
    let limits = Limits { inflated_bytes_total: MOST, ..limits };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it needs nothing");
    let contents = runtime.block_on(read(Bytes::copy_from_slice(package), &limits));
    if let Ok(contents) = contents {
        compare(package, &contents);
    }
});

/// The verified contents, by name.
async fn read(bytes: Bytes, limits: &Limits) -> Result<HashMap<Vec<u8>, Vec<u8>>, PackageError> {
    let length = bytes.len() as u64;
    let package = Arc::new(Counting { bytes, read: AtomicU64::new(0) });
    let directory = Directory::open(&package, limits).await?;
    assert!(package.read.load(Ordering::Relaxed) <= 2 * length + 1_000);
    assert!(u64::from(directory.len()) <= limits.members);
    assert!(directory.inflated_bytes() <= MOST);
    assert!(directory.preamble() + directory.trailing() <= length);
    let stored: u64 = directory.members().map(|member| member.compressed_size).sum();
    assert!(stored <= length);
    if let Ok((member, manifest)) = directory.manifest() {
        assert_eq!(member.name(), manifest.name);
    }

    let blocks = Blocks::new(Arc::clone(&package), 37);
    let mut contents = HashMap::new();
    let mut located: Vec<Data> = Vec::new();
    for member in directory.slice(0..u32::MAX) {
        let found = directory.find(&member.name()).expect("what has a name is found by it");
        assert!(found.index == member.index || member.duplicate || member.name_oddities().len() > 0);
        let data = match directory.locate(&package, &member).await {
            Ok(data) => data,
            Err(error) => {
                assert_ne!(error.scope(), Scope::Store, "{error}");
                continue;
            }
        };
        if let Some(before) = located.last() {
            assert!(before.offset + before.stored_length <= data.offset);
        }
        located.push(data);
        assert!(data.offset + data.stored_length <= length);
        assert!(data.length <= limits.member_bytes && member.name_bytes.len() <= limits.name_bytes);
        let whole = MemberReader::new(&package, data, ReadAhead::default()).to_end(MOST).await;
        let cut = MemberReader::new(&blocks, data, ReadAhead { chunk: 13, reads: 2 }).to_end(MOST).await;
        match (whole, cut) {
            (Ok(whole), Ok(cut)) => {
                assert!(whole == cut);
                assert_eq!(whole.len() as u64, data.length);
                assert_eq!(crc32fast::hash(&whole), member.crc32);
                let from = data.length / 3;
                let to = data.length / 2;
                let part =
                    MemberReader::range(&package, data, from..to, ReadAhead::default()).to_end(MOST).await;
                assert!(part.expect("a part of what is right") == whole[from as usize..to as usize]);
                contents.insert(member.name_bytes.to_vec(), whole);
            }
            (Err(whole), Err(cut)) => assert_eq!(whole.name(), cut.name()),
            (whole, cut) => panic!("{:?} and {:?}", whole.err(), cut.err()),
        }
    }
    Ok(contents)
}

/// Both readers must find the same content under a name.
fn compare(package: &[u8], contents: &HashMap<Vec<u8>, Vec<u8>>) {
    let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(package)) else { return };
    for index in 0..archive.len() {
        let Ok(file) = archive.by_index(index) else { continue };
        let Some(ours) = contents.get(file.name_raw()) else { continue };
        let mut theirs = Vec::new();
        if file.take(MOST).read_to_end(&mut theirs).is_ok() {
            assert!(*ours == theirs, "another content");
        }
    }
}
