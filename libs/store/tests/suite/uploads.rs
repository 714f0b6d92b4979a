//! Packages received part by part, by workers that may vanish.

use fixity::Algorithm;
use model::{Seq, StoredBitstream, Validators};
use store::{PackageHead, PackageUpload};

use super::*;

const PART: usize = 8 * MIB;

fn head(etag: &str) -> PackageHead {
    let validators = Validators { etag: Some(etag.into()), last_modified: None };
    PackageHead {
        length: Some(7),
        validators,
        media_type: Some("application/zip".into()),
        ..PackageHead::default()
    }
}

async fn opened(store: &Store) -> Result<PackageUpload, StoreError> {
    store.package_upload(&source(), Seq::new(3), &[Algorithm::Md5], 1 << 36).await
}

/// Appends like a response's body: in pieces that align with nothing.
async fn append(upload: &mut PackageUpload, bytes: &[u8]) -> Result<(), StoreError> {
    for piece in bytes.chunks(99_991) {
        upload.append(Bytes::copy_from_slice(piece)).await?;
    }
    Ok(())
}

fn computed(bytes: &[u8]) -> Computed {
    let mut hasher = Hasher::new([Algorithm::Md5]);
    hasher.update(bytes);
    hasher.finish()
}

async fn assert_stored(store: &Store, stored: &StoredBitstream, bytes: &[u8]) {
    assert_eq!(stored.computed, computed(bytes));
    let location = &stored.location;
    let length = bytes.len() as u64;
    assert!(store.exists(location, length).await.unwrap());
    let read: Vec<Bytes> = store.read(location, length).await.unwrap().try_collect().await.unwrap();
    assert!(read.concat() == bytes);
}

/// The keys of packages; everything else belongs to uploads.
async fn packages(store: &Store) -> Vec<String> {
    let keys = keys(store).await.into_iter();
    keys.filter(|key| key.starts_with("packages/")).collect()
}

pub(crate) async fn an_upload_that_was_dropped_goes_on_behind_its_last_part(store: &Store) {
    let bytes = body(2 * PART + 1_000);
    let mut sent = 0;
    for cut in [0, 1_000, PART - 1, PART, PART + 1, 2 * PART + 5, 2 * PART] {
        let mut upload = opened(store).await.unwrap();
        let from = upload.received() as usize;
        assert_eq!(from % PART, 0);
        assert!(sent - from < PART && (from == 0 || upload.head() == &head("a")), "{from} of {sent}");
        if from == 0 {
            upload.begin(head("a")).await.unwrap();
        }
        append(&mut upload, &bytes[from..cut.max(from)]).await.unwrap();
        sent = cut.max(from);
        assert_eq!(upload.received() as usize, sent);
    }
    assert_eq!(packages(store).await, Vec::<String>::new());
    let mut upload = opened(store).await.unwrap();
    assert_eq!(upload.received() as usize, 2 * PART);
    append(&mut upload, &bytes[2 * PART..]).await.unwrap();
    let stored = upload.finish().await.unwrap();
    assert_stored(store, &stored, &bytes).await;
    assert_eq!(
        (&stored.validators, stored.media_type.as_deref()),
        (&head("a").validators, Some("application/zip"))
    );

    // A second worker on the job finds it done.
    let again = opened(store).await.unwrap();
    assert!(again.is_whole());
    assert_eq!(again.finish().await.unwrap(), stored);
    store.forget_upload(&source(), Seq::new(3)).await.unwrap();
    assert_eq!(keys(store).await, [Key::of(&stored.location).to_string()].into());
    assert!(!opened(store).await.unwrap().is_whole());
    assert_eq!(*store.trouble().borrow(), None);
}

