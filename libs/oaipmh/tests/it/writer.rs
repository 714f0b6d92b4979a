//! Answers that are written are read again, strictly.

use oaipmh::{
    Answer, AnswerWriter, DeletedRecord, ErrorCode, Granularity, Identify, Item, KnownFormat, ProtocolError,
    SetItem, Verb,
};

use super::common::read_strict;

fn writer(verb: &str) -> AnswerWriter {
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    AnswerWriter::new(now, "https://e.org/oai", &[("verb", verb)], Granularity::Day).unwrap()
}

fn read(text: &str) -> (Vec<Item>, Answer) {
    let reading = read_strict(text);
    assert_eq!(reading.error, None, "{text}");
    assert!(reading.answer.quirks.is_empty(), "{:?}", reading.answer.quirks);
    (reading.items, reading.answer)
}

#[test]
fn identify_is_read_as_written() {
    let identify = Identify {
        repository_name: "A & B".to_owned(),
        base_url: "https://e.org/oai".to_owned(),
        protocol_version: "2.0".to_owned(),
        admin_emails: vec!["a@e.org".to_owned(), "b@e.org".to_owned()],
        earliest_datestamp: Some("2001-02-03".parse().unwrap()),
        deleted_record: Some(DeletedRecord::Transient),
        granularity: Some(Granularity::Day),
        compression: vec!["gzip".to_owned()],
        descriptions: vec!["urn:x".to_owned()],
    };
    let text = writer("Identify").identify(&identify, &["<x xmlns=\"urn:x\"><y/></x>".to_owned()]).unwrap();
    let (_, answer) = read(&text);
    assert_eq!(answer.identify, Some(identify));
    assert_eq!(answer.request.get("verb"), Some("Identify"));
    assert!(answer.identify.unwrap().is_supported());
}

#[test]
fn errors_sets_and_formats_are_read_as_written() {
    let errors = [
        ProtocolError::new(ErrorCode::BadArgument, "set < is \"empty\""),
        ProtocolError::new(ErrorCode::BadVerb, ""),
    ];
    assert_eq!(read(&writer("ListSets").errors(&errors).unwrap()).1.errors, errors);

    let set = SetItem { spec: "a:b".to_owned(), name: "A & B".to_owned() };
    let mut sets = writer("ListSets");
    sets.open(Verb::ListSets);
    sets.set(&set).unwrap();
    assert_eq!(read(&sets.finish(None).unwrap()).0, [Item::Set(set)]);

    let mut formats = writer("ListMetadataFormats");
    formats.open(Verb::ListMetadataFormats);
    let mets = KnownFormat::Mets.metadata_format();
    formats.format(&mets).unwrap();
    assert_eq!(read(&formats.finish(None).unwrap()).0, [Item::Format(mets)]);
}

#[test]
fn what_xml_cannot_hold_is_refused_and_leaves_the_answer_whole() {
    let mut sets = writer("ListSets");
    sets.open(Verb::ListSets);
    let bad = SetItem { spec: "a".to_owned(), name: "\u{1}".to_owned() };
    let error = sets.set(&bad).unwrap_err();
    assert_eq!(error.to_string(), "setName holds the character U+0001, which XML cannot hold");
    let good = SetItem { name: "A".to_owned(), ..bad };
    sets.set(&good).unwrap();
    assert_eq!(read(&sets.finish(None).unwrap()).0, [Item::Set(good)]);
}
