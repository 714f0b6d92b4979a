//! The files of a record, in the formats that name them.

use std::fmt::Write as _;

use super::inner::Inner;
use super::world::World;
use crate::spec::Algorithm;

/// The media type of all files.
pub(super) const MEDIA_TYPE: &str = "application/octet-stream";

/// A version of a record.
pub(super) struct Of<'w> {
    pub(super) inner: &'w Inner,
    pub(super) world: &'w World,
    pub(super) index: u64,
    pub(super) version: u32,
}

/// A file that a record names.
struct File {
    number: u64,
    url: String,
    length: u64,
    md5: String,
}

impl Of<'_> {
    fn files(&self) -> impl Iterator<Item = File> {
        let Of { inner, world, index, .. } = *self;
        let named = (0..inner.spec.files).filter(move |number| world.file(index, *number).is_named);
        named.map(move |number| {
            let (file, version) = (inner.file(index, number), world.file(index, number).version);
            File {
                number,
                url: inner.file_url(index, number),
                length: inner.content.length(file, version),
                md5: inner.content.digest(file, version, Algorithm::Md5),
            }
        })
    }
}

/// Each file as an identifier, in step with its format, as EPrints writes them; then the landing page as a relation.
pub(super) fn oai_dc(of: &Of<'_>, out: &mut String) {
    for file in of.files() {
        let _ = writeln!(out, "<dc:format>{MEDIA_TYPE}</dc:format>");
        let _ = writeln!(out, "<dc:identifier>{}</dc:identifier>", file.url);
    }
    let _ = writeln!(out, "<dc:relation>{}</dc:relation>", of.inner.page_of(of.index));
}

pub(super) fn mets(of: &Of<'_>, out: &mut String) {
    let Of { inner, index, version, .. } = *of;
    out.push_str("<mets xmlns=\"http://www.loc.gov/METS/\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"");
    let _ = writeln!(out, " OBJID=\"{}\">", inner.identifier(index));
    let _ = writeln!(out, "<metsHdr CREATEDATE=\"{}\"/>", inner.answer_time());
    let _ = writeln!(out, "<!-- version {version} -->\n<fileSec>\n<fileGrp USE=\"ORIGINAL\">");
    for File { number, url, length, md5 } in of.files() {
        let _ = writeln!(
            out,
            "<file ID=\"f{number}\" MIMETYPE=\"{MEDIA_TYPE}\" SIZE=\"{length}\" CHECKSUM=\"{md5}\" \
             CHECKSUMTYPE=\"MD5\"><FLocat LOCTYPE=\"URL\" xlink:href=\"{url}\"/></file>"
        );
    }
    out.push_str("</fileGrp>\n</fileSec>\n</mets>\n");
}

/// Bundles of bitstreams, and one of extracted text that is no content.
pub(super) fn xoai(of: &Of<'_>, out: &mut String) {
    let field = |name: &str, value: &str| format!("<field name=\"{name}\">{value}</field>");
    out.push_str("<metadata xmlns=\"http://www.lyncode.com/xoai\">\n<element name=\"dc\">");
    let _ = write!(out, "<element name=\"identifier\"><element name=\"uri\"><element name=\"none\">");
    let _ = write!(out, "{}</element></element></element>", field("value", &of.inner.page_of(of.index)));
    let _ = writeln!(out, "</element><!-- version {} -->", of.version);
    let _ = writeln!(out, "<element name=\"bundles\"><element name=\"bundle\">{}", field("name", "ORIGINAL"));
    out.push_str("<element name=\"bitstreams\">\n");
    for File { url, length, md5, .. } in of.files() {
        let fields = [
            field("format", MEDIA_TYPE),
            field("size", &length.to_string()),
            field("url", &url),
            field("checksum", &md5),
            field("checksumAlgorithm", "MD5"),
        ];
        let _ = writeln!(out, "<element name=\"bitstream\">{}</element>", fields.concat());
    }
    let _ = writeln!(out, "</element></element><element name=\"bundle\">{}", field("name", "TEXT"));
    let text = field("url", &format!("{}.txt", of.inner.page_of(of.index)));
    let _ =
        writeln!(out, "<element name=\"bitstreams\"><element name=\"bitstream\">{text}</element></element>");
    out.push_str("</element></element>\n</metadata>\n");
}

pub(super) fn oai_openaire(of: &Of<'_>, out: &mut String) {
    out.push_str("<oaire:resource xmlns:oaire=\"http://namespace.openaire.eu/schema/oaire/\"");
    let _ = writeln!(out, " xmlns:datacite=\"http://datacite.org/schema/kernel-4\">");
    let _ = write!(out, "<datacite:identifier identifierType=\"URL\">{}", of.inner.page_of(of.index));
    let _ = writeln!(out, "</datacite:identifier><!-- version {} -->", of.version);
    for File { url, .. } in of.files() {
        let _ =
            writeln!(out, "<oaire:file mimeType=\"{MEDIA_TYPE}\" objectType=\"fulltext\">{url}</oaire:file>");
    }
    out.push_str("</oaire:resource>\n");
}
