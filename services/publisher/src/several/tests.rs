//! What is above several sets.

use axum::http::HeaderMap;

use super::*;

fn several(sources: &[(&str, Readers)]) -> Several {
    let base = Base::new("http://mirror.example/".parse().unwrap()).unwrap();
    let all = Several::new(base, sources.len(), None, &Settings::default());
    for (source, readers) in sources {
        let marker = SourceMarker::new(source.parse().unwrap(), "http://e.org/");
        all.put(Member { marker, readers: readers.clone(), set: None });
    }
    all
}

fn link(all: &Several, path: &str) -> String {
    let headers = HeaderMap::new();
    let reader = Reader { address: "10.3.0.1".parse().unwrap(), headers: &headers };
    let answer = all.answer(Some(path), &Method::GET, reader);
    answer.headers()[header::LINK].to_str().unwrap().to_owned()
}

#[test]
fn what_is_above_the_sets_leads_to_those_that_the_reader_may_read() {
    let near = Readers { tokens: None, networks: Some(["10.2.0.0/16".parse().unwrap()].into()) };
    let all = several(&[("one", Readers::default()), ("near", near), ("two", Readers::default())]);
    let expected = "<http://mirror.example/one/capabilitylist.xml>; rel=\"resourcesync\", \
                    <http://mirror.example/two/capabilitylist.xml>; rel=\"resourcesync\"";
    for path in [paths::PAGE, paths::ROBOTS, paths::DESCRIPTION, "nothing"] {
        assert_eq!(link(&all, path), expected, "{path}");
    }
}

#[test]
fn documents_of_all_sets_are_written_once_until_a_set_comes_or_goes() {
    let all = several(&[("one", Readers::default()), ("two", Readers::default())]);
    let written = || all.read().documents.clone();
    assert!(written().is_none());
    link(&all, paths::PAGE);
    let first = written().unwrap();
    link(&all, paths::ROBOTS);
    assert!(Arc::ptr_eq(&first, &written().unwrap()));
    all.remove("two");
    assert!(written().is_none());
    assert!(!link(&all, paths::PAGE).contains("two"));
}
