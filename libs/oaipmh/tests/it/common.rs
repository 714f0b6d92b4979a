//! Answers to read, and ways to read them.

use oaipmh::{Answer, BadRecord, Item, Options, ReadError, Reader, Record, RecordHeader, Strictness, read};

pub(crate) const DC: &str = r#"xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/""#;

/// The result of a reading.
#[derive(Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) items: Vec<Item>,
    pub(crate) answer: Answer,
    pub(crate) error: Option<ReadError>,
}

/// An answer with this content of the root element, behind date and request.
pub(crate) fn answer(content: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\n\
         <responseDate>2026-01-02T00:00:00Z</responseDate>\n\
         <request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">https://e.org/oai</request>\n{content}\n</OAI-PMH>\n"
    )
}

/// An answer to ListRecords.
pub(crate) fn list(content: &str) -> String {
    answer(&format!("<ListRecords>\n{content}\n</ListRecords>"))
}

/// A header.
pub(crate) fn header(number: u32) -> String {
    format!(
        "<header><identifier>oai:e.org:{number}</identifier><datestamp>2026-01-01T00:00:00Z</datestamp></header>"
    )
}

/// A record of oai_dc with this content.
pub(crate) fn record(number: u32, content: &str) -> String {
    format!("<record>{}<metadata><oai_dc:dc {DC}>{content}</oai_dc:dc></metadata></record>\n", header(number))
}

/// Records that are as they should be.
pub(crate) fn records(numbers: std::ops::RangeInclusive<u32>) -> String {
    numbers.map(|number| record(number, &format!("<dc:title>Title {number}</dc:title>"))).collect()
}

pub(crate) fn read_whole(bytes: impl AsRef<[u8]>) -> Reading {
    read_with(bytes, Options::default())
}

pub(crate) fn read_strict(bytes: impl AsRef<[u8]>) -> Reading {
    read_with(bytes, Options { strictness: Strictness::Strict, ..Options::default() })
}

pub(crate) fn read_with(bytes: impl AsRef<[u8]>, options: Options) -> Reading {
    let (items, answer, end) = read(bytes.as_ref(), options);
    Reading { items, answer, error: end.err() }
}

/// Reads chunks of this many bytes.
pub(crate) fn read_chunks(bytes: &[u8], amount: usize, options: Options) -> Reading {
    let mut reader = Reader::new(options);
    let mut items = Vec::new();
    let mut drain = |reader: &mut Reader| loop {
        match reader.next() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    };
    let mut error = None;
    for chunk in bytes.chunks(amount.max(1)) {
        reader.feed(chunk);
        error = error.or_else(|| drain(&mut reader));
    }
    reader.end();
    error = error.or_else(|| drain(&mut reader));
    Reading { items, answer: reader.into_answer(), error }
}

impl Reading {
    pub(crate) fn records(&self) -> Vec<&Record> {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Record(record) => Some(&**record),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn bad(&self) -> Vec<&BadRecord> {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Bad(bad) => Some(&**bad),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn headers(&self) -> Vec<&RecordHeader> {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Header(header) => Some(&**header),
                _ => None,
            })
            .collect()
    }

    /// The names of the quirks, in their order.
    pub(crate) fn quirks(&self) -> Vec<&'static str> {
        self.answer.quirks.iter().map(|(quirk, _)| quirk.as_str()).collect()
    }

    /// The metadata of the record at this place, without the XML declaration.
    pub(crate) fn metadata(&self, at: usize) -> &str {
        let document = &self.records()[at].metadata.as_ref().expect("it has metadata").document;
        document.split_once("?>\n").expect("it has a declaration").1
    }
}
