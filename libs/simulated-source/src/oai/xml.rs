//! The XML of answers: written by hand, independent of the crate that reads it.

use std::fmt::Write as _;

use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fault::{Faults, RepositoryFault as Fault, value};
use super::files::{self, Of};
use super::inner::Inner;
use super::list::{Row, datestamp};
use super::spec::Unit;
use super::world::World;
use crate::clock::SimTime;

const OAI: &str = "http://www.openarchives.org/OAI/2.0/";
const OAI_DC: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";
const DC: &str = "http://purl.org/dc/elements/1.1/";
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Stands for a byte of ISO 8859-1, put in when the answer is sent.
pub(super) const LATIN1_MARK: char = '\u{e0e9}';

/// Writes the elements of the protocol, with or without a prefix.
pub(super) struct Xml<'w> {
    pub(super) out: String,
    prefix: &'static str,
    inner: &'w Inner,
    world: &'w World,
    faults: &'w Faults,
}

impl<'w> Xml<'w> {
    /// The beginning of an answer: root element, `responseDate` and `request`. `echo`: the arguments.
    pub(super) fn new(
        inner: &'w Inner,
        world: &'w World,
        faults: &'w Faults,
        echo: &[(String, String)],
    ) -> Xml<'w> {
        let prefix = if faults.has(&Fault::Prefixed) { "o:" } else { "" };
        let mut xml = Xml { out: String::with_capacity(64 * 1024), prefix, inner, world, faults };
        xml.out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let name = if prefix.is_empty() { "xmlns" } else { "xmlns:o" };
        let _ = write!(xml.out, "<{prefix}OAI-PMH {name}=\"{OAI}\" xmlns:xsi=\"{XSI}\"");
        if faults.has(&Fault::EnvelopeNamespaces) {
            let _ = write!(xml.out, " xmlns:oai_dc=\"{OAI_DC}\" xmlns:dc=\"{DC}\"");
        }
        let _ = writeln!(xml.out, " xsi:schemaLocation=\"{OAI} {OAI}OAI-PMH.xsd\">");
        let now = xml.shift(world.now());
        let date = if faults.has(&Fault::OddResponseDate) {
            now.plus(3_600).to_string().replace('Z', ".5+01:00")
        } else {
            now.to_string()
        };
        xml.line("responseDate", &date);
        let _ = write!(xml.out, "<{prefix}request");
        for (name, value) in echo {
            let _ = write!(xml.out, " {name}=\"{}\"", escape(value));
        }
        let _ = writeln!(xml.out, ">{}</{prefix}request>", inner.base());
        xml
    }

    /// Local time with a Z.
    fn shift(&self, time: SimTime) -> SimTime {
        time.plus(value!(self.faults, LocalTime).map_or(0, |hours| i64::from(hours) * 3_600))
    }

    pub(super) fn open(&mut self, name: &str) {
        let _ = writeln!(self.out, "<{}{name}>", self.prefix);
    }

    pub(super) fn close(&mut self, name: &str) {
        let _ = writeln!(self.out, "</{}{name}>", self.prefix);
    }

    /// An element with a text.
    pub(super) fn line(&mut self, name: &str, text: &str) {
        let prefix = self.prefix;
        let _ = writeln!(self.out, "<{prefix}{name}>{}</{prefix}{name}>", escape(text));
    }

    /// The end of the answer.
    pub(super) fn end(mut self) -> String {
        self.close("OAI-PMH");
        if self.faults.has(&Fault::TrailingBytes) {
            self.out.push_str("<br />\n<b>Notice</b>: Undefined index: page in <b>oai.php</b><br />\n");
        }
        self.out
    }

    pub(super) fn error(&mut self, code: &str, message: &str) {
        let prefix = self.prefix;
        let _ = writeln!(self.out, "<{prefix}error code=\"{code}\">{}</{prefix}error>", escape(message));
    }

    pub(super) fn token(&mut self, token: &str, attributes: &str) {
        let prefix = self.prefix;
        let token = escape(token);
        let _ = writeln!(self.out, "<{prefix}resumptionToken{attributes}>{token}</{prefix}resumptionToken>");
    }

    pub(super) fn header(&mut self, row: &Row) {
        let prefix = self.prefix;
        let status = if row.deleted { " status=\"deleted\"" } else { "" };
        let _ = writeln!(self.out, "<{prefix}header{status}>");
        self.line("identifier", &self.inner.identifier(row.index));
        let time = datestamp(self.world, self.faults, &row.state);
        let mut text = self.date(time);
        if self.faults.has(&Fault::FractionalDatestamps) {
            text = time.to_string().replace('Z', ".123Z");
        }
        self.line("datestamp", &text);
        if let Some(set) = self.inner.set_of(row.index)
            && !row.state.left_set
            && !self.world.removed_sets.contains(&set)
        {
            self.line("setSpec", &format!("group:{set}"));
        }
        self.close("header");
    }

    /// A time in the repository's granularity.
    pub(super) fn date(&self, time: SimTime) -> String {
        let text = time.to_string();
        match self.inner.spec.unit {
            Unit::Second => text,
            Unit::Day => text.chars().take(10).collect(),
        }
    }

    pub(super) fn record(&mut self, row: &Row, prefix: &str) {
        let hits =
            |every: Option<u64>| every.is_some_and(|every| every > 0 && row.index % every == every - 1);
        let start = self.out.len();
        self.open("record");
        self.header(row);
        if !row.deleted {
            self.open("metadata");
            if !hits(value!(self.faults, EmptyMetadata)) {
                if hits(value!(self.faults, InnerXmlDeclaration)) {
                    self.out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
                }
                let envelope = self.faults.has(&Fault::EnvelopeNamespaces);
                let of =
                    Of { inner: self.inner, world: self.world, index: row.index, version: row.state.version };
                let mut metadata = metadata(&of, self.faults, prefix, !envelope);
                if hits(value!(self.faults, IllegalCharacters)) {
                    metadata = metadata.replacen("<dc:creator>", "<dc:creator>\u{b}", 1);
                }
                if hits(value!(self.faults, Latin1)) {
                    metadata = metadata.replacen("<dc:creator>", &format!("<dc:creator>{LATIN1_MARK}"), 1);
                }
                if hits(value!(self.faults, UndeclaredPrefix)) {
                    metadata = metadata.replacen("<dc:creator>", "<own:note/><dc:creator>", 1);
                }
                self.out.push_str(&metadata);
            }
            self.close("metadata");
        }
        self.close("record");
        if hits(value!(self.faults, BrokenRecord)) {
            let mut cut = start + (self.out.len() - start) * 2 / 3;
            while !self.out.is_char_boundary(cut) {
                cut -= 1;
            }
            self.out.truncate(cut);
        }
    }
}

