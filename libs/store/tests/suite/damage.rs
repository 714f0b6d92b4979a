//! Damaged bitstreams are diagnosed and quarantined.

use futures::TryStreamExt as _;
use model::DamageFound;
use store::Listed;

use super::*;

fn found(bytes: &[u8]) -> DamageFound {
    DamageFound { is_there: true, length: Some(bytes.len() as u64), sha256: Some(Sha256::of(bytes)) }
}

pub(crate) async fn what_is_there_of_a_damaged_bitstream_is_told(store: &Store) {
    let object = bitstream(put(store, b"truth").await, b"truth");
    assert_eq!(store.diagnose(&object).await.unwrap(), found(b"truth"));
    overwrite(store, &object.location, b"TRUTH and more").await;
    assert_eq!(store.diagnose(&object).await.unwrap(), found(b"TRUTH and more"));
    store.object_store().delete(&Key::of(&object.location).path()).await.unwrap();
    assert_eq!(store.diagnose(&object).await.unwrap(), DamageFound::default());

    let bodies = [b"first".to_vec(), Vec::new(), b"last".to_vec()];
    let pack = pack(&bodies);
    let locations = store.put_pack(&pack).await.unwrap();
    let members: Vec<Bitstream> =
        locations.iter().zip(&bodies).map(|(location, body)| bitstream(location.clone(), body)).collect();
    let mut bytes = pack.body().to_vec();
    let last = locations[2].span().unwrap().offset as usize;
    bytes.truncate(last + 2);
    bytes[last] = b'L';
    overwrite(store, &locations[0], &bytes).await;
    for (member, there) in members.iter().zip([&b"first"[..], b"", b"La"]) {
        assert_eq!(store.diagnose(member).await.unwrap(), found(there));
    }
    overwrite(store, &locations[0], b"PK").await;
    assert_eq!(store.diagnose(&members[2]).await.unwrap(), found(b""));
}

pub(crate) async fn a_damaged_object_is_set_aside_and_what_comes_again_is_whole(store: &Store) {
    let large = body(2 * MIB);
    for bytes in [&b"truth"[..], &large] {
        let stored = bitstream(put(store, bytes).await, bytes);
        let sha256 = stored.computed.sha256();
        assert_eq!(store.quarantine(sha256).await.unwrap(), None, "it is whole");
        assert_eq!(store.read_verified(&stored).await.unwrap(), bytes);
        let mut damaged = bytes.to_vec();
        damaged[1] ^= 1;
        overwrite(store, &stored.location, &damaged).await;
        let aside = store.quarantine(sha256).await.unwrap().expect("it is damaged");
        assert!(matches!(&aside, Key::Damaged { sha256: of, .. } if *of == sha256), "{aside}");
        let kept = store.object_store().get(&aside.path()).await.unwrap().bytes().await.unwrap();
        assert_eq!(kept, damaged);
        let left: Vec<Listed> = store.list_bitstreams(sha256.as_bytes()[0]).try_collect().await.unwrap();
        assert!(left.iter().all(|listed| listed.key != Key::Bitstream(sha256)), "{left:?}");
        assert_eq!(store.quarantine(sha256).await.unwrap(), None, "it is gone");
        assert_eq!(put(store, bytes).await, stored.location);
        assert_eq!(store.read_verified(&stored).await.unwrap(), bytes);
        assert_eq!(store.quarantine(sha256).await.unwrap(), None, "it is whole again");
    }
}
