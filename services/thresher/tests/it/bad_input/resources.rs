//! Resources that are not as listed.

use simulated_source::{ChangeKind, Fault, Size};

use crate::bad_input::small;
use crate::common::{Destination, in_step, requests_at, source};

#[tokio::test]
async fn whatever_is_wrong_with_a_new_version_the_one_held_is_kept_until_it_is_mended() {
    let (source, copy) = in_step(small(30)).await;
    let elsewhere = source.resource_uri(1).replace(&source.url(), "");
    let wrongs = [
        (10, Fault::WrongDigest, "digest-mismatch"),
        (11, Fault::WrongLength, "length-mismatch"),
        (12, Fault::status(404), "http-client-error"),
        (13, Fault::status(500), "http-server-error"),
        (14, Fault::cut_off(0), "interrupted"),
        (15, Fault::HtmlPage, "mismatch"),
        (16, Fault::Redirect(elsewhere), "mismatch"),
    ];
    let before = copy.ls();
    let view = copy.view();
    source.change_one(8, ChangeKind::Updated);
    for (index, fault, _) in &wrongs {
        source.change_one(*index, ChangeKind::Updated);
        source.set_fault(*index, fault.clone());
    }
    let run = copy.sync(&source.well_known()).exits(1);
    assert_eq!((run.count("failed"), run.count("stored")), (wrongs.len() as u64, 1), "{run}");
    assert_eq!(run.json()["in_sync"], false, "{run}");
    // Nothing has changed since, but no problem is forgotten: the exit status and the list still show it.
    let again = copy.sync(&source.well_known()).exits(1);
    for run in [&run, &again] {
        let named =
            wrongs.iter().filter(|(index, _, _)| run.stderr.contains(&source.resource_uri(*index))).count();
        assert!(named > 0, "the first problems are named: {run}");
        assert!(run.stderr.contains(&wrongs.len().to_string()), "and all are counted: {run}");
    }
    let ls = copy.ls();
    for (index, fault, reason) in &wrongs {
        let uri = source.resource_uri(*index);
        let held = &ls[&uri];
        let before = &before[&uri];
        assert_eq!((held.state.as_str(), &held.sha256), ("problem", &before.sha256), "{fault:?}");
        let bytes = copy.cat(&uri);
        let file = copy.file(&uri);
        assert!(view.values().any(|before| *before == bytes), "cat gives what was verified: {fault:?}");
        assert_eq!(file, Some(bytes), "and so does the view: {fault:?}");
        let story = copy.explain(&uri);
        assert!(story.contains(reason), "{reason} is part of the story:\n{story}");
    }

    source.clear_faults();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_digest_mismatch_is_recorded_with_both_values() {
    let source = source(small(20)).await;
    source.set_fault(3, Fault::WrongDigest);
    let uri = source.resource_uri(3);
    let declared = source.expected().find(|now| now.uri == uri).unwrap().sha256;
    // The Source serves the true body except for its first byte.
    let mut served = source.body(&uri).unwrap();
    served[0] ^= 0xff;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(1).says(&[&uri]);
    let story = copy.explain(&uri);
    let json = copy.run("explain", &[&uri, "--json"]).exits(0).json();
    let evidence = &json["problem"]["evidence"];
    assert!(evidence["expected"].to_string().contains(&declared), "{json}");
    let computed = evidence["computed"].to_string();
    assert!(computed.contains("sha-256:") && !computed.contains(&declared), "{json}");
    let shown = computed.split("sha-256:").nth(1).unwrap().split('"').next().unwrap();
    assert!(story.contains(&declared) && story.contains(shown), "both are told:\n{story}");
    assert_eq!(copy.file(&uri), None, "unverified bytes are no file");
    assert_eq!(copy.state(&uri).as_deref(), Some("problem"));
    copy.run("cat", &[&uri]).exits(1).complains(&[&uri], &["explain"]);
    assert_eq!(copy.present().len(), 19, "the others are held");
}

#[tokio::test]
async fn passing_troubles_are_got_over() {
    let source = source(small(30).size(Size::Fixed(50_000))).await;
    source.set_fault(1, Fault::busy(1, 2));
    source.set_fault(2, Fault::CutOff { after: 20_000, times: Some(2) });
    source.set_fault(3, Fault::Status { code: 500, retry_after: None, times: Some(1) });
    source.set_fault(source.resource_list(), Fault::Status { code: 503, retry_after: None, times: Some(1) });
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_source_that_wants_an_hour_of_rest_is_left_alone_and_what_came_before_is_kept() {
    let source = source(small(30)).await;
    source.set_fault(3, Fault::busy(3_600, 1_000));
    let copy = Destination::directory();
    let run = copy.sync(&source.well_known());
    assert!(matches!(run.exit, Some(1 | 3)), "it neither waits for an hour nor calls itself in sync: {run}");
    assert_eq!(
        requests_at(&source, &source.resource_uri(3)),
        1,
        "it is not asked again before its time: {run}"
    );
    assert!(run.stderr.contains(&source.url()) && run.stderr.contains("again"), "{run}");
    let held = copy.present();
    let view = copy.view();
    assert_eq!(held.len(), view.len());

    let again = copy.sync(&source.well_known());
    assert!(matches!(again.exit, Some(1 | 3)), "{again}");
    assert!(requests_at(&source, &source.resource_uri(3)) <= 2, "at most once in each run: {again}");
    let held_now = copy.present();
    let view_now = copy.view();
    assert!(held.iter().all(|(uri, version)| held_now.get(uri) == Some(version)));
    assert!(view.iter().all(|(name, bytes)| view_now.get(name) == Some(bytes)));
}