pub(crate) async fn an_upload_that_was_kept_goes_on_at_the_very_byte(store: &Store) {
    let bytes = body(PART + 3 * MIB);
    let cuts = [10, MIB, MIB, PART, PART + MIB + 1, bytes.len()];
    let mut from = 0;
    for cut in cuts {
        let mut upload = opened(store).await.unwrap();
        assert_eq!(upload.received() as usize, from);
        if from == 0 {
            upload.begin(head("a")).await.unwrap();
        }
        append(&mut upload, &bytes[from..cut]).await.unwrap();
        assert_eq!(upload.keep().await.unwrap() as usize, cut);
        from = cut;
    }
    // The bytes behind the last part are compared with the checkpoint: replaced ones are requested again.
    let tail = Key::UploadTail { source: source(), seq: Seq::new(3) };
    store.object_store().put(&tail.path(), vec![0; 3 * MIB].into()).await.unwrap();
    let mut upload = opened(store).await.unwrap();
    assert_eq!(upload.received() as usize, PART);
    append(&mut upload, &bytes[PART..]).await.unwrap();
    let stored = upload.finish().await.unwrap();
    assert_stored(store, &stored, &bytes).await;
    store.forget_upload(&source(), Seq::new(3)).await.unwrap();
    assert_eq!(keys(store).await, [Key::of(&stored.location).to_string()].into());
}

pub(crate) async fn a_resource_that_was_uploaded_has_the_name_of_its_content_where_that_copies_nothing(
    store: &Store,
) {
    for length in [MIB, PART + MIB] {
        let bytes = body(length);
        let mut upload = opened(store).await.unwrap();
        upload.begin(head("a")).await.unwrap();
        append(&mut upload, &bytes).await.unwrap();
        let stored = upload.finish_as_bitstream().await.unwrap();
        assert_stored(store, &stored, &bytes).await;
        let mut expected: BTreeSet<String> = [Key::of(&stored.location).to_string()].into();
        match stored.location {
            // A directory: nothing else is left.
            Location::Object { sha256 } => assert_eq!(sha256, stored.computed.sha256()),
            // A bucket: a job that is repeated finds it.
            Location::Package { offset: 0, .. } => {
                if length > PART {
                    let again = opened(store).await.unwrap().finish_as_bitstream().await.unwrap();
                    assert_eq!(again, stored);
                    expected.insert(Key::Upload { source: source(), seq: Seq::new(3) }.to_string());
                }
            }
            ref other => panic!("it is somewhere else: {other:?}"),
        }
        assert_eq!(keys(store).await, expected);
        store.forget_upload(&source(), Seq::new(3)).await.unwrap();
        assert_stored(store, &stored, &bytes).await;
        let key = Key::of(&stored.location);
        store.object_store().delete(&key.path()).await.unwrap();
    }
}

pub(crate) async fn a_package_of_less_than_a_part_is_one_object_and_no_note(store: &Store) {
    for length in [0, 1, 3 * MIB] {
        let bytes = body(length);
        let mut upload = opened(store).await.unwrap();
        upload.begin(head("a")).await.unwrap();
        append(&mut upload, &bytes).await.unwrap();
        let stored = upload.finish().await.unwrap();
        assert_stored(store, &stored, &bytes).await;
        assert_eq!(keys(store).await, [Key::of(&stored.location).to_string()].into());
        store.object_store().delete(&Key::of(&stored.location).path()).await.unwrap();
    }
    // An upload that was kept before has a checkpoint with the name of its tail.
    let mut upload = opened(store).await.unwrap();
    append(&mut upload, b"one ").await.unwrap();
    upload.keep().await.unwrap();
    let mut upload = opened(store).await.unwrap();
    append(&mut upload, b"two").await.unwrap();
    let stored = upload.finish().await.unwrap();
    assert_stored(store, &stored, b"one two").await;
    assert_eq!(opened(store).await.unwrap().finish().await.unwrap(), stored);
}

