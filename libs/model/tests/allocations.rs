//! Allocations when identifiers and messages are cloned, which happens many times per resource. A count, not
//! a time, so that it is the same wherever the tests run.

use std::sync::Arc;

use allocation_counter::measure;
use fixity::Computed;
use model::{
    Assurance, JobId, Location, Method, Origin, Outcome, OutcomeResult, Outcomes, PackId, ResourceUri, RunId,
    Seq, SetId, SourceId, StoredBitstream, Validators,
};

fn outcome(n: u64, source: &SourceId, pack: PackId) -> Outcome {
    let location =
        Location::Pack { source: source.clone(), pack, offset: n, stored_length: 1, method: Method::Stored };
    let stored = StoredBitstream {
        location,
        computed: Computed::of(b"x"),
        media_type: Some("text/plain".to_owned()),
        encoding: None,
        validators: Validators { etag: Some("\"1\"".to_owned()), ..Validators::default() },
        modified: None,
        final_url: None,
    };
    let result = OutcomeResult::Verified { stored: Arc::new(stored), assurance: Assurance::None };
    Outcome { uri: format!("http://h/{n}").parse().unwrap(), seq: Seq::new(n), result, patch: None }
}

#[test]
fn a_clone_of_a_name_allocates_nothing() {
    let uri: ResourceUri = "http://h/a".parse().unwrap();
    let names = (SetId::new("http://h/caps"), "h-1".parse::<SourceId>().unwrap(), uri);
    let cloned = measure(|| drop(names.clone()));
    assert_eq!(cloned.count_total, 0);
}

#[test]
fn a_clone_of_outcomes_allocates_for_their_list_and_origin_alone() {
    let source: SourceId = "h-1".parse().unwrap();
    let origin: Origin = "http://h:80".parse().unwrap();
    let pack = PackId::fresh();
    let items = (0..100).map(|n| outcome(n, &source, pack)).collect();
    let id = JobId::fresh();
    let run = RunId::fresh();
    let outcomes = Outcomes { id, source, run, origin, items, requests: 100, elapsed_ms: 1 };
    let cloned = measure(|| drop(outcomes.clone()));
    assert_eq!(cloned.count_total, 2);
}
