//! Writes the seeds of the corpora, from the writer and the specification's examples: `cargo run --example seeds`.

use std::path::Path;
use std::{fs, io};

use resourcesync::{Capability, Change, Entry, Header, Link, Root, WriteError, Writer};

/// Tolerant with the usual limits; narrow limits with a base; gzip. Each in pieces of seven bytes.
const WAYS: [[u8; 2]; 3] = [[0, 7], [3, 7], [4, 7]];

const TIMES: [&str; 16] = [
    "2013",
    "2013-01",
    "2013-01-03",
    "2013-01-03T09:00Z",
    "2013-01-03T09:00:00Z",
    "2013-01-03T09:00:00.25+01:00",
    "2013-01-03T09:00:00-23:59",
    "2020-06-02T00:00:00",
    "2020-06-02T20:36:26.441694",
    "2020-03-18 01:20:10",
    "2020-06-02t00:00:00z",
    "2020-06-02T00:00:00,5 UTC",
    "2020-06-02T00:00:00+0200",
    "2016-12-31T23:59:60Z",
    "0000-01-01T00:00:00+14:00",
    "9999-12-30T22:00:00.999999999Z",
];

/// Documents that the writer would not write.
const ODD: [&str; 4] = [
    "\u{feff}\n<?xml version='1.0' encoding='latin1'?><sit:urlset xmlns:sit='https://www.sitemaps.org/schemas/sitemap/0.9/' xmlns:i='urn:i'>\
     <sit:url><i:image><i:loc>x</i:loc></i:image><sit:loc> http://e.org/\u{e9}?a&amp;b&c; </sit:loc></sit:url>\
     <!-- c --><sit:url><sit:lastmod>2020-03-18 01:20:10</sit:lastmod></sit:url></sit:urlset><br>",
    "<urlset><rs:md capability='changelistindex'/><rs:ln rel='up'><url><loc><![CDATA[a]]>&#x41;</loc></url></urlset>",
    "<!DOCTYPE html><html><body>Not found</body></html>",
    "<sitemapindex><sitemap><loc>/1.xml</loc><rs:md at='2013' at='2013'/></sitemap></sitemapindex>",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![list(Capability::ResourceList)?, list(Capability::ChangeList)?, index()?];
    documents.extend(ODD.map(|text| text.as_bytes().to_vec()));
    for file in fs::read_dir(root.join("../tests/examples"))? {
        documents.push(fs::read(file?.path())?);
    }
    let seeds: Vec<_> = WAYS
        .iter()
        .flat_map(|way| documents.iter().map(move |document| [&way[..], document].concat()))
        .collect();
    write(&root.join("corpus/reader"), &seeds)?;
    write(&root.join("corpus/datetime"), &bytes(&TIMES))?;
    // The fuzzer makes structures of any bytes; a document is text of the right kind.
    write(&root.join("corpus/writer_roundtrip"), &documents)?;
    Ok(())
}

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn write(folder: &Path, seeds: &[Vec<u8>]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), seed)?;
    }
    println!("{} seeds in {}", seeds.len(), folder.display());
    Ok(())
}

fn list(capability: Capability) -> Result<Vec<u8>, WriteError> {
    let mut header = Header::new(Root::UrlSet, Some(capability));
    header.at = "2013-01-03T09:00:00Z".parse().ok();
    header.from = "2013-01-01".parse().ok();
    header.links.push(Link::new("up", "http://example.com/caps.xml?a=1&b=2"));
    let mut entry = Entry::new("http://example.com/res1");
    entry.lastmod = "2013-01-02T13:00:00.5+01:00".parse().ok();
    entry.metadata.change = Some(Change::Updated);
    entry.metadata.datetime = entry.lastmod;
    entry.metadata.hash = Some("md5:1584abdf8ebdc9802ac0c6a7402c03b6\nsha-1:0".to_owned());
    entry.metadata.length = Some(8_876);
    entry.links.push(Link { pri: Some(1), ..Link::new("describedBy", "../meta.xml") });
    let mut writer = Writer::new(Vec::new(), &header)?;
    writer.write(&entry)?;
    writer.write(&Entry::new("http://example.com/\u{e9}\"<&>"))?;
    writer.finish()
}

fn index() -> Result<Vec<u8>, WriteError> {
    let header = Header::new(Root::SitemapIndex, Some(Capability::ChangeList));
    let mut writer = Writer::new(Vec::new(), &header)?;
    for day in 1..4 {
        let mut entry = Entry::new(format!("http://example.com/{day}.xml"));
        entry.metadata.from = format!("2013-01-0{day}").parse().ok();
        entry.metadata.until = format!("2013-01-0{}", day + 1).parse().ok();
        writer.write(&entry)?;
    }
    writer.finish()
}
