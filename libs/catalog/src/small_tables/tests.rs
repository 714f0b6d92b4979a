use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use slatedb::object_store_tag::{RetryReason, SstType, TableStoreKind};

use super::*;

fn table(name: &str) -> Path {
    Path::from(format!("catalogs/a/compacted/{name}.sst"))
}

/// A piece of a table, as the database reads it.
async fn piece(tables: &SmallTables, store: &InMemory, name: &str, piece: Range<u64>) -> Result<GetResult> {
    let range = Some(GetRange::Bounded(piece.clone()));
    tables.read(store, &table(name), piece, GetOptions { range, ..GetOptions::default() }).await
}

async fn text(tables: &SmallTables, store: &InMemory, name: &str, range: Range<u64>) -> Result<String> {
    let bytes = piece(tables, store, name, range).await?.bytes().await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

async fn write(tables: &SmallTables, store: &InMemory, name: &str, bytes: impl Into<Bytes>) {
    let bytes: Bytes = bytes.into();
    let payload = PutPayload::from(bytes);
    let put = store.put(&table(name), payload.clone()).await.unwrap();
    tables.note_put(&table(name), &payload, &put);
}

#[tokio::test]
async fn all_pieces_of_a_small_table_come_with_the_first_one() {
    let (tables, store) = (SmallTables::at_most(4096), InMemory::new());
    store.put(&table("a"), "0123456789".into()).await.unwrap();
    assert_eq!(text(&tables, &store, "a", 6..8).await.unwrap(), "67");
    store.delete(&table("a")).await.unwrap();
    let answer = piece(&tables, &store, "a", 8..20).await.unwrap();
    assert_eq!((answer.range.clone(), answer.meta.size), (8..10, 10));
    assert_eq!(answer.bytes().await.unwrap(), "89");
    for nothing in [10..12, 4..4] {
        assert!(piece(&tables, &store, "a", nothing).await.is_err(), "the store is asked");
    }
}

#[tokio::test]
async fn what_was_written_is_not_read_as_far_as_there_is_room() {
    let (tables, store) = (SmallTables::at_most(2 * ENTRY + 20), InMemory::new());
    for name in ["a", "b", "c"] {
        write(&tables, &store, name, "0123456789").await;
        store.delete(&table(name)).await.unwrap();
    }
    for (name, is_held) in [("a", false), ("b", true), ("c", true)] {
        assert_eq!(text(&tables, &store, name, 0..10).await.is_ok(), is_held, "{name}");
    }
    write(&tables, &store, "b", "01234").await;
    assert_eq!(tables.held().bytes, 2 * ENTRY + 15);
    tables.forget(&table("c"));
    tables.forget(&table("c"));
    assert_eq!(tables.held().bytes, ENTRY + 5);
}

#[tokio::test]
async fn a_large_table_is_read_in_pieces() {
    let (tables, store) = (SmallTables::at_most(1 << 20), InMemory::new());
    let long = "x".repeat(SMALL as usize + 1);
    store.put(&table("read"), long.clone().into()).await.unwrap();
    write(&tables, &store, "written", long).await;
    assert_eq!(text(&tables, &store, "read", 2..4).await.unwrap(), "xx");
    for name in ["read", "written"] {
        assert!(matches!(tables.get(&table(name)), Some(Table::Large)), "{name}");
        assert_eq!(text(&tables, &store, name, SMALL..SMALL + 1).await.unwrap(), "x");
        store.delete(&table(name)).await.unwrap();
        assert!(text(&tables, &store, name, 2..4).await.is_err(), "it is not kept");
    }
}

#[tokio::test]
async fn damage_is_read_again_from_the_store() {
    let (tables, store) = (SmallTables::at_most(4096), InMemory::new());
    write(&tables, &store, "a", "damaged").await;
    store.put(&table("a"), "as it was".into()).await.unwrap();
    assert_eq!(text(&tables, &store, "a", 0..7).await.unwrap(), "damaged");
    let mut tag = ObjectStoreCallTag::new(TableStoreKind::Main, SstType::Compacted);
    tag.retry = Some(RetryReason::CrcMismatch);
    let range = Some(GetRange::Bounded(0..5));
    let again = GetOptions { range, extensions: tag.into(), ..GetOptions::default() };
    let answer = tables.read(&store, &table("a"), 0..5, again).await.unwrap();
    assert_eq!(answer.bytes().await.unwrap(), "as it");
    assert_eq!(text(&tables, &store, "a", 3..9).await.unwrap(), "it was");
}

#[tokio::test]
async fn without_room_each_table_is_read_in_pieces() {
    let (tables, store) = (SmallTables::at_most(0), InMemory::new());
    write(&tables, &store, "a", "0123456789").await;
    assert_eq!(text(&tables, &store, "a", 6..8).await.unwrap(), "67");
    store.delete(&table("a")).await.unwrap();
    assert!(text(&tables, &store, "a", 6..8).await.is_err());
}
