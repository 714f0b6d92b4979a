//! Tests of the view on a real file system.

use futures::StreamExt;
use futures::stream;
use tempfile::TempDir;

use super::*;

fn uri(text: &str) -> ResourceUri {
    text.parse().unwrap()
}

fn view() -> (TempDir, View) {
    let directory = tempfile::tempdir().unwrap();
    let view = View::new(directory.path());
    (directory, view)
}

fn temporaries(view: &View) -> usize {
    fs::read_dir(&view.0.temporary).map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_file_is_written_replaced_and_removed_with_its_directories() {
    let (directory, view) = view();
    let page = uri("http://h/a/b/page.html");
    view.place(page.clone(), Bytes::from_static(b"one")).await.unwrap();
    view.place(page.clone(), Bytes::from_static(b"two")).await.unwrap();
    assert_eq!(fs::read(directory.path().join("h/a/b/page.html")).unwrap(), b"two");
    assert!(view.contains(&page).await.unwrap());
    assert!(view.remove(page.clone()).await.unwrap());
    assert!(!directory.path().join("h").exists());
    assert!(!view.contains(&page).await.unwrap());
    assert!(!view.remove(page).await.unwrap());
    assert_eq!(temporaries(&view), 0);
}

#[tokio::test]
async fn removing_leaves_directories_that_hold_something() {
    let (directory, view) = view();
    let (one, two) = (uri("http://h/a/1"), uri("http://h/a/2"));
    view.place(one.clone(), Bytes::new()).await.unwrap();
    view.place(two, Bytes::new()).await.unwrap();
    assert!(view.remove(one).await.unwrap());
    assert!(directory.path().join("h/a/2").exists());
}

#[tokio::test]
async fn a_batch_is_written_around_the_file_that_is_in_the_way() {
    let (directory, view) = view();
    fs::create_dir_all(directory.path().join("h/2/x")).unwrap();
    let files = (1..=3).map(|n| (uri(&format!("http://h/{n}")), Bytes::from(n.to_string()))).collect();
    let results = view.place_batch(files).await;
    assert!(results[0].is_ok() && results[2].is_ok());
    assert!(matches!(&results[1], Err(StoreError::Blocked { .. })), "{results:?}");
    assert_eq!(fs::read(directory.path().join("h/3")).unwrap(), b"3");
    assert_eq!(temporaries(&view), 0);
}

#[tokio::test]
async fn a_stream_that_fails_changes_nothing() {
    let (_directory, view) = view();
    let page = uri("http://h/page.html");
    view.place(page.clone(), Bytes::from_static(b"old")).await.unwrap();
    let damaged = || StoreError::Damaged { key: "k".into(), expected: "a".into(), computed: "b".into() };
    let pieces = stream::iter([Ok(Bytes::from_static(b"new")), Err(damaged())]).boxed();
    let error = view.place_stream(page.clone(), pieces).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }));
    assert_eq!(fs::read(view.file(&page)).unwrap(), b"old");
    let pieces = stream::iter([Ok(Bytes::from_static(b"ne")), Ok(Bytes::from_static(b"w"))]).boxed();
    view.place_stream(page.clone(), pieces).await.unwrap();
    assert_eq!(fs::read(view.file(&page)).unwrap(), b"new");
    assert_eq!(temporaries(&view), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_replaced_as_files_and_refused_as_directories() {
    use std::os::unix::fs::symlink;
    let (directory, view) = view();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret");
    fs::write(&secret, "untouched").unwrap();

    let page = uri("http://h/page.html");
    fs::create_dir(directory.path().join("h")).unwrap();
    symlink(&secret, view.file(&page)).unwrap();
    view.place(page.clone(), Bytes::from_static(b"ours")).await.unwrap();
    assert_eq!(fs::read(view.file(&page)).unwrap(), b"ours");
    assert_eq!(fs::read(&secret).unwrap(), b"untouched");

    symlink(elsewhere.path(), directory.path().join("h/link")).unwrap();
    let through = uri("http://h/link/secret.txt");
    fs::write(elsewhere.path().join("secret.txt"), "untouched").unwrap();
    let error = view.place(through.clone(), Bytes::new()).await.unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert!(view.remove(through).await.is_err());
    assert!(elsewhere.path().join("secret.txt").exists());
}

#[tokio::test]
async fn a_file_in_the_way_of_a_directory_is_named() {
    let (directory, view) = view();
    fs::write(directory.path().join("h"), "").unwrap();
    let error = view.place(uri("http://h/a.txt"), Bytes::new()).await.unwrap_err();
    assert!(matches!(error, StoreError::Blocked { .. }), "{error}");
}

#[tokio::test]
async fn uris_that_are_out_to_collide_or_to_escape_lie_side_by_side() {
    let (directory, view) = view();
    let long = format!("http://h/{}", "A".repeat(700));
    let longest = format!("http://h/{}", "a/".repeat(3_000));
    let uris: Vec<_> = [
        "http://h",
        "http://h/",
        "http://h/a",
        "http://h/a/",
        "http://h/a/b",
        "http://h/A",
        "http://h/a/b/c.txt",
        "http://h/../../../etc/passwd",
        "http://h/..%2f..%2fx",
        "http://.thresher/tmp/x",
        "http://../x",
        "https://h/a",
        "http://h/a?b",
        "http://h/a#b",
        "http://h//a",
        "HTTP://h/a",
        &long,
        &longest,
    ]
    .into_iter()
    .map(uri)
    .collect();
    let files = uris.iter().map(|uri| (uri.clone(), Bytes::from(uri.to_string()))).collect();
    view.place_batch(files).await.into_iter().for_each(|result| result.unwrap());
    for uri in &uris {
        let file = view.file(uri).canonicalize().unwrap();
        assert!(file.starts_with(directory.path().canonicalize().unwrap()), "{}", file.display());
        assert_eq!(fs::read(file).unwrap(), uri.as_str().as_bytes());
    }
    for uri in uris {
        assert!(view.remove(uri).await.unwrap());
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "only our own directory is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writing_and_removing_side_by_side_lose_no_file() {
    let (_directory, view) = view();
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let view = view.clone();
            tokio::spawn(async move {
                let page = uri(&format!("http://h/a/b/c/{task}.txt"));
                for _ in 0..50 {
                    view.place(page.clone(), Bytes::from_static(b"x")).await.unwrap();
                    assert!(view.contains(&page).await.unwrap());
                    assert!(view.remove(page.clone()).await.unwrap());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}
