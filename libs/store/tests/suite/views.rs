//! Files of a view, generated from the store.

use std::io::Write as _;

use fs_err as fs;
use store::View;

use super::packages::Archive;
use super::*;

fn page() -> ResourceUri {
    "https://h/page".parse().unwrap()
}

/// A view of its own, which is not that of the store.
fn view() -> (tempfile::TempDir, View) {
    let directory = tempfile::tempdir().unwrap();
    let view = View::new(directory.path());
    (directory, view)
}

pub(crate) async fn what_is_held_is_laid_out_wherever_it_lies(store: &Store) {
    let (_directory, view) = view();
    let lengths = [0, 5, 5 * MIB + 1];
    let mut held = Vec::new();
    for bytes in lengths.map(body) {
        held.push((bitstream(put(store, &bytes).await, &bytes), bytes));
    }
    let mut archive = Archive::default();
    for method in [Method::Stored, Method::Deflated] {
        for bytes in lengths.map(body) {
            archive.add(bytes, method);
        }
    }
    held.extend(archive.store(store).await.1);
    for (stored, bytes) in &held {
        store.write_view(stored, &view, page()).await.unwrap();
        assert!(fs::read(view.file(&page())).unwrap() == *bytes, "{:?}", stored.location);
    }
}

pub(crate) async fn what_is_damaged_is_not_laid_out(store: &Store) {
    let (directory, view) = view();
    let mut bytes = body(3 * MIB);
    let stored = bitstream(put(store, &bytes).await, &bytes);
    view.place(page(), Bytes::from_static(b"old")).await.unwrap();
    bytes[2 * MIB] ^= 1;
    for damaged in [bytes.as_slice(), &bytes[1..], b""] {
        overwrite(store, &stored.location, damaged).await;
        let error = store.write_view(&stored, &view, page()).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert_eq!(fs::read(view.file(&page())).unwrap(), b"old");
    }
    store.object_store().delete(&Key::of(&stored.location).path()).await.unwrap();
    let error = store.write_view(&stored, &view, page()).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    let left = fs::read_dir(directory.path().join(".thresher/tmp")).unwrap().count();
    assert_eq!(left, 0, "files are left over");
}

/// People edit the files of a view, though they should not.
pub(crate) async fn who_writes_into_a_file_of_a_view_does_no_harm_to_what_is_held(store: &Store) {
    // On the same file system as a local store, where files could be reflinks.
    let (_directory, other) = view();
    let view = store.view().unwrap_or(other);
    let bytes = body(2 * MIB);
    let stored = bitstream(put(store, &bytes).await, &bytes);
    store.write_view(&stored, &view, page()).await.unwrap();
    let mut file = fs::OpenOptions::new().write(true).open(view.file(&page())).unwrap();
    file.write_all(b"scribbled").unwrap();
    assert!(store.read_verified(&stored).await.unwrap() == bytes);
    store.write_view(&stored, &view, page()).await.unwrap();
    assert!(fs::read(view.file(&page())).unwrap() == bytes);
}
