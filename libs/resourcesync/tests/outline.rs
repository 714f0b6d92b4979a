//! Entries in the common shape are read straight from the buffer, all others token by token. With a buffer of
//! 16 bytes, which no entry fits into, every one is read token by token. These tests read each document in
//! both ways, and in between, and compare the complete results.

use std::fs;
use std::io::{self, Read};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use resourcesync::{Header, Item, Limits, Mode, Options, Reader, Summary};

mod common;

/// Too small for any entry.
const SMALLEST: usize = 16;

/// Narrow enough for small documents to reach.
const NARROW: Limits = Limits {
    max_field_bytes: 32,
    max_depth: 3,
    max_links_per_entry: 2,
    max_link_bytes: 120,
    max_href_bytes: 24,
    max_attributes: 4,
    max_entry_bytes: 180,
    max_event_bytes: 120,
    max_document_bytes: Some(900),
    max_inflation: 500,
    inflation_floor_bytes: 8 << 20,
};

/// The complete result of a reading.
#[derive(Debug, PartialEq)]
struct Reading {
    header: Option<Header>,
    items: Vec<Item>,
    /// With its position and cause.
    error: Option<String>,
    summary: Summary,
}

fn read(bytes: impl Read, options: &Options, buffer: usize) -> Reading {
    let mut items = Vec::new();
    let mut reader = match Reader::with_buffer(bytes, options.clone(), buffer) {
        Ok(reader) => reader,
        Err(error) => {
            return Reading {
                header: None,
                items,
                error: Some(format!("{error:?}")),
                summary: Summary::default(),
            };
        }
    };
    let error = loop {
        match reader.next() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => break None,
            Err(error) => break Some(format!("{error:?}")),
        }
    };
    let header = reader.header().ok().cloned();
    Reading { header, items, error, summary: reader.summary() }
}

/// Returns this many bytes at a time, and an error behind the last if it is to fail.
struct Stream<'b> {
    bytes: &'b [u8],
    amount: usize,
    fails: bool,
}

impl Read for Stream<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.fails && self.bytes.is_empty() {
            return Err(io::Error::other("the line is dead"));
        }
        let amount = self.amount.min(buf.len());
        self.bytes.read(&mut buf[..amount])
    }
}

/// The pieces of the test documents, the common ones first.
const CHILDREN: &[&str] = &[
    "<loc>http://e.org/a</loc>",
    "<loc>http://e.org/?a=1&amp;b=2</loc>",
    "<lastmod>2013-01-02T03:04:05Z</lastmod>",
    "<changefreq>daily</changefreq>",
    "<priority>0.5</priority>",
    "<rs:md change=\"updated\" datetime=\"2013-01-02T03:04:05Z\" length=\"7\" hash=\"md5:1584abdf8ebdc9802ac0c6a7402c03b6\"/>",
    "<rs:ln rel=\"duplicate\" href=\"http://e.org/?b=1&amp;c\" pri=\"1\"/>",
    "<rs:md change='deleted' type='text/html' />",
    "<rs:ln\n\trel='describedBy'\r\n href='b'/>",
    "\n    ",
    "<loc> http://e.org/\u{e9} </loc>",
    "<loc></loc>",
    "<loc/>",
    "<loc >http://e.org/a</loc >",
    "<loc>http://e.org/&#x42;&lt;&#233;</loc>",
    "<loc>http://e.org/?a&b=2;c</loc>",
    "<loc>&caf;</loc>",
    "<loc>&#0;</loc>",
    "<loc>x<!-- in -->y<![CDATA[&<z]]></loc>",
    "<loc>x<b>y</b></loc>",
    "<loc>http://e.org/a-name-that-is-rather-long-for-a-narrow-limit</loc>",
    "<loc>http://e.org/a-name-that-just-fits</loc>",
    "<lastmod>2013-01-02 03:04:05</lastmod>",
    "<lastmod>yesterday</lastmod>",
    "<lastmod>&#50;013</lastmod>",
    "<rs:md change=\"replaced\"/>",
    "<rs:md change=\"Created\" datetime=\"then\"/>",
    "<rs:md hash=\"&quot;\n&#10;\"/>",
    "<rs:md hash=\"&hash;\"/>",
    "<rs:md hash=\"a&b\"/>",
    "<rs:md hash=\"a\" hash=\"a\"/>",
    "<rs:md hash=\"a\" hash=\"b\"/>",
    "<rs:md a=\"1\" b=\"2\" c=\"3\" d=\"4\" e=\"5\"/>",
    "<rs:md a=\"1\"b=\"2\"/>",
    "<rs:md a = \"1\"/>",
    "<rs:md a=1/>",
    "<rs:md a/>",
    "<rs:md a=\">\" b='\"' c=\"<\" path=\"'/x'\"/>",
    "<rs:md></rs:md>",
    "<rs:md xmlns:rs=\"urn:other\" length=\"9\"/>",
    "<rs:md note=\"xmlns\" length=\"9\"/>",
    "<rs:md/>",
    "<rs:ln rel=\"up\"/>",
    "<rs:ln rel=\"up\" href=\"http://e.org/ x\" pri=\"0\" length=\"+1\"/>",
    "<rs:mdx/>",
    "<rs:other length=\"1\">text</rs:other>",
    "<image:image><image:loc>x</image:loc></image:image>",
    "<video/>",
    "text",
    "&amp;",
    "& ",
    "<!-- </url> -->",
    "<?pi </url> ?>",
    "<![CDATA[</url>]]>",
    "\u{1a}",
    "\u{e9}",
    "</url><url>",
    "</url>\n  <url>",
    "</url><url xmlns=\"urn:other\">",
    "</url><sitemap>",
    "</url><rs:md from=\"2013-01-01T00:00:00Z\"/><url>",
    "</url><url/><url>",
    "</loc>",
    "<loc>",
    "<rs:md hash=\"",
    "<",
    "<!DOCTYPE urlset>",
    "</url></urlset>",
];

