//! Exports that are stopped and resumed.

use std::ops::ControlFlow;

use export::{Destination, ExportError, Format, Seen};

use crate::read::read;
use crate::world::World;

const RESOURCES: usize = 10;

#[tokio::test]
async fn stopped_after_any_resource_and_asked_for_again_it_is_the_same_export() {
    let world = World::with(RESOURCES).await;
    let base = "http://e.org/dump/".parse().unwrap();
    for format in
        [Format::Tree, Format::Tar, Format::JsonLines, Format::Parquet, Format::ResourceDump { base }]
    {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole");
        let (expected, _) = world.run(&World::export(format.clone(), &whole)).await.unwrap();
        let expected_files = read(&format, &whole);
        let mut resumed = 0;
        for stop in 1..=RESOURCES {
            let place = folder.path().join(format!("stopped-{stop}"));
            let export = World::export(format.clone(), &place);
            let mut taken = 0;
            let mut goes = 0;
            let done = loop {
                goes += 1;
                let mut since = 0;
                let mut see = |seen: Seen<'_>| {
                    match seen {
                        Seen::Resumed(_) => resumed += 1,
                        _ => (since, taken) = (since + 1, taken + 1),
                    }
                    // Each attempt comes further than the previous one, or it would not end.
                    if since == stop + goes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                match world.watched(&export, &mut see).await {
                    Ok(done) => break done,
                    Err(ExportError::Stopped) => assert!(goes < 20),
                    Err(error) => panic!("{error}"),
                }
            };
            assert_eq!(done, expected, "{format:?} stopped after {stop}");
            assert!(read(&format, &place) == expected_files, "{format:?} stopped after {stop}");
            assert!(taken <= RESOURCES + 5 * goes, "{format:?}: {taken} resources in {goes} goes");
        }
        assert!(resumed > 0, "{format:?} was never gone on with");
    }
}

#[tokio::test]
async fn what_was_changed_meanwhile_is_not_gone_on_with() {
    let world = World::with(RESOURCES).await;
    let base = "http://e.org/dump/".parse().unwrap();
    for format in [Format::Tar, Format::JsonLines, Format::Parquet, Format::ResourceDump { base }] {
        let folder = tempfile::tempdir().unwrap();
        let export = World::export(format.clone(), &folder.path().join("begun"));
        let Destination::Path(place) = &export.to else { panic!("a path") };
        let mut seen = 0;
        let mut see = |_: Seen<'_>| {
            seen += 1;
            if seen == 8 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert!(matches!(world.watched(&export, &mut see).await, Err(ExportError::Stopped)));
        let written = match &format {
            Format::Parquet => place.join("part-00001.parquet"),
            Format::ResourceDump { .. } => place.join("package-00001.zip"),
            _ => place.clone(),
        };
        let bytes = std::fs::read(&written).unwrap();
        std::fs::remove_file(&written).unwrap();
        let refused = world.run(&export).await.unwrap_err().to_string();
        assert!(refused.contains("changed since the export was interrupted"), "{format:?}: {refused}");
        // Without its checkpoint, which a single file has beside it, the target can be exported anew.
        assert!(refused.contains("export.json, then export again"), "{format:?}: {refused}");
        std::fs::write(&written, &bytes).unwrap();
        assert_eq!(world.run(&export).await.unwrap().0.resources, RESOURCES as u64, "{format:?}");
    }
}

#[tokio::test]
async fn what_was_cut_off_before_its_first_note_is_begun_anew_and_a_harvest_is_left_alone() {
    let world = World::with(5).await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("tree");
    std::fs::create_dir_all(place.join(".thresher")).unwrap();
    std::fs::write(place.join(".thresher/.export-1"), "{").unwrap();
    let export = World::export(Format::Tree, &place);
    assert_eq!(world.run(&export).await.unwrap().0.resources, 5);
    assert!(!place.join(".thresher").exists());

    let harvest = folder.path().join("harvest");
    std::fs::create_dir_all(harvest.join(".thresher/packs")).unwrap();
    let refused = world.run(&World::export(Format::Tree, &harvest)).await.unwrap_err();
    assert!(refused.to_string().contains("is not empty"), "{refused}");
    assert!(harvest.join(".thresher/packs").exists());
}

#[tokio::test]
async fn what_was_begun_is_gone_on_with_only_by_the_same() {
    let world = World::with(5).await;
    let folder = tempfile::tempdir().unwrap();
    let tree = World::export(Format::Tree, &folder.path().join("tree"));
    let mut see = |_: Seen<'_>| ControlFlow::Break(());
    assert!(matches!(world.watched(&tree, &mut see).await, Err(ExportError::Stopped)));
    let mut other = tree.clone();
    other.selection.types = vec!["text/html".to_owned()];
    let refused = world.run(&other).await.unwrap_err();
    assert!(refused.to_string().contains("an unfinished export with other options"), "{refused}");
    assert_eq!(world.run(&tree).await.unwrap().0.resources, 5);
}
