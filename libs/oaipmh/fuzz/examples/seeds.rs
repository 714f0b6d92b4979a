//! Writes the seeds of the corpora, from the writer and from the faults that repositories have: `cargo run --example
//! seeds`.

use std::path::Path;
use std::{fs, io};

use oaipmh::{
    AnswerWriter, ErrorCode, Granularity, Identify, KnownFormat, ProtocolError, RecordHeader, Resumption,
    SetItem, Status, Token, Verb,
};

/// The usual limits; narrow ones; another encoding. Each in pieces of seven bytes.
const WAYS: [[u8; 2]; 3] = [[0, 7], [1, 7], [2, 7]];

const METADATA: [&str; 4] = [
    "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>a</dc:title><dc:identifier>10.1000/1</dc:identifier></oai_dc:dc>",
    "<mets xmlns=\"http://www.loc.gov/METS/\" xmlns:x=\"http://www.w3.org/1999/xlink\"><metsHdr CREATEDATE=\"1\"/><fileSec><fileGrp USE=\"ORIGINAL\"><file SIZE=\"1\" CHECKSUM=\"a\" CHECKSUMTYPE=\"MD5\"><FLocat x:href=\"http://e.org/1\"/></file></fileGrp></fileSec></mets>",
    "<r xmlns:t=\"urn:t\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><a xsi:type=\"t:u\" b='&#10;&lt;'/><![CDATA[<]]>&amp;<!-- c --><?p q?><b xmlns=\"\"/></r>",
    "<p:r xmlns:p=\"urn:1\"><p:a xmlns:p=\"urn:2\" p:b=\"\" b=\"\"><p:c xmlns:p=\"urn:1\"/></p:a></p:r>",
];

/// Parts of lists that the writer would not write.
const ODD: [&str; 9] = [
    "<record><header><identifier>a</identifier></header><metadata><a><record><header>",
    "<record><header><identifier>a</identifier></header><metadata><a><!-- </record><record><header/></record>",
    "<record><header status='x'><identifier>a</identifier><datestamp>yesterday</datestamp></header><metadata/></record>",
    "<record><header><identifier>&#0;</identifier></header><metadata><?xml version='1.0'?><dc:a/></metadata></record>",
    "<resumptionToken cursor='x'> </resumptionToken>text<![CDATA[x]]>",
    "</ListRecords><error code='x'>a</error><ListRecords/>",
    "<header><identifier>a</identifier><setSpec>a:b</setSpec><setSpec>c</setSpec><setSpec>d</setSpec></header>",
    "</ListRecords></OAI-PMH><br>",
    "<record xmlns='urn:x'/><o:record/><about><a/></about>",
];

const URLS: [&str; 4] = [
    "https://e.org/oai?verb=ListRecords&metadataPrefix=oai_dc&set=a:b&from=2026-01-01&until=2026-02-01T00:00:00Z",
    "http://e.org/cgi?db=a%20b&VERB=identify#top",
    "https://e.org/oai?verb=GetRecord&identifier=oai%3Ae%2F1&metadataPrefix=mets&resumptionToken=a|b",
    "https://e.org/browse?set=7",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut answers = written()?;
    for odd in ODD {
        answers.push(format!(
            "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-01T00:00:00Z</responseDate>\
             <ListRecords>{odd}</ListRecords></OAI-PMH>"
        ));
    }
    let answers =
        WAYS.iter().flat_map(|way| answers.iter().map(move |text| [&way[..], text.as_bytes()].concat()));
    save("answer", answers)?;
    save("canonical", METADATA.iter().map(|text| text.as_bytes().to_vec()))?;
    save("pasted", URLS.iter().map(|text| text.as_bytes().to_vec()))?;
    Ok(())
}

/// An answer of each verb.
fn written() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let now = "2026-01-02T03:04:05Z".parse()?;
    let writer = |verb| AnswerWriter::new(now, "https://e.org/oai", &[("verb", verb)], Granularity::Second);
    let header = |number: usize| RecordHeader {
        identifier: format!("oai:e.org:{number}"),
        datestamp: Some(now.into()),
        sets: vec!["a:b".to_owned()],
        status: if number == 0 { Status::Deleted } else { Status::Live },
    };
    let resumption = Resumption {
        token: Token::new("a|b"),
        expires: Some(now.into()),
        complete_list_size: Some(9),
        cursor: Some(0),
    };
    let mut records = writer("ListRecords")?;
    records.open(Verb::ListRecords);
    records.record(&header(0), None, &[])?;
    for (number, metadata) in METADATA.iter().enumerate() {
        records.record(&header(number + 1), Some(metadata), &["<a xmlns=\"urn:a\"/>".to_owned()])?;
    }
    let mut headers = writer("ListIdentifiers")?;
    headers.open(Verb::ListIdentifiers);
    headers.header(&header(1))?;
    let mut sets = writer("ListSets")?;
    sets.open(Verb::ListSets);
    sets.set(&SetItem { spec: "a:b".to_owned(), name: "A".to_owned() })?;
    let mut formats = writer("ListMetadataFormats")?;
    formats.open(Verb::ListMetadataFormats);
    formats.format(&KnownFormat::Mets.metadata_format())?;
    let identify = Identify {
        repository_name: "A".to_owned(),
        protocol_version: "2.0".to_owned(),
        granularity: Some(Granularity::Second),
        earliest_datestamp: Some(now.into()),
        ..Identify::default()
    };
    Ok(vec![
        records.finish(Some(&resumption))?,
        headers.finish(None)?,
        sets.finish(None)?,
        formats.finish(None)?,
        writer("Identify")?.identify(&identify, &["<x xmlns=\"urn:x\"/>".to_owned()])?,
        writer("GetRecord")?.errors(&[ProtocolError::new(ErrorCode::IdDoesNotExist, "no")])?,
    ])
}

fn save(target: &str, seeds: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    for (number, seed) in seeds.enumerate() {
        fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
