//! Tests of the view on a real file system.

use fs_err as fs;
use futures::stream;
use tempfile::TempDir;

use super::*;

pub(super) fn uri(text: &str) -> ResourceUri {
    text.parse().unwrap()
}

pub(super) fn view() -> (TempDir, View) {
    let directory = tempfile::tempdir().unwrap();
    let view = View::new(directory.path());
    (directory, view)
}

fn temporaries(directory: &TempDir) -> usize {
    fs::read_dir(directory.path().join(".thresher/tmp")).map_or(0, Iterator::count)
}

/// The paths of all files but our own data.
pub(super) fn files(directory: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        let mut is_empty = true;
        for entry in fs::read_dir(&next).unwrap() {
            is_empty = false;
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
            if path.is_file() {
                files.push(name);
            } else if name != ".thresher" {
                directories.push(path);
            }
        }
        assert!(!is_empty || next == directory, "{} is empty", next.display());
    }
    files.sort();
    files
}

#[tokio::test]
async fn a_file_is_written_replaced_and_removed_with_its_directories() {
    let (directory, view) = view();
    let page = uri("https://h/a/b/page.html");
    view.place(page.clone(), Bytes::from_static(b"one")).await.unwrap();
    view.place(page.clone(), Bytes::from_static(b"two")).await.unwrap();
    assert_eq!(fs::read(directory.path().join("h/a/b/page.html")).unwrap(), b"two");
    assert!(view.contains(&page).await.unwrap());
    assert!(view.remove(page.clone()).await.unwrap());
    assert!(!directory.path().join("h").exists());
    assert!(!view.contains(&page).await.unwrap());
    assert!(!view.remove(page).await.unwrap());
    assert_eq!(temporaries(&directory), 0);
}

#[tokio::test]
async fn removing_leaves_directories_that_hold_something() {
    let (directory, view) = view();
    let one = uri("https://h/a/1");
    let two = uri("https://h/a/2");
    view.place(one.clone(), Bytes::new()).await.unwrap();
    view.place(two, Bytes::new()).await.unwrap();
    assert!(view.remove(one).await.unwrap());
    assert!(directory.path().join("h/a/2").exists());
}

#[tokio::test]
async fn a_batch_is_written_around_what_is_in_the_way() {
    let (directory, view) = view();
    fs::write(directory.path().join("+also"), "").unwrap();
    fs::create_dir_all(directory.path().join("h/2/x")).unwrap();
    let files = (1..=3).map(|n| (uri(&format!("https://h/{n}")), Bytes::from(n.to_string()))).collect();
    let results = view.place_batch(files).await;
    assert!(results[0].is_ok() && results[2].is_ok());
    assert!(matches!(&results[1], Err(StoreError::Blocked { .. })), "{results:?}");
    assert_eq!(fs::read(directory.path().join("h/3")).unwrap(), b"3");
    assert_eq!(temporaries(&directory), 0);
}

#[tokio::test]
async fn who_comes_second_lies_at_its_strict_path_until_the_way_is_free() {
    for (first, second, plain, strict) in [
        ("https://h/a", "https://h/a/b", "h/a/b", "+also/h/a/b^"),
        ("https://h/a/b", "https://h/a", "h/a", "+also/h/a^"),
    ] {
        let (directory, view) = view();
        let first = uri(first);
        let second = uri(second);
        view.place(first.clone(), Bytes::from_static(b"1")).await.unwrap();
        view.place(second.clone(), Bytes::from_static(b"2")).await.unwrap();
        assert_eq!(view.file(&second), directory.path().join(strict));
        view.place(second.clone(), Bytes::from_static(b"two")).await.unwrap();
        assert_eq!(fs::read(view.file(&first)).unwrap(), b"1");
        assert_eq!(fs::read(view.file(&second)).unwrap(), b"two");

        assert!(view.remove(first.clone()).await.unwrap());
        assert!(!view.contains(&first).await.unwrap());
        assert_eq!(files(directory.path()), [strict]);
        view.place(second.clone(), Bytes::from_static(b"2")).await.unwrap();
        assert_eq!(files(directory.path()), [plain]);
        assert_eq!(view.file(&second), directory.path().join(plain));
    }
}

