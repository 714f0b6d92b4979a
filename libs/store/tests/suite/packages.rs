//! Packages of dumps, and bitstreams that are members of a package.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use model::PackageId;

use super::*;

/// An archive of members, some of them deflated, with unrelated bytes between them.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    members: Vec<(Span, Vec<u8>)>,
}

impl Archive {
    pub(super) fn add(&mut self, bytes: Vec<u8>, method: Method) {
        self.bytes.extend_from_slice(b"a header");
        let offset = self.bytes.len() as u64;
        match method {
            Method::Stored => self.bytes.extend_from_slice(&bytes),
            Method::Deflated => {
                let mut deflate = DeflateEncoder::new(&mut self.bytes, Compression::fast());
                deflate.write_all(&bytes).unwrap();
                deflate.finish().unwrap();
            }
        }
        self.members.push((Span { offset, stored_length: self.bytes.len() as u64 - offset, method }, bytes));
    }

    /// Stores it, and returns the whole and its members.
    pub(super) async fn store(self, store: &Store) -> (Location, Vec<(Bitstream, Vec<u8>)>) {
        let package = PackageId::fresh();
        let whole = Span { offset: 0, stored_length: self.bytes.len() as u64, method: Method::Stored };
        let whole = at(package, whole);
        overwrite(store, &whole, &self.bytes).await;
        let members =
            self.members.into_iter().map(|(span, bytes)| (bitstream(at(package, span), &bytes), bytes));
        (whole, members.collect())
    }
}

fn at(package: PackageId, span: Span) -> Location {
    let Span { offset, stored_length, method } = span;
    Location::Package { source: source(), package, offset, stored_length, method }
}

/// Bytes that deflate well, and are different everywhere all the same.
fn text(length: usize) -> Vec<u8> {
    (0..).flat_map(|n: u32| format!("line {n}\n").into_bytes()).take(length).collect()
}

async fn read(store: &Store, stored: &Bitstream) -> Result<Vec<u8>, StoreError> {
    let pieces: Vec<Bytes> =
        store.read(&stored.location, stored.computed.length()).await?.try_collect().await?;
    Ok(pieces.concat())
}

async fn open(store: &Store, stored: &Bitstream) -> Result<Vec<u8>, StoreError> {
    let pieces: Vec<Bytes> = store.open_verified(stored).await?.try_collect().await?;
    Ok(pieces.concat())
}

pub(crate) async fn members_of_a_package_are_read_in_every_way(store: &Store) {
    let mut archive = Archive::default();
    for method in [Method::Stored, Method::Deflated] {
        for bytes in [body(5), vec![], text(3_000), text(2 * MIB + 3), body(MIB + 1)] {
            archive.add(bytes, method);
        }
    }
    let (_, members) = archive.store(store).await;
    for (stored, bytes) in &members {
        let length = bytes.len() as u64;
        assert!(store.exists(&stored.location, length).await.unwrap());
        assert!(store.read_verified(stored).await.unwrap() == *bytes);
        assert!(read(store, stored).await.unwrap() == *bytes);
        assert!(open(store, stored).await.unwrap() == *bytes);
        for (from, to) in [(0, length), (length / 2, length / 2 + 2), (length.saturating_sub(7), length)] {
            let from = from.min(length);
            let to = to.min(length);
            let part = store.read_range(&stored.location, from..to).await.unwrap();
            assert!(part == bytes[from as usize..to as usize], "{from}..{to} of {length}");
        }
        let beyond = store.read_range(&stored.location, length / 2..length + 1).await.unwrap_err();
        assert!(matches!(beyond, StoreError::Damaged { .. }), "{beyond}");
    }
    let batch = store.read_batch(&members.iter().map(|(stored, _)| stored).collect::<Vec<_>>()).await;
    for (read, (_, bytes)) in batch.into_iter().zip(&members) {
        assert!(read.unwrap() == *bytes);
    }
    assert_eq!(*store.trouble().borrow(), None);
}