pub(crate) async fn an_upload_that_begins_anew_is_another_package(store: &Store) {
    let bytes = body(PART + 5);
    let mut upload = opened(store).await.unwrap();
    upload.begin(head("old")).await.unwrap();
    append(&mut upload, &vec![0; PART + 1]).await.unwrap();
    drop(upload);
    let mut upload = opened(store).await.unwrap();
    assert_eq!((upload.received() as usize, upload.head()), (PART, &head("old")));
    upload.begin(head("new")).await.unwrap();
    assert_eq!((upload.received(), upload.head()), (0, &head("new")));
    append(&mut upload, &bytes).await.unwrap();
    drop(upload);
    let mut upload = opened(store).await.unwrap();
    assert_eq!((upload.received() as usize, upload.head()), (PART, &head("new")));
    append(&mut upload, &bytes[PART..]).await.unwrap();
    let stored = upload.finish().await.unwrap();
    assert_stored(store, &stored, &bytes).await;
    assert_eq!(packages(store).await, [Key::of(&stored.location).to_string()]);
    store.forget_upload(&source(), Seq::new(3)).await.unwrap();

    // An unwanted upload leaves nothing, whether it is removed from within or from outside.
    let mut upload = opened(store).await.unwrap();
    append(&mut upload, &bytes).await.unwrap();
    upload.abandon().await.unwrap();
    let mut upload = opened(store).await.unwrap();
    append(&mut upload, &bytes).await.unwrap();
    upload.keep().await.unwrap();
    store.forget_upload(&source(), Seq::new(3)).await.unwrap();
    assert_eq!(keys(store).await, [Key::of(&stored.location).to_string()].into());
}

pub(crate) async fn of_two_workers_on_one_upload_one_goes_on(store: &Store) {
    let bytes = body(2 * PART + 9);
    let mut first = opened(store).await.unwrap();
    first.begin(head("a")).await.unwrap();
    append(&mut first, &bytes[..PART]).await.unwrap();
    if store.directory().is_some() {
        // A local upload is locked: the second does not begin.
        let error = opened(store).await.unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }) && error.is_retryable(), "{error}");
    } else {
        let mut second = opened(store).await.unwrap();
        append(&mut first, &bytes[PART..2 * PART]).await.unwrap();
        let error = append(&mut second, &bytes[PART..2 * PART]).await.unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }) && error.is_retryable(), "{error}");
        // Once it has lost, it can do nothing more.
        assert!(matches!(second.finish().await, Err(StoreError::Busy { .. })));
    }
    let from = first.received() as usize;
    append(&mut first, &bytes[from..]).await.unwrap();
    let stored = first.finish().await.unwrap();
    assert_stored(store, &stored, &bytes).await;
    assert_eq!(opened(store).await.unwrap().finish().await.unwrap(), stored);
    store.forget_upload(&source(), Seq::new(3)).await.unwrap();

    // One that still sends a part when the other has completed the upload.
    if store.directory().is_none() {
        let mut first = opened(store).await.unwrap();
        append(&mut first, &bytes[..PART]).await.unwrap();
        let mut late = opened(store).await.unwrap();
        append(&mut first, &bytes[PART..]).await.unwrap();
        let stored = first.finish().await.unwrap();
        let error = append(&mut late, &vec![0; PART]).await.unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
        assert_stored(store, &stored, &bytes).await;
        assert_eq!(opened(store).await.unwrap().finish().await.unwrap(), stored);
        store.forget_upload(&source(), Seq::new(3)).await.unwrap();
    }

    // Two that begin at the same time.
    if store.directory().is_none() {
        let mut one = opened(store).await.unwrap();
        let mut other = opened(store).await.unwrap();
        append(&mut one, &bytes[..PART]).await.unwrap();
        let error = append(&mut other, &bytes[..PART]).await.unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
        append(&mut one, &bytes[PART..]).await.unwrap();
        assert_stored(store, &one.finish().await.unwrap(), &bytes).await;
    }
    assert_eq!(*store.trouble().borrow(), None);
}

pub(crate) async fn an_upload_whose_parts_are_gone_begins_anew(store: &Store) {
    let bytes = body(2 * PART);
    let mut upload = opened(store).await.unwrap();
    append(&mut upload, &bytes[..PART]).await.unwrap();
    if store.directory().is_some() {
        let grown = keys(store).await.into_iter().find(|key| key.ends_with(".part")).unwrap();
        store.object_store().delete(&object_store::path::Path::from(grown)).await.unwrap();
    } else {
        store.forget_upload(&source(), Seq::new(3)).await.unwrap();
    }
    append(&mut upload, &bytes[PART..]).await.unwrap_err();
    drop(upload);
    let mut upload = opened(store).await.unwrap();
    assert_eq!(upload.received(), 0);
    append(&mut upload, &bytes).await.unwrap();
    assert_stored(store, &upload.finish().await.unwrap(), &bytes).await;
}