#[tokio::test]
async fn a_stale_file_that_a_crash_left_is_never_what_is_found() {
    let (directory, view) = view();
    let page = uri("https://h/a");
    let stale = directory.path().join("+also/h/a^");
    fs::create_dir_all(stale.parent().unwrap()).unwrap();
    for removes in [false, true] {
        fs::create_dir_all(stale.parent().unwrap()).unwrap();
        fs::create_dir_all(directory.path().join("h")).unwrap();
        fs::write(&stale, "stale").unwrap();
        fs::write(directory.path().join("h/a"), "ours").unwrap();
        assert_eq!(fs::read(view.file(&page)).unwrap(), b"ours");
        if removes {
            assert!(view.remove(page.clone()).await.unwrap());
            assert!(files(directory.path()).is_empty());
        } else {
            view.place(page.clone(), Bytes::from_static(b"new")).await.unwrap();
            assert_eq!(files(directory.path()), ["h/a"]);
        }
    }
}

#[tokio::test]
async fn where_case_is_not_told_apart_it_is_marked() {
    let (directory, view) = view();
    // As a case-insensitive file system would answer.
    fs::create_dir_all(directory.path().join(".thresher/TMP")).unwrap();
    for text in ["https://h/a", "https://h/A"] {
        view.place(uri(text), Bytes::from_static(b"x")).await.unwrap();
    }
    assert_eq!(files(directory.path()), ["h/A^u", "h/a"]);
}

