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

fn near() -> Readers {
    Readers { tokens: None, networks: Some(["10.2.0.0/16".parse().unwrap()].into()) }
}

/// The documents for a reader at this address.
fn documents(all: &Several, address: &str) -> Arc<Documents> {
    let headers = HeaderMap::new();
    let reader = Reader { address: address.parse().unwrap(), headers: &headers };
    let Ok(above) = all.documents(reader) else { panic!("a reader of some sets") };
    above.documents
}

fn link(all: &Several, path: &str) -> String {
    let headers = HeaderMap::new();
    let reader = Reader { address: "10.3.0.1".parse().unwrap(), headers: &headers };
    let answer = all.answer(Some(path), &Method::GET, reader);
    answer.headers()[header::LINK].to_str().unwrap().to_owned()
}

#[test]
fn what_is_above_the_sets_leads_to_those_that_the_reader_may_read() {
    let all = several(&[("one", Readers::default()), ("near", near()), ("two", Readers::default())]);
    let expected = "<http://mirror.example/one/capabilitylist.xml>; rel=\"resourcesync\", \
                    <http://mirror.example/two/capabilitylist.xml>; rel=\"resourcesync\"";
    for path in [paths::PAGE, paths::ROBOTS, paths::DESCRIPTION, "nothing"] {
        assert_eq!(link(&all, path), expected, "{path}");
    }
}

#[test]
fn documents_of_all_sets_are_written_once_until_a_set_comes_or_goes() {
    let all = several(&[("one", Readers::default()), ("two", Readers::default())]);
    let first = documents(&all, "10.3.0.1");
    assert!(Arc::ptr_eq(&first, &documents(&all, "10.2.0.1")));
    all.remove("two");
    assert!(!Arc::ptr_eq(&first, &documents(&all, "10.3.0.1")));
    assert!(!link(&all, paths::PAGE).contains("two"));
}

#[test]
fn readers_of_the_same_sets_share_their_documents_until_a_set_gets_other_readers() {
    let all = several(&[("one", Readers::default()), ("near", near()), ("two", Readers::default())]);
    let (far, close) = (documents(&all, "10.3.0.1"), documents(&all, "10.2.0.1"));
    assert!(!Arc::ptr_eq(&far, &close));
    for _ in 0..2 {
        assert!(Arc::ptr_eq(&far, &documents(&all, "10.4.0.1")));
        assert!(Arc::ptr_eq(&close, &documents(&all, "10.2.9.9")));
    }
    let since = || all.read().since;
    let before = since();
    all.set_readers("near", near());
    assert_eq!(since(), before, "they are the same");
    all.set_readers("two", near());
    assert!(since() > before, "a reader that asks by the time is to see it");
    let expected = "<http://mirror.example/one/capabilitylist.xml>; rel=\"resourcesync\"";
    assert_eq!(link(&all, paths::PAGE), expected);
}

#[test]
fn other_tokens_move_the_time_of_what_is_above_the_sets_for_those_who_see_less_or_more() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let both = "- {name: a, token: correct horse battery}\n- {name: b, token: another long token}\n";
    std::fs::write(file.path(), both).unwrap();
    let tokens = crate::access::Tokens::of_file(file.path()).unwrap();
    let closed = Readers { tokens: Some(tokens.clone()), networks: None };
    let all = several(&[("closed", closed), ("public", Readers::default())]);
    let headers =
        HeaderMap::from_iter([(header::AUTHORIZATION, "Bearer correct horse battery".parse().unwrap())]);
    let reader = Reader { address: "10.3.0.1".parse().unwrap(), headers: &headers };
    let seen =
        || all.documents(reader).map(|above| (above.since, above.documents.link.clone())).ok().unwrap();
    let (before, with_closed) = seen();
    tokens.take(both).unwrap();
    assert_eq!(seen(), (before, with_closed.clone()), "they are the same");
    tokens.take("- {name: b, token: another long token}\n").unwrap();
    let (removed, without) = seen();
    assert!(without != with_closed && removed > before, "a reader that asks by the time is to see it");
    tokens.take(both).unwrap();
    let (added, with_closed_again) = seen();
    assert!(with_closed_again == with_closed && added > removed, "{added}, {removed}");
}

#[test]
fn documents_of_a_few_views_are_kept() {
    let only = |network: &str| Readers { tokens: None, networks: Some([network.parse().unwrap()].into()) };
    let mut sets = vec![("public".to_owned(), Readers::default())];
    sets.extend((1..=20).map(|number| (format!("n{number}"), only(&format!("10.{number}.0.0/16")))));
    let sets: Vec<_> = sets.iter().map(|(name, readers)| (name.as_str(), readers.clone())).collect();
    let all = several(&sets);
    for number in 1..=20 {
        documents(&all, &format!("10.{number}.0.1"));
    }
    assert_eq!(all.read().documents().len(), MOST_VIEWS.get());
}
