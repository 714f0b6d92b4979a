//! The files of an export that was not interrupted.

use export::{Destination, ExportError, Format, Selection};
use serde_json::json;
use store::view;

use crate::read::{files, read, rows, tables};
use crate::world::{World, content, moment, uri};

fn dump() -> Format {
    Format::ResourceDump { base: "http://e.org/dump/".parse().unwrap() }
}

#[tokio::test]
async fn a_tree_and_a_tar_hold_each_resource_under_its_readable_name() {
    let world = World::with(9).await;
    let folder = tempfile::tempdir().unwrap();
    world.deleted("zzz", moment(0)).await;
    for format in [Format::Tree, Format::Tar] {
        let place = folder.path().join(format!("{format:?}"));
        let (done, damaged) = world.run(&World::export(format.clone(), &place)).await.unwrap();
        let found = read(&format, &place);
        assert_eq!((done.resources, done.damaged, damaged.len()), (9, 0, 0));
        assert_eq!(found.len(), 9, "{:?}", found.keys());
        let mut bytes = 0;
        for number in 0..9 {
            let name = view::path_of(&uri(&format!("{number:03}/file")));
            assert!(found[name.as_str()] == content(number), "{number}");
            bytes += content(number).len() as u64;
        }
        assert_eq!(done.bytes, bytes);
    }
    assert_eq!(files(folder.path(), folder.path()).len(), 9 + 1, "nothing else lies there");
}

#[tokio::test]
async fn lines_and_tables_hold_the_same_rows_tombstones_included() {
    let world = World::with(9).await;
    let folder = tempfile::tempdir().unwrap();
    world.deleted("zzz", moment(3)).await;
    let lines = folder.path().join("lines");
    let parts = folder.path().join("parts");
    world.run(&World::export(Format::JsonLines, &lines)).await.unwrap();
    let (done, _) = world.run(&World::export(Format::Parquet, &parts)).await.unwrap();
    assert_eq!((done.resources, done.bytes), (10, 0));
    assert_eq!(files(&parts, &parts).len(), 3, "four rows each");
    let lines = rows(&lines);
    let tables = tables(&parts);
    assert_eq!((lines.len(), tables.len()), (10, 10));
    for (line, row) in lines.iter().zip(&tables) {
        assert_eq!(line, row);
    }
    let first = &lines[0];
    assert_eq!(first["uri"], json!("http://e.org/000/file"));
    assert_eq!((&first["state"], &first["stored_at"]), (&json!("present"), &json!("2026-01-01T00:00:00Z")));
    assert_eq!((&first["method"], &first["declared_length"]), (&json!("stored"), &json!(7)));
    assert_eq!(first["links"], json!([]));
    let [mirror, via] = lines[1]["links"].as_array().unwrap().as_slice() else { panic!("{}", lines[1]) };
    assert_eq!(
        (&mirror["pri"], &mirror["length"], &mirror["profile"]),
        (&json!(7), &json!(u64::MAX), &json!("p"))
    );
    assert_eq!(
        (&mirror["other"], &mirror["modified"]),
        (&json!(r#"{"x:y":"3"}"#), &json!("1970-01-01T00:00:00Z"))
    );
    assert_eq!(
        (&via["rel"], &via["href"], &via["type"]),
        (&json!("via"), &json!("http://o.org/a"), &json!(null))
    );
    assert_eq!((&lines[9]["state"], &lines[9]["sha256"]), (&json!("deleted"), &json!(null)));
}

#[tokio::test]
async fn prefix_time_and_type_all_have_to_hold() {
    let world = World::with(9).await;
    let folder = tempfile::tempdir().unwrap();
    let all = Selection::default();
    let html = vec!["text/*".to_owned()];
    let cases = [
        (Selection { prefix: Some("http://e.org/00".to_owned()), ..all.clone() }, 9),
        (Selection { prefix: Some("http://e.org/003".to_owned()), ..all.clone() }, 1),
        (Selection { since: Some(moment(2)), until: Some(moment(5)), ..all.clone() }, 3),
        (Selection { types: html.clone(), ..all.clone() }, 5),
        (Selection { types: html, since: Some(moment(2)), ..all.clone() }, 4),
        (Selection { types: vec!["image/png".to_owned()], ..all }, 0),
    ];
    for (number, (selection, expected)) in cases.into_iter().enumerate() {
        for format in [Format::JsonLines, Format::Parquet, Format::Tree, Format::Tar, dump()] {
            let name = format!("{number}-{}", serde_json::to_value(&format).unwrap()["format"]);
            let export = export::Export {
                selection: selection.clone(),
                ..World::export(format.clone(), &folder.path().join(name))
            };
            let (done, _) = world.run(&export).await.unwrap();
            assert_eq!(done.resources, expected, "{selection:?} as {format:?}");
        }
    }
}

#[tokio::test]
async fn what_the_store_has_not_as_it_was_judged_is_left_out_and_told() {
    let world = World::with(8).await;
    let folder = tempfile::tempdir().unwrap();
    // A small one and a large one.
    world.damage(1).await;
    world.damage(7).await;
    for format in [Format::Tree, Format::Tar, dump()] {
        let place = folder.path().join(serde_json::to_value(&format).unwrap()["format"].as_str().unwrap());
        let (done, damaged) = world.run(&World::export(format.clone(), &place)).await.unwrap();
        assert_eq!((done.resources, done.damaged), (6, 2));
        assert_eq!(damaged, ["http://e.org/001/file", "http://e.org/007/file"]);
        let found = read(&format, &place);
        assert!(!found.values().any(|bytes| bytes == &content(1) || bytes.len() == content(7).len()));
    }
}

#[tokio::test]
async fn nothing_that_is_there_is_overwritten() {
    let world = World::with(1).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    for (format, place) in [
        (Format::Tar, file.as_path()),
        (Format::JsonLines, file.as_path()),
        (Format::Tree, folder.path()),
        (Format::Parquet, folder.path()),
        (dump(), folder.path()),
    ] {
        let refused = world.run(&World::export(format, place)).await.unwrap_err();
        assert!(matches!(refused, ExportError::Refused(_)), "{refused}");
    }
    let mut to_stdout = World::export(Format::Tree, &file);
    to_stdout.to = Destination::Stdout;
    assert!(matches!(world.run(&to_stdout).await, Err(ExportError::Refused(_))));
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