/// The metadata of a version of a record, as an element.
pub(super) fn metadata(of: &Of<'_>, faults: &Faults, prefix: &str, declared: bool) -> String {
    let Of { inner, index, version, .. } = *of;
    let mut out = String::with_capacity(inner.spec.metadata_bytes + 512);
    match prefix {
        "mets" => files::mets(of, &mut out),
        "xoai" => files::xoai(of, &mut out),
        "oai_openaire" => files::oai_openaire(of, &mut out),
        _ => {
            out.push_str("<oai_dc:dc");
            if declared {
                let _ = write!(out, " xmlns:oai_dc=\"{OAI_DC}\" xmlns:dc=\"{DC}\" xmlns:xsi=\"{XSI}\"");
                let _ = write!(out, " xsi:schemaLocation=\"{OAI_DC} {OAI}oai_dc.xsd\"");
            }
            let _ = writeln!(out, ">\n<dc:title>Record {index}, version {version}</dc:title>");
            let _ = writeln!(out, "<dc:creator>Müller &amp; Søn, {}</dc:creator>", index % 97);
            if faults.has(&Fault::BareDoi) {
                let _ = writeln!(out, "<dc:identifier>10.5072/{index}</dc:identifier>");
            }
            if inner.spec.names_files(prefix) {
                files::oai_dc(of, &mut out);
            } else {
                let _ = writeln!(out, "<dc:identifier>{}</dc:identifier>", inner.page_of(index));
            }
            out.push_str("<dc:description>");
            words(inner.spec.seed, index, version, inner.spec.metadata_bytes, &mut out);
            out.push_str("</dc:description>\n</oai_dc:dc>\n");
        }
    }
    out
}

/// Words drawn by seed, up to this many bytes.
fn words(seed: u64, index: u64, version: u32, bytes: usize, out: &mut String) {
    const WORDS: [&str; 16] = [
        "archive", "of", "the", "harvest", "with", "many", "records", "and", "few", "errors", "which",
        "grow", "slowly", "in", "every", "year",
    ];
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (index << 20) ^ u64::from(version));
    let end = out.len() + bytes.saturating_sub(500);
    while out.len() < end {
        // One draw gives sixteen words.
        let draw: u64 = rng.random();
        for step in 0..16 {
            out.push_str(WORDS[(draw >> (step * 4)) as usize & 15]);
            out.push(' ');
        }
    }
}

/// A text for elements and attributes.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
