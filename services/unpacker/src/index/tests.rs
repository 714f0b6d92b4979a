//! A written index is read back, slice by slice.

use fixity::Hasher;
use model::{PackageId, SourceId};
use store::{Store, StoreError};

use super::read::TAIL;
use super::writer::{LONG_WORK, SLICE_BYTES};
use super::*;

fn line(number: u64, length: u64, loc: String) -> Line {
    let entry = ManifestEntry {
        loc,
        lastmod: None,
        metadata: Default::default(),
        links: None,
        line: number,
        column: 1,
        earlier: false,
    };
    let name = if number.is_multiple_of(2) { "a".as_bytes() } else { b"\xff" };
    let method = zip::Method::Deflated;
    let claim = Claim { header_offset: number, end: number, stored_length: 1, method, length, crc32: 7 };
    let place = MemberLocation::new(claim, name);
    assert_eq!((place.claim(), place.name.bytes()), (claim, name));
    Line { entry, found: Found::Member(place) }
}

async fn written(lines: &[Line]) -> (Store, SourceId, Option<(PackageId, u32)>) {
    let store = Store::in_memory();
    let source = "s".parse().unwrap();
    let mut writer = Writer::new(&store).await.unwrap();
    for line in lines {
        writer.add(line).await.unwrap();
    }
    let index = writer.finish(&store, &source).await.unwrap();
    (store, source, index)
}

/// Number of entries of each slice. In the order of their numbers they have the given lines.
async fn slices_of(lines: &[Line]) -> Vec<usize> {
    let (lengths, all) = read_all(lines).await;
    assert_eq!(all, lines);
    lengths
}

async fn read_all(lines: &[Line]) -> (Vec<usize>, Vec<Line>) {
    let (store, source, index) = written(lines).await;
    let (index, slices) = index.unwrap();
    let mut all = Vec::new();
    let mut lengths = Vec::new();
    let remembered = Remembered::default();
    for number in 0..slices {
        let slice = read(&store, &source, index, number, &remembered).await.unwrap();
        lengths.push(slice.len());
        all.extend(slice);
    }
    let behind = read(&store, &source, index, slices, &remembered).await;
    assert!(matches!(behind, Err(StoreError::Damaged { .. })), "{behind:?}");
    (lengths, all)
}

#[tokio::test]
async fn slices_are_cut_by_entries_and_read_one_by_one() {
    let lines: Vec<_> = (0..600).map(|n| line(n, 1, format!("http://e.org/{n}"))).collect();
    assert_eq!(slices_of(&lines).await, [256, 256, 88]);
}

#[tokio::test]
async fn slices_are_cut_by_what_their_members_inflate_to() {
    let lengths = [SLICE_BYTES / 2, SLICE_BYTES / 2, 1, SLICE_BYTES + 1, 0];
    let lines: Vec<_> =
        (0..).zip(lengths).map(|(n, length)| line(n, length, format!("http://e.org/{n}"))).collect();
    assert_eq!(slices_of(&lines).await, [2, 1, 1, 1]);
}

#[tokio::test]
async fn slices_that_take_long_have_the_first_numbers_and_others_those_of_their_order() {
    let long = LONG_WORK / INFLATED_BYTE;
    let lengths = [SLICE_BYTES, 1, long, SLICE_BYTES, 2 * long, long - 1, long];
    let mut lines: Vec<_> =
        (0..).zip(lengths).map(|(n, length)| line(n, length, format!("http://e.org/{n}"))).collect();
    // Only hashed, it takes a quarter of the time.
    let Found::Member(place) = &mut lines[6].found else { panic!("a member") };
    place.method = Method::Stored;
    let (slices, all) = read_all(&lines).await;
    assert_eq!(slices, [1; 7]);
    let order: Vec<u64> = all.iter().map(|line| line.entry.line).collect();
    assert_eq!(order, [4, 2, 0, 1, 3, 5, 6]);
}

#[tokio::test]
async fn slices_are_cut_by_the_bytes_of_their_outcome() {
    let lines: Vec<_> = (0..60).map(|n| line(n, 1, "x".repeat(30_000))).collect();
    let slices = slices_of(&lines).await;
    assert_eq!(slices.iter().sum::<usize>(), 60);
    assert!(slices.iter().all(|&entries| entries * 2 * 30_000 < bus::MAX_PAYLOAD), "{slices:?}");
}

#[tokio::test]
async fn a_table_that_is_longer_than_what_is_read_of_it_at_once_is_read_row_by_row() {
    let slices = (TAIL / ROW) as usize + 3;
    let lines: Vec<_> = (0..slices as u64).map(|n| line(n, SLICE_BYTES, format!("x:{n}"))).collect();
    assert_eq!(slices_of(&lines).await, vec![1; slices]);
}

#[tokio::test]
async fn of_two_indexes_in_turns_each_gives_its_own_lines() {
    let (store, source, one) = written(&[line(1, 1, "x:1".to_owned())]).await;
    let mut writer = Writer::new(&store).await.unwrap();
    writer.add(&line(2, 1, "x:2".to_owned())).await.unwrap();
    let one = one.unwrap().0;
    let two = writer.finish(&store, &source).await.unwrap().unwrap().0;
    let remembered = Remembered::default();
    for (index, expected) in [(one, 1), (one, 1), (two, 2), (one, 1)] {
        let lines = read(&store, &source, index, 0, &remembered).await.unwrap();
        assert_eq!(lines, [line(expected, 1, format!("x:{expected}"))]);
    }
}

#[tokio::test]
async fn an_index_that_is_read_at_once_is_not_read_again() {
    let lines: Vec<_> = (0..260).map(|n| line(n, 1, format!("x:{n}"))).collect();
    let (store, source, index) = written(&lines).await;
    let (index, slices) = index.unwrap();
    assert_eq!(slices, 2);
    let remembered = Remembered::default();
    let first = read(&store, &source, index, 0, &remembered).await.unwrap();
    // Anything read from now on would not be found.
    store.remove_beside_packages(&source, index).await.unwrap();
    let mut all = first;
    for number in 1..slices {
        all.extend(read(&store, &source, index, number, &remembered).await.unwrap());
    }
    assert_eq!(all, lines);
}

#[tokio::test]
async fn an_index_of_nothing_is_not_stored() {
    assert_eq!(written(&[]).await.2, None);
}

#[tokio::test]
async fn what_is_no_index_is_damaged_and_what_is_not_there_is_not_found() {
    let (store, source, _) = written(&[]).await;
    let remembered = Remembered::default();
    let read_one = |index| read(&store, &source, index, 0, &remembered);
    assert!(matches!(read_one(PackageId::fresh()).await, Err(StoreError::NotFound { .. })));
    let mut spool = store.spool(Hasher::new([])).await.unwrap();
    spool.append(vec![0x41; 100].into()).await.unwrap();
    let other = PackageId::fresh();
    store.put_beside_packages(&source, other, spool.finish().await.unwrap()).await.unwrap();
    assert!(matches!(read_one(other).await, Err(StoreError::Damaged { .. })));
}