#[tokio::test]
async fn a_stream_that_fails_changes_nothing() {
    let (directory, view) = view();
    let page = uri("https://h/page.html");
    view.place(page.clone(), Bytes::from_static(b"old")).await.unwrap();
    let damaged = || StoreError::Damaged { key: "k".into(), expected: "a".into(), computed: "b".into() };
    let pieces = stream::iter([Ok(Bytes::from_static(b"new")), Err(damaged())]).boxed();
    let error = view.place_stream(page.clone(), pieces).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }));
    assert_eq!(fs::read(view.file(&page)).unwrap(), b"old");
    let pieces = stream::iter([Ok(Bytes::from_static(b"ne")), Ok(Bytes::from_static(b"w"))]).boxed();
    view.place_stream(page.clone(), pieces).await.unwrap();
    assert_eq!(fs::read(view.file(&page)).unwrap(), b"new");
    assert_eq!(temporaries(&directory), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_replaced_as_files_and_refused_as_directories() {
    use std::os::unix::fs::symlink;
    let (directory, view) = view();
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret");
    fs::write(&secret, "untouched").unwrap();

    let page = uri("https://h/page.html");
    fs::create_dir(directory.path().join("h")).unwrap();
    symlink(&secret, view.file(&page)).unwrap();
    view.place(page.clone(), Bytes::from_static(b"ours")).await.unwrap();
    assert_eq!(fs::read(view.file(&page)).unwrap(), b"ours");
    assert_eq!(fs::read(&secret).unwrap(), b"untouched");

    symlink(elsewhere.path(), directory.path().join("h/link")).unwrap();
    let through = uri("https://h/link/secret.txt");
    fs::write(elsewhere.path().join("secret.txt"), "untouched").unwrap();
    let error = view.place(through.clone(), Bytes::new()).await.unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert!(view.remove(through).await.is_err());
    assert!(elsewhere.path().join("secret.txt").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_is_refused_below_the_strict_paths_too() {
    use std::os::unix::fs::symlink;
    let (directory, view) = view();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("h")).unwrap();
    fs::write(elsewhere.path().join("h/a^"), "untouched").unwrap();
    symlink(elsewhere.path(), directory.path().join("+also")).unwrap();
    fs::create_dir_all(directory.path().join("h/a/b")).unwrap();
    let page = uri("https://h/a");
    let error = view.place(page.clone(), Bytes::new()).await.unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert!(view.remove(page).await.is_err());
    assert_eq!(fs::read(elsewhere.path().join("h/a^")).unwrap(), b"untouched");
}

#[tokio::test]
async fn uris_that_are_out_to_collide_or_to_escape_lie_side_by_side() {
    let (directory, view) = view();
    let long = format!("https://h/{}", "A".repeat(700));
    let longest = format!("https://h/{}", "a/".repeat(3_000));
    let uris: Vec<_> = [
        "https://h",
        "https://h/",
        "https://h/a",
        "https://h/a/",
        "https://h/a/b",
        "https://h/A",
        "https://h/a/b/c.txt",
        "https://h/../../../etc/passwd",
        "https://h/..%2f..%2fx",
        "http://.thresher/tmp/x",
        "http://../x",
        "https://h/a?b",
        "https://h/a#b",
        "https://h//a",
        "HTTP://h/a",
        "http://h/a",
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
                // Half of them collide with each other.
                let page = match task {
                    0..4 => uri(&format!("https://h/a/b/c/{task}.txt")),
                    _ => uri(&format!("https://h{}", "/a".repeat(task - 3))),
                };
                for _ in 0..50 {
                    view.place(page.clone(), Bytes::from(page.to_string())).await.unwrap();
                    assert_eq!(fs::read(view.file(&page)).unwrap(), page.as_str().as_bytes());
                    assert!(view.remove(page.clone()).await.unwrap());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_file_has_ordinary_permissions_and_leaves_no_other_name() {
    let directory = tempfile::tempdir().unwrap();
    let ordinary = directory.path().join("ordinary");
    fs::write(&ordinary, "").unwrap();
    let permissions = fs::metadata(ordinary).unwrap().permissions();
    for (n, view) in [View::new(directory.path())].into_iter().enumerate() {
        let page = uri(&format!("https://h/{n}"));
        for body in ["one", "two"] {
            view.place(page.clone(), Bytes::from_static(body.as_bytes())).await.unwrap();
            assert_eq!(fs::read(view.file(&page)).unwrap(), body.as_bytes());
            assert_eq!(fs::metadata(view.file(&page)).unwrap().permissions(), permissions);
            assert_eq!(temporaries(&directory), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_written_side_by_side_give_each_resource_one_file_and_lose_none() {
    let (directory, _) = view();
    for (n, view) in [View::new(directory.path())].into_iter().enumerate() {
        for round in 0..20 {
            // Each batch contains paths that collide with all others.
            let texts: Vec<String> =
                (1..=8).map(|depth| format!("https://h-{n}-{round}{}", "/a".repeat(depth))).collect();
            let batches = texts.chunks(2).map(|texts| {
                let files = texts.iter().map(|text| (uri(text), Bytes::from(text.clone()))).collect();
                let view = view.clone();
                tokio::spawn(async move { view.place_batch(files).await })
            });
            for placed in futures::future::join_all(batches).await {
                placed.unwrap().into_iter().for_each(|result| result.unwrap());
            }
            for text in &texts {
                assert_eq!(fs::read(view.file(&uri(text))).unwrap(), text.as_bytes());
            }
            let plain = directory.path().join(format!("h-{n}-{round}"));
            let also = directory.path().join(format!("+also/h-{n}-{round}"));
            assert_eq!(files(&plain).len() + files(&also).len(), texts.len());
            assert_eq!(temporaries(&directory), 0);
        }
    }
}

#[test]
fn a_directory_that_disappears_while_a_file_is_removed_is_no_failure() {
    let (directory, view) = view();
    // Now and then other threads have a directory at the plain path of this page.
    let page = uri("https://h/a");
    let other = directory.path().join("h/a");
    fs::create_dir_all(&other).unwrap();
    std::thread::scope(|threads| {
        let comes_and_goes = threads.spawn(|| {
            for _ in 0..5_000 {
                fs::remove_dir(&other).unwrap();
                fs::create_dir(&other).unwrap();
            }
        });
        while !comes_and_goes.is_finished() {
            assert!(!view.0.remove(&page).unwrap());
        }
    });
}

#[tokio::test]
async fn files_at_former_paths_are_moved_once_and_nothing_else_is() {
    let (directory, view) = view();
    let root = directory.path();
    for (file, content) in [
        ("h/.git/config", "[core]"),
        ("h/.git/HEAD", "ref"),
        ("h/.git/mine", "not of the Source"),
        ("+also/h/.b/x^", "gave way"),
        ("h/a.txt", "a"),
        ("h/^2eenvrc", "now"),
        ("h/.envrc", "before"),
    ] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), content).unwrap();
    }
    let uris = ["https://h/.git/config", "https://h/.git/HEAD", "https://h/.b/x", "https://h/a.txt"];
    let mut uris: Vec<_> = uris.into_iter().map(uri).collect();
    uris.push(uri("https://h/.envrc"));
    assert_eq!(view.put_right(uris.clone()).await.unwrap(), 4);
    let expected = ["h/.git/mine", "h/^2eb/x", "h/^2eenvrc", "h/^2egit/HEAD", "h/^2egit/config", "h/a.txt"];
    assert_eq!(files(root), expected);
    assert_eq!(fs::read(root.join("h/^2eenvrc")).unwrap(), b"now");
    assert_eq!(fs::read(root.join("h/^2eb/x")).unwrap(), b"gave way");
    assert_eq!(view.put_right(uris).await.unwrap(), 0);
    assert_eq!(temporaries(&directory), 0);
}
