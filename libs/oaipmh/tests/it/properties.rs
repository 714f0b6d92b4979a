//! Properties that hold for any input.

use oaipmh::{
    AnswerWriter, Granularity, Limits, Options, RecordHeader, Resumption, Status, Strictness, Token, Verb,
    canonicalize, comparison_digest,
};
use proptest::prelude::*;

use super::common::{DC, list, read_chunks, read_whole, read_with, records};

/// Small enough for the generator to reach.
fn narrow() -> Options {
    let limits = Limits {
        max_record_bytes: 600,
        max_text_bytes: 60,
        max_field_bytes: 40,
        max_token_bytes: 20,
        max_depth: 6,
        max_attributes: 4,
        max_sets_per_record: 2,
        max_abouts: 1,
        max_items: 6,
        max_page_bytes: 3_000,
        ..Limits::default()
    };
    Options { limits, ..Options::default() }
}

/// Pieces of answers, whole and broken.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("<record>".to_owned()),
        Just("</record>".to_owned()),
        Just("<header>".to_owned()),
        Just("<header status=\"deleted\">".to_owned()),
        Just("</header>".to_owned()),
        Just("<identifier>a</identifier>".to_owned()),
        Just("<datestamp>2026-01-01</datestamp>".to_owned()),
        Just("<setSpec>a:b</setSpec>".to_owned()),
        Just("<metadata>".to_owned()),
        Just("</metadata>".to_owned()),
        Just(format!("<oai_dc:dc {DC}>")),
        Just("</oai_dc:dc>".to_owned()),
        Just("<dc:title>t</dc:title>".to_owned()),
        Just("<about/>".to_owned()),
        Just("<![CDATA[".to_owned()),
        Just("]]>".to_owned()),
        Just("<!--".to_owned()),
        Just("-->".to_owned()),
        Just("<?xml?>".to_owned()),
        Just("<resumptionToken>t</resumptionToken>".to_owned()),
        Just("</ListRecords>".to_owned()),
        Just("<ListRecords>".to_owned()),
        Just("</OAI-PMH>".to_owned()),
        Just("<error code='x'/>".to_owned()),
        Just("<a b='\"' c=\"".to_owned()),
        Just("\u{b}".to_owned()),
        Just("&amp;&x;&#0;".to_owned()),
        Just(records(1..=1)),
        "[ -;=-~\n]{0,12}",
    ]
}

fn document() -> impl Strategy<Value = String> {
    (any::<bool>(), proptest::collection::vec(piece(), 0..24)).prop_map(|(whole, pieces)| {
        let content = pieces.concat();
        if whole { list(&content) } else { list(&content).replace("</ListRecords>", "") }
    })
}

