use fixity::Computed;
use model::{Assurance, Validators};
use store::StoreOptions;

use super::*;

const LENGTH: usize = 3 * 1024 * 1024 + 17;

/// A store in a directory with one large bitstream, and the path of its object.
async fn large() -> (tempfile::TempDir, Store, Bitstream, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().display().to_string().parse().unwrap();
    let store = Store::open(&target, StoreOptions::default()).await.unwrap();
    let content: Vec<u8> = (0..LENGTH).map(|n| (n % 251) as u8).collect();
    let computed = Computed::of(&content);
    let location = Location::Object { sha256: computed.sha256() };
    write(&folder, &location, &content);
    let bitstream = Bitstream {
        location,
        computed,
        assurance: Assurance::Digest,
        media_type: None,
        encoding: None,
        validators: Validators::default(),
        final_url: None,
        stored_at: jiff::Timestamp::UNIX_EPOCH,
    };
    (folder, store, bitstream, content)
}

fn write(folder: &tempfile::TempDir, location: &Location, content: &[u8]) {
    let path = folder.path().join(".thresher").join(Key::of(location).to_string());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// The received bytes, and whether the stream reached its end.
async fn read(
    cache: &VerifiedCache,
    store: &Store,
    bitstream: &Bitstream,
    range: Option<Range<u64>>,
) -> (Vec<u8>, bool) {
    let mut stream = cache.open(store, bitstream, range).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(_) => return (bytes, false),
        }
    }
    (bytes, true)
}

#[tokio::test]
async fn a_whole_and_its_parts_are_what_was_stored() {
    let (_folder, store, bitstream, content) = large().await;
    let cache = VerifiedCache::default();
    let end = LENGTH as u64;
    for range in [0..1, end - 1..end, 1_000_000..2_500_000, 0..end] {
        let expected = &content[range.start as usize..range.end as usize];
        // Before the whole bitstream is known to be verified, and after.
        for _ in 0..2 {
            let (bytes, ended) = read(&cache, &store, &bitstream, Some(range.clone())).await;
            assert!(ended && bytes == expected, "{range:?}");
        }
        assert!(cache.contains(&bitstream));
    }
    assert_eq!(read(&VerifiedCache::default(), &store, &bitstream, None).await, (content, true));
}

#[tokio::test]
async fn a_part_is_not_handed_out_whole_when_the_rest_is_damaged() {
    let (folder, store, bitstream, mut content) = large().await;
    // Far behind the requested range.
    content[LENGTH - 5] ^= 1;
    write(&folder, &bitstream.location, &content);
    let cache = VerifiedCache::default();
    for range in [Some(0..10), Some(0..2_000_000), None] {
        let asked = range.clone().map_or(LENGTH, |range| (range.end - range.start) as usize);
        let (bytes, ended) = read(&cache, &store, &bitstream, range.clone()).await;
        assert!(!ended && bytes.len() < asked, "{range:?}: {} bytes", bytes.len());
    }
    assert!(!cache.contains(&bitstream));
}
