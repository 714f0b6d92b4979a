//! Properties of all documents: writing and reading is identity, the chunks of the bytes do not matter, and
//! the reader never panics.

use std::io::{Read, Write};

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use resourcesync::{
    Capability, Change, Datetime, Entry, Header, Item, Link, Metadata, Options, Position, Reader, Root,
    Summary, Writer,
};

/// Any text that survives trimming, including XML's special characters, line ends and characters beyond
/// ASCII.
fn text() -> impl Strategy<Value = String> {
    "[!-~é漢😀]([ -~\n\té漢😀]{0,20}[!-~é漢😀])?"
}

fn uri() -> impl Strategy<Value = String> {
    "https?://example\\.com/[!-~é]{0,20}"
}

fn datetime() -> impl Strategy<Value = Datetime> {
    (0..4_000_000_000_i64, prop_oneof![Just(0), 0..1_000_000_000])
        .prop_map(|(second, nano)| jiff::Timestamp::new(second, nano).unwrap().into())
}

fn capability() -> impl Strategy<Value = Capability> {
    prop_oneof![
        Just(Capability::Description),
        Just(Capability::CapabilityList),
        Just(Capability::ResourceList),
        Just(Capability::ResourceDump),
        Just(Capability::ResourceDumpManifest),
        Just(Capability::ChangeList),
        Just(Capability::ChangeDump),
        Just(Capability::ChangeDumpManifest),
        Just(Capability::ChangeNotification),
        "[a-z]{1,8}x".prop_map(Capability::Other),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![Just(Change::Created), Just(Change::Updated), Just(Change::Deleted)]
}

prop_compose! {
    fn metadata()(
        capability in option::of(capability()),
        change in option::of(change()),
        times in (option::of(datetime()), option::of(datetime()), option::of(datetime())),
        interval in (option::of(datetime()), option::of(datetime())),
        hash in option::of(text()),
        length in option::of(any::<u64>()),
        media_type in option::of(text()),
        encoding in option::of(text()),
        path in option::of(text()),
    ) -> Metadata {
        let (datetime, at, completed) = times;
        let (from, until) = interval;
        Metadata { capability, change, datetime, at, completed, from, until, hash, length, media_type, encoding, path }
    }
}

prop_compose! {
    fn link()(
        rel in "[a-z]{1,12}",
        href in uri(),
        hash in option::of(text()),
        length in option::of(any::<u64>()),
        media_type in option::of(text()),
        encoding in option::of(text()),
        modified in option::of(datetime()),
        path in option::of(text()),
        pri in option::of(1_u32..=999_999),
        other in btree_map("[a-z]{1,4}[0-9]", text(), 0..3),
    ) -> Link {
        Link { rel, href, hash, length, media_type, encoding, modified, path, pri, other }
    }
}

prop_compose! {
    fn entry()(
        loc in uri(),
        lastmod in option::of(datetime()),
        change_frequency in option::of(text()),
        priority in option::of(text()),
        metadata in metadata(),
        links in vec(link(), 0..3),
    ) -> Entry {
        Entry { loc, lastmod, change_frequency, priority, metadata, links, position: Position::default() }
    }
}

prop_compose! {
    fn header()(
        root in prop_oneof![Just(Root::UrlSet), Just(Root::SitemapIndex)],
        capability in option::of(capability()),
        snapshot in (option::of(datetime()), option::of(datetime())),
        interval in (option::of(datetime()), option::of(datetime())),
        links in vec(link(), 0..3),
    ) -> Header {
        let ((at, completed), (from, until)) = (snapshot, interval);
        Header { root, capability, at, completed, from, until, links }
    }
}

fn write(header: &Header, entries: &[Entry]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    entries.iter().for_each(|entry| writer.write(entry).unwrap());
    writer.finish().unwrap()
}

/// The complete result of a reading.
#[derive(Debug, PartialEq)]
struct Reading {
    header: Option<Header>,
    items: Vec<Item>,
    error: Option<String>,
    summary: Summary,
}

fn read(bytes: impl Read) -> Reading {
    let mut reader = Reader::new(bytes, Options::default()).unwrap();
    let header = reader.header().ok().cloned();
    let mut items = Vec::new();
    let error = loop {
        match reader.next() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    Reading { header, items, error, summary: reader.summary() }
}

/// Returns at most this many bytes at a time, one amount after the other.
struct Cut<'b> {
    bytes: &'b [u8],
    amounts: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl Read for Cut<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let amount = self.amounts.next().unwrap_or(1).min(buf.len());
        self.bytes.read(&mut buf[..amount])
    }
}

fn cut(bytes: &[u8], amounts: Vec<usize>) -> Cut<'_> {
    Cut { bytes, amounts: amounts.into_iter().cycle() }
}

/// Documents as sources send them, some with quirks.
const ODD: &[&str] = &[
    include_str!("examples/ex23.xml"),
    include_str!("examples/ex24.xml"),
    include_str!("examples/ex28-as-printed-malformed.xml"),
    "\u{feff}\n<?xml version='1.0'?><sit:urlset xmlns:sit='https://www.sitemaps.org/schemas/sitemap/0.9/' xmlns:i='urn:i'>
     <sit:url><i:image><i:loc>x</i:loc></i:image><sit:loc> http://e.org/\u{e9}?a&amp;b&c </sit:loc></sit:url>
     <!-- c --><sit:url><sit:lastmod>2020-03-18 01:20:10</sit:lastmod></sit:url></sit:urlset><br>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn writing_and_reading_is_identity(header in header(), entries in vec(entry(), 0..4)) {
        let reading = read(&write(&header, &entries)[..]);
        prop_assert_eq!(reading.error, None);
        prop_assert_eq!(reading.header, Some(header));
        let read: Vec<Entry> = reading.items.into_iter().map(|item| match item {
            Item::Entry(entry) => Entry { position: Position::default(), ..*entry },
            Item::Bad(bad) => panic!("{bad:?}"),
        }).collect();
        prop_assert_eq!(read, entries);
        prop_assert!(reading.summary.complete);
    }

    #[test]
    fn it_does_not_matter_how_the_bytes_arrive(
        which in 0..ODD.len(),
        amounts in vec(1_usize..40, 1..8),
        gzip in any::<bool>(),
    ) {
        let mut bytes = ODD[which].as_bytes().to_vec();
        if gzip {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&bytes).unwrap();
            bytes = encoder.finish().unwrap();
        }
        prop_assert_eq!(read(cut(&bytes, amounts)), read(&bytes[..]));
    }

    #[test]
    fn mutated_bytes_never_panic_and_read_the_same_however_cut(
        which in 0..ODD.len(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6),
        amounts in vec(1_usize..40, 1..8),
    ) {
        let mut bytes = ODD[which].as_bytes().to_vec();
        for (index, byte, what) in changes {
            let at = index.index(bytes.len());
            match what {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        prop_assert_eq!(read(cut(&bytes, amounts)), read(&bytes[..]));
    }

    #[test]
    fn any_bytes_at_all_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        read(&bytes[..]);
    }
}