proptest! {
    #[test]
    fn how_bytes_are_split_changes_nothing(document in document(), amount in 1_usize..50) {
        for options in [Options::default(), narrow()] {
            let whole = read_with(&document, options.clone());
            prop_assert_eq!(&read_chunks(document.as_bytes(), amount, options.clone()), &whole);
            prop_assert_eq!(&read_chunks(document.as_bytes(), 1, options), &whole);
        }
    }

    #[test]
    fn any_bytes_end_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), amount in 1_usize..9) {
        let whole = read_whole(&bytes);
        prop_assert!(whole.answer.complete || whole.error.is_some());
        if !bytes.starts_with(&[0x1f, 0x8b]) {
            prop_assert_eq!(read_chunks(&bytes, amount, Options::default()), whole);
        }
    }

    #[test]
    fn strict_reading_returns_a_prefix(document in document()) {
        let tolerant = read_whole(&document);
        let strict = read_with(&document, Options { strictness: Strictness::Strict, ..Options::default() });
        prop_assert_eq!(&strict.items[..], &tolerant.items[..strict.items.len()]);
        if strict.error.is_none() {
            prop_assert!(strict.answer.quirks.iter().all(|(quirk, _)| !quirk.is_refused_when_strict()));
        }
    }

    #[test]
    fn every_record_is_canonical_and_within_the_limits(document in document()) {
        let options = narrow();
        let reading = read_with(&document, options.clone());
        prop_assert!(reading.items.len() as u64 <= options.limits.max_items);
        for record in reading.records() {
            let header = &record.header;
            prop_assert!(!header.identifier.is_empty() && header.identifier.len() <= 40 && header.sets.len() <= 2);
            prop_assert_eq!(record.metadata.is_none(), header.is_deleted());
            if let Some(metadata) = &record.metadata {
                let again = canonicalize(&metadata.document, &Limits::default()).unwrap();
                prop_assert_eq!(&again, metadata);
                comparison_digest(&metadata.document, &Limits::default()).unwrap();
            }
        }
    }

    #[test]
    fn a_broken_record_does_not_change_those_behind_it(pieces in proptest::collection::vec(piece(), 0..6)) {
        let content = pieces.concat();
        // These end the list, or are records of their own.
        prop_assume!(!content.contains("</ListRecords>") && !content.contains("</OAI-PMH>"));
        prop_assume!(!content.contains("<resumptionToken>") && !content.contains("<record>"));
        // Behind the record's end, a comment without an end is the answer's.
        prop_assume!(!content.contains("</record>") || !(content.contains("<!--") || content.contains("<![CDATA[")));
        let page = list(&format!("{}<record>{content}{}", records(1..=2), records(4..=5)));
        let reading = read_whole(&page);
        let numbers: Vec<_> =
            reading.records().iter().map(|record| record.header.identifier.as_str()).collect();
        prop_assert!(numbers.starts_with(&["oai:e.org:1", "oai:e.org:2"]), "{:?}", numbers);
        prop_assert!(numbers.ends_with(&["oai:e.org:4", "oai:e.org:5"]), "{:?} of {}", numbers, page);
    }

    #[test]
    fn what_is_written_is_read(
        headers in proptest::collection::vec(header(), 0..8),
        token in proptest::option::of("[!-~]{1,30}"),
        size in proptest::option::of(any::<u64>()),
    ) {
        let metadata = canonicalize(&format!("<oai_dc:dc {DC}><dc:title>a &lt; b</dc:title></oai_dc:dc>"), &Limits::default()).unwrap();
        let resumption = Resumption {
            token: token.as_deref().and_then(Token::new),
            complete_list_size: size,
            ..Resumption::default()
        };
        let arguments = [("verb", "ListRecords"), ("metadataPrefix", "oai_dc")];
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut writer =
            AnswerWriter::new(now, "https://e.org/oai?a=1&b=2", &arguments, Granularity::Second).unwrap();
        writer.open(Verb::ListRecords);
        for header in &headers {
            let metadata = (!header.is_deleted()).then_some(metadata.document.as_str());
            writer.record(header, metadata, &[]).unwrap();
        }
        let text = writer.finish(Some(&resumption)).unwrap();
        let reading = read_whole(&text);
        prop_assert_eq!(&reading.error, &None);
        let read: Vec<_> = reading.records().iter().map(|record| record.header.clone()).collect();
        prop_assert_eq!(read, headers);
        prop_assert_eq!(reading.answer.resumption.as_ref(), Some(&resumption));
        for record in reading.records() {
            let own = record.metadata.as_ref().map(|own| own.document.as_str());
            prop_assert_eq!(own, (!record.header.is_deleted()).then_some(metadata.document.as_str()));
        }
        prop_assert_eq!(&reading.answer.request.base_url, "https://e.org/oai?a=1&b=2");
    }
}

fn header() -> impl Strategy<Value = RecordHeader> {
    let second = -2_000_000_000_i64..4_000_000_000;
    let sets = proptest::collection::btree_set("[a-z:]{1,6}", 0..3);
    ("[!-~é\u{1f4da}]{1,30}", second, sets, any::<bool>()).prop_map(|(identifier, second, sets, deleted)| {
        RecordHeader {
            identifier,
            datestamp: jiff::Timestamp::from_second(second).ok().map(Into::into),
            sets: sets.into_iter().collect(),
            status: if deleted { Status::Deleted } else { Status::Live },
        }
    })
}