pub(crate) async fn a_whole_package_is_read_in_ranges(store: &Store) {
    let mut archive = Archive::default();
    archive.add(body(20_000), Method::Stored);
    let bytes = archive.bytes.clone();
    let (whole, _) = archive.store(store).await;
    assert!(store.read_verified(&bitstream(whole.clone(), &bytes)).await.unwrap() == bytes);
    let reader = store.range_reader(&whole, bytes.len() as u64);
    assert_eq!((reader.len(), reader.is_empty()), (bytes.len() as u64, false));
    assert_eq!(reader.read_at(3, 10).await.unwrap(), bytes[3..13]);
    assert_eq!(reader.read_at(reader.len() - 1, 1).await.unwrap(), bytes[bytes.len() - 1..]);
    assert_eq!(reader.read_at(reader.len(), 0).await.unwrap(), "");
    for (offset, length) in [(reader.len(), 1), (u64::MAX, 2), (0, bytes.len() + 1)] {
        let error = reader.read_at(offset, length).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
    let (empty, _) = Archive::default().store(store).await;
    assert_eq!(store.read_verified(&bitstream(empty.clone(), b"")).await.unwrap(), "");
    assert!(store.exists(&empty, 0).await.unwrap());
    let gone = at(PackageId::fresh(), Span { offset: 0, stored_length: 0, method: Method::Stored });
    let error = store.read_verified(&bitstream(gone, b"")).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
}

pub(crate) async fn the_end_of_what_lies_beside_packages_comes_with_its_length(store: &Store) {
    let source = "s".parse().unwrap();
    let package = PackageId::fresh();
    let mut spool = store.spool(Hasher::new([])).await.unwrap();
    spool.append("0123456789".into()).await.unwrap();
    store.put_beside_packages(&source, package, spool.finish().await.unwrap()).await.unwrap();
    for (bytes, expected) in [(3, "789"), (10, "0123456789"), (11, "0123456789")] {
        let (length, tail) = store.tail_beside_packages(&source, package, bytes).await.unwrap().unwrap();
        assert_eq!((length, &tail[..]), (10, expected.as_bytes()), "{bytes}");
    }
    assert_eq!(store.tail_beside_packages(&source, PackageId::fresh(), 3).await.unwrap(), None);
}

pub(crate) async fn a_deflated_member_that_is_not_what_it_was_is_never_whole(store: &Store) {
    let mut archive = Archive::default();
    // More than the memory, if it were inflated to its end.
    archive.add(vec![b'0'; 64 * MIB], Method::Deflated);
    archive.add(text(3_000), Method::Deflated);
    archive.add(text(3_000), Method::Stored);
    let (_, members) = archive.store(store).await;
    let [(large, _), (stored, bytes), (plain, _)] = &members[..] else { panic!() };
    let Location::Package { package, .. } = stored.location else { panic!() };
    let span = stored.location.span().unwrap();

    let short = Span { stored_length: span.stored_length - 1, ..span };
    let no_deflate = Span { method: Method::Deflated, ..plain.location.span().unwrap() };
    let wrong = [
        // It inflates to more than expected: only one extra byte is inflated.
        (bitstream(large.location.clone(), b"0000000000"), "11 bytes"),
        (bitstream(stored.location.clone(), &bytes[..2_999]), "3000 bytes"),
        // It inflates to less.
        (bitstream(stored.location.clone(), &[&bytes[..], b"!"].concat()), "3000 bytes"),
        // It inflates to other bytes.
        (bitstream(stored.location.clone(), &body(3_000)), "sha-256"),
        // Its end is missing, all of it is missing, and it is not deflated data.
        (bitstream(at(package, short), bytes), "an end of its deflated bytes after"),
        (bitstream(at(package, Span { stored_length: 0, ..span }), bytes), "after 0"),
        (bitstream(at(package, no_deflate), bytes), "others"),
        // It is behind the end.
        (bitstream(at(package, Span { offset: 1 << 30, ..span }), bytes), "an end at"),
    ];

    for (stored, says) in &wrong {
        for error in [store.read_verified(stored).await.unwrap_err(), open(store, stored).await.unwrap_err()]
        {
            assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
            assert!(error.to_string().contains(says), "{error} does not say {says:?}");
        }
    }
    for (stored, _) in wrong.iter().filter(|(_, says)| *says != "sha-256") {
        let error = read(store, stored).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
    let batch = store.read_batch(&wrong.iter().map(|(stored, _)| stored).collect::<Vec<_>>()).await;
    assert!(batch.iter().all(|read| matches!(read, Err(StoreError::Damaged { .. }))), "{batch:?}");
}