const NAMES: &[&str] = &[
    common::NAMESPACES,
    "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'",
    "xmlns:rs='http://www.openarchives.org/rs/terms/'",
    "xmlns='urn:other' xmlns:rs='http://www.openarchives.org/rs/terms/'",
    "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='urn:other'",
    "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.sitemaps.org/schemas/sitemap/0.9'",
    "xmlns='http://www.openarchives.org/rs/terms/' xmlns:rs='http://www.openarchives.org/rs/terms/'",
];

const HEADERS: &[&str] = &[
    "<rs:md capability=\"changelist\" from=\"2013-01-01T00:00:00Z\"/>",
    "<rs:md capability=\"resourcelist\" at=\"2013-01-03T00:00:00Z\"/>",
    "<rs:md capability=\"resourcedump-manifest\" at=\"2013-01-03T00:00:00Z\"/>",
    "",
];

/// The first items of a table most of the time, and with each step of `nine` any of it.
fn mostly_first(table: &'static [&'static str], first: usize) -> impl Strategy<Value = &'static str> {
    prop_oneof![9 => select(&table[..first]), 2 => select(table)]
}

fn entry() -> impl Strategy<Value = String> {
    (
        prop_oneof![5 => Just(CHILDREN[0]), 3 => Just(CHILDREN[1]), 1 => Just("")],
        vec(mostly_first(CHILDREN, 10), 0..7),
    )
        .prop_map(|(loc, rest)| format!("\n  <url>{loc}{}</url>", rest.concat()))
}

fn document() -> impl Strategy<Value = Vec<u8>> {
    let root = prop_oneof![9 => Just("urlset"), 1 => Just("sitemapindex")];
    (root, mostly_first(NAMES, 1), mostly_first(HEADERS, 2), vec(entry(), 1..9)).prop_map(
        |(root, names, header, entries)| {
            format!("<{root} {names}>{header}{}\n</{root}>\n", entries.concat()).into_bytes()
        },
    )
}

/// Sometimes a byte is replaced, added, or the last one.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop_oneof![select(b"<>&;\"'/= \nx\x00\xff\xc3".to_vec()), any::<u8>()];
    let change = (any::<prop::sample::Index>(), bytes, 0..8_u8);
    (document(), vec(change, 0..4)).prop_map(|(mut document, changes)| {
        for (index, byte, what) in changes {
            let at = index.index(document.len().max(1));
            if document.is_empty() {
                break;
            }
            match what {
                0..3 => document[at] = byte,
                3..5 => document.insert(at, byte),
                5..7 => drop(document.remove(at)),
                _ => document.truncate(at.max(1)),
            }
        }
        document
    })
}

fn options() -> impl Strategy<Value = Options> {
    (0..4_u8, any::<bool>(), any::<bool>()).prop_map(|(limits, strict, based)| Options {
        limits: if limits == 0 { NARROW } else { Limits::default() },
        mode: if strict { Mode::Strict } else { Mode::Tolerant },
        base: based.then(|| "http://example.com/list.xml".parse().unwrap()),
        latest: "2013-01-02T12:00:00Z".parse().ok(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn outlined_and_parsed_entries_are_the_same(
        document in mutated(),
        options in options(),
        buffer in prop_oneof![Just(64 * 1024), SMALLEST..900_usize],
        amount in prop_oneof![Just(usize::MAX), 1..200_usize],
        packed in prop_oneof![5 => Just(false), 1 => Just(true)],
        missing in prop_oneof![2 => Just(0), 1 => 1..12_usize],
        fails in any::<bool>(),
    ) {
        let bytes = if packed { common::gzip(&document) } else { document };
        let bytes = &bytes[..bytes.len() - missing.min(bytes.len())];
        // How much is unpacked before an error of the stream depends on the size of the buffer.
        let fails = fails && !packed;
        let stream = |amount| Stream { bytes, amount, fails };
        let parsed = read(stream(usize::MAX), &options, SMALLEST);
        prop_assert_eq!(&read(stream(amount), &options, buffer), &parsed);
        prop_assert_eq!(&read(stream(amount), &options, 64 * 1024), &parsed);
    }
}

#[test]
fn examples_are_the_same_with_every_size_of_the_buffer() {
    for file in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/examples")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let parsed = read(&bytes[..], &Options::default(), SMALLEST);
        for buffer in SMALLEST..bytes.len() + 2 {
            assert_eq!(read(&bytes[..], &Options::default(), buffer), parsed, "with {buffer} bytes");
        }
    }
}

#[test]
fn every_child_is_the_same_with_every_size_of_the_buffer() {
    for child in CHILDREN {
        let entry = format!("<url><loc>http://e.org/1</loc>{child}</url>\n");
        let document = common::change_list(&entry.repeat(3));
        let parsed = read(document.as_bytes(), &Options::default(), SMALLEST);
        for buffer in SMALLEST..document.len() + 2 {
            let stream = Stream { bytes: document.as_bytes(), amount: buffer / 3, fails: false };
            assert_eq!(read(stream, &Options::default(), buffer), parsed, "{child} with {buffer} bytes");
        }
    }
}
