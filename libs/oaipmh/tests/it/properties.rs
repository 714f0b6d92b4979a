//! Properties that hold for any input.

use oaipmh::{
    AnswerWriter, Granularity, Limits, Options, RecordHeader, Resumption, Status, Strictness, Token, Verb,
    canonicalize, comparison_digest, links,
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

/// The beginnings of records, one of each format.
const ROOTS: [&str; 17] = [
    "oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/'",
    "record xmlns='http://purl.org/dc/terms/'",
    "thesis xmlns='http://www.ndltd.org/standards/metadata/etdms/1.0/'",
    "mods xmlns='http://www.loc.gov/mods/v3'",
    "mets xmlns='http://www.loc.gov/METS/'",
    "record xmlns='http://www.loc.gov/MARC21/slim'",
    "DIDL xmlns='urn:mpeg:mpeg21:2002:02-DIDL-NS'",
    "entry xmlns='http://www.w3.org/2005/Atom'",
    "resource xmlns='http://namespace.openaire.eu/schema/oaire/'",
    "rioxx",
    "jpcoar xmlns='https://github.com/JPCOAR/schema/blob/master/2.0/'",
    "resource xmlns='http://datacite.org/schema/kernel-4'",
    "oai_datacite xmlns='http://schema.datacite.org/oai/oai-1.1/'",
    "RDF xmlns='http://www.w3.org/1999/02/22-rdf-syntax-ns#'",
    "lom xmlns='http://ltsc.ieee.org/xsd/LOM'",
    "metadata xmlns='http://www.lyncode.com/xoai'",
    "unknown xmlns='http://e.org/'",
];

/// Elements of all formats, as a tree of random shape.
fn element() -> impl Strategy<Value = String> {
    const NAMES: [&str; 22] = [
        "identifier",
        "relation",
        "format",
        "location",
        "url",
        "fileSec",
        "fileGrp",
        "file",
        "FLocat",
        "datafield",
        "subfield",
        "Item",
        "Descriptor",
        "Statement",
        "Component",
        "Resource",
        "link",
        "URI",
        "Aggregation",
        "isShownBy",
        "element",
        "field",
    ];
    const ATTRIBUTES: [&str; 16] = [
        "name='bundles'",
        "name='bundle'",
        "name='url'",
        "USE='ORIGINAL'",
        "USE='\u{e9}'",
        "CHECKSUM=' a b '",
        "CHECKSUMTYPE='MD5'",
        "SIZE='99999999999999999999'",
        "href='https://e.org/\u{e9}#x'",
        "href='http://['",
        "tag='856'",
        "code='u'",
        "rel='item'",
        "identifierType='HDL'",
        "ref='HTTPS://E.org'",
        "resource='http://e.org/'",
    ];
    let text = prop_oneof![
        Just(String::new()),
        Just("10.1234/\u{e9}\u{e9}".to_owned()),
        Just("doi:10.".to_owned()),
        Just("\u{e9}\u{e9}\u{e9}\u{e9}".to_owned()),
        Just("https://e.org/article/view/1/2".to_owned()),
        Just("https://e.org/article/view/".to_owned()),
        Just("https://doi.org/10.1/x".to_owned()),
        Just("application/pdf".to_owned()),
        "[a-z:/.0-9 ]{0,12}",
        "https?://[a-z.0-9]{1,6}/[a-z]{0,3}",
    ];
    let attributes = || proptest::sample::subsequence(ATTRIBUTES.to_vec(), 0..4);
    let leaf = (proptest::sample::select(NAMES.to_vec()), attributes(), text)
        .prop_map(|(name, attributes, text)| tagged(name, &attributes, &text));
    leaf.prop_recursive(6, 60, 6, move |inner| {
        (
            proptest::sample::select(NAMES.to_vec()),
            proptest::sample::subsequence(ATTRIBUTES.to_vec(), 0..4),
            proptest::collection::vec(inner, 0..6),
        )
            .prop_map(|(name, attributes, inner)| tagged(name, &attributes, &inner.concat()))
    })
}

fn tagged(name: &str, attributes: &[&str], content: &str) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let once = attributes.iter().filter(|text| {
        let name = text.split('=').next().unwrap_or_default();
        let is_new = !seen.contains(&name);
        seen.push(name);
        is_new
    });
    let attributes: String = once.map(|text| format!(" {text}")).collect();
    format!("<{name}{attributes}>{content}</{name}>")
}

proptest! {
    #[test]
    fn links_of_any_record_are_bounded_each_once_and_on_the_web(
        root in proptest::sample::select(ROOTS.to_vec()),
        content in proptest::collection::vec(element(), 0..8),
        most in 0_usize..6,
    ) {
        let name = root.split(' ').next().unwrap_or_default();
        let document = format!("<{root}>{}</{name}>", content.concat());
        let limits = Limits::default();
        let metadata = canonicalize(&document, &limits).unwrap();
        let found = links(&metadata, &limits, most);
        prop_assert!(found.links.len() <= most);
        let all = links(&metadata, &limits, usize::MAX);
        prop_assert_eq!(found.more, all.links.len() > most);
        for (n, link) in all.links.iter().enumerate() {
            let href = link.href.to_ascii_lowercase();
            prop_assert!(href.starts_with("http://") || href.starts_with("https://"), "{}", href);
            prop_assert!(all.links[..n].iter().all(|before| before.href != link.href));
            let hash = link.to_link().hash.unwrap_or_default();
            prop_assert!(!hash.contains(char::is_whitespace), "{}", hash);
        }
    }

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
