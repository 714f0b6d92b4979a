use std::fmt::Write as _;

use jiff::Timestamp;

use crate::NAMESPACE;
use crate::answer::Identify;
use crate::granularity::Granularity;
use crate::protocol_error::{ErrorCode, ProtocolError};
use crate::record::{MetadataFormat, RecordHeader, SetItem};
use crate::text::is_legal;
use crate::token::Resumption;
use crate::verb::Verb;

const SCHEMA: &str = "http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd";

/// Writes one answer of any verb.
///
/// For a list, call [`open`](Self::open), then a method for each item, then [`finish`](Self::finish). An answer of
/// errors or of Identify is written with one call.
#[derive(Debug)]
pub struct AnswerWriter {
    out: String,
    verb: Option<Verb>,
    granularity: Granularity,
}

/// A value holds a character that XML cannot hold. What was written before stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} holds the character U+{:04X}, which XML cannot hold", u32::from(*.character))]
pub struct WriteError {
    /// The element or attribute.
    pub field: &'static str,
    /// The character.
    pub character: char,
}

impl AnswerWriter {
    /// Begins an answer of this time to a request with these arguments, `verb` among them. Datestamps are written
    /// in this granularity.
    ///
    /// # Errors
    /// When the base URL or an argument holds what XML cannot hold.
    pub fn new(
        response_date: Timestamp,
        base_url: &str,
        arguments: &[(&str, &str)],
        granularity: Granularity,
    ) -> Result<Self, WriteError> {
        let mut out = String::with_capacity(1024);
        out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"");
        out.push_str(NAMESPACE);
        out.push_str("\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"");
        let _ = writeln!(out, "{NAMESPACE} {SCHEMA}\">");
        let date = Granularity::Second.format(response_date);
        let _ = write!(out, "<responseDate>{date}</responseDate>\n<request");
        for (name, value) in arguments {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            escape(&mut out, "request", value)?;
            out.push('"');
        }
        out.push('>');
        escape(&mut out, "request", base_url)?;
        out.push_str("</request>\n");
        Ok(Self { out, verb: None, granularity })
    }

    /// The whole answer to a failed request. After `badVerb` and `badArgument` give no arguments to
    /// [`new`](Self::new): the protocol wants them left out (section 3.2).
    ///
    /// # Errors
    /// When a message holds what XML cannot hold.
    pub fn errors(mut self, errors: &[ProtocolError]) -> Result<String, WriteError> {
        for ProtocolError { code, message } in errors {
            self.out.push_str("<error code=\"");
            escape(&mut self.out, "error", code.as_str())?;
            self.out.push_str("\">");
            escape(&mut self.out, "error", message)?;
            self.out.push_str("</error>\n");
        }
        self.end()
    }

    /// The whole answer to Identify. `descriptions` are whole elements, as XML.
    ///
    /// # Errors
    /// When a value holds what XML cannot hold.
    pub fn identify(mut self, identify: &Identify, descriptions: &[String]) -> Result<String, WriteError> {
        self.out.push_str("<Identify>\n");
        self.line("repositoryName", &identify.repository_name)?;
        self.line("baseURL", &identify.base_url)?;
        self.line("protocolVersion", &identify.protocol_version)?;
        for email in &identify.admin_emails {
            self.line("adminEmail", email)?;
        }
        if let Some(earliest) = identify.earliest_datestamp {
            let earliest = self.granularity.format(earliest.instant());
            self.line("earliestDatestamp", &earliest)?;
        }
        if let Some(policy) = identify.deleted_record {
            self.line("deletedRecord", policy.as_str())?;
        }
        if let Some(granularity) = identify.granularity {
            self.line("granularity", granularity.as_str())?;
        }
        for compression in &identify.compression {
            self.line("compression", compression)?;
        }
        for description in descriptions {
            self.embed("description", "description", description)?;
        }
        self.out.push_str("</Identify>\n");
        self.end()
    }

    /// Begins the element of a verb that lists, or of GetRecord.
    pub fn open(&mut self, verb: Verb) {
        self.verb = Some(verb);
        let _ = writeln!(self.out, "<{verb}>");
    }

    /// A record. `metadata` is a standalone document, such as a canonical one; `None` for a deleted record.
    /// `about`: standalone documents.
    ///
    /// # Errors
    /// When a value holds what XML cannot hold: then nothing of the record is written.
    pub fn record(
        &mut self,
        header: &RecordHeader,
        metadata: Option<&str>,
        about: &[String],
    ) -> Result<(), WriteError> {
        self.whole(|writer| {
            writer.out.push_str("<record>\n");
            writer.header_element(header)?;
            if let Some(metadata) = metadata {
                writer.embed("metadata", "metadata", metadata)?;
            }
            for about in about {
                writer.embed("about", "about", about)?;
            }
            writer.out.push_str("</record>\n");
            Ok(())
        })
    }

    /// A header of ListIdentifiers.
    ///
    /// # Errors
    /// When a value holds what XML cannot hold: then nothing of the header is written.
    pub fn header(&mut self, header: &RecordHeader) -> Result<(), WriteError> {
        self.whole(|writer| writer.header_element(header))
    }

    /// A set of ListSets.
    ///
    /// # Errors
    /// When a value holds what XML cannot hold: then nothing of the set is written.
    pub fn set(&mut self, set: &SetItem) -> Result<(), WriteError> {
        self.whole(|writer| {
            writer.out.push_str("<set>\n");
            writer.line("setSpec", &set.spec)?;
            writer.line("setName", &set.name)?;
            writer.out.push_str("</set>\n");
            Ok(())
        })
    }

    /// A format of ListMetadataFormats.
    ///
    /// # Errors
    /// When a value holds what XML cannot hold: then nothing of the format is written.
    pub fn format(&mut self, format: &MetadataFormat) -> Result<(), WriteError> {
        self.whole(|writer| {
            writer.out.push_str("<metadataFormat>\n");
            writer.line("metadataPrefix", &format.prefix)?;
            writer.line("schema", &format.schema)?;
            writer.line("metadataNamespace", &format.namespace)?;
            writer.out.push_str("</metadataFormat>\n");
            Ok(())
        })
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing is written, which is never so.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Ends the answer. `resumption`: of a page; with no token in it, the last page of several.
    ///
    /// # Errors
    /// When the token holds what XML cannot hold.
    pub fn finish(mut self, resumption: Option<&Resumption>) -> Result<String, WriteError> {
        if let Some(Resumption { token, expires, complete_list_size, cursor }) = resumption {
            self.out.push_str("<resumptionToken");
            if let Some(expires) = expires {
                let expires = Granularity::Second.format(expires.instant());
                let _ = write!(self.out, " expirationDate=\"{expires}\"");
            }
            if let Some(size) = complete_list_size {
                let _ = write!(self.out, " completeListSize=\"{size}\"");
            }
            if let Some(cursor) = cursor {
                let _ = write!(self.out, " cursor=\"{cursor}\"");
            }
            self.out.push('>');
            escape(&mut self.out, "resumptionToken", token.as_ref().map_or("", |token| token.as_str()))?;
            self.out.push_str("</resumptionToken>\n");
        }
        if let Some(verb) = self.verb {
            let _ = writeln!(self.out, "</{verb}>");
        }
        self.end()
    }

    fn end(mut self) -> Result<String, WriteError> {
        self.out.push_str("</OAI-PMH>\n");
        Ok(self.out)
    }

    fn header_element(&mut self, header: &RecordHeader) -> Result<(), WriteError> {
        self.out.push_str(if header.is_deleted() { "<header status=\"deleted\">\n" } else { "<header>\n" });
        self.line("identifier", &header.identifier)?;
        if let Some(datestamp) = header.datestamp {
            let datestamp = self.granularity.format(datestamp.instant());
            self.line("datestamp", &datestamp)?;
        }
        for set in &header.sets {
            self.line("setSpec", set)?;
        }
        self.out.push_str("</header>\n");
        Ok(())
    }

    /// An element with a text, on a line of its own.
    fn line(&mut self, name: &'static str, text: &str) -> Result<(), WriteError> {
        self.out.push('<');
        self.out.push_str(name);
        self.out.push('>');
        escape(&mut self.out, name, text)?;
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push_str(">\n");
        Ok(())
    }

    /// A document within an element, without its XML declaration.
    fn embed(&mut self, name: &str, field: &'static str, document: &str) -> Result<(), WriteError> {
        if let Some(character) = document.chars().find(|character| !is_legal(*character)) {
            return Err(WriteError { field, character });
        }
        let body = match document.strip_prefix("<?xml") {
            Some(rest) => rest.split_once("?>").map_or(rest, |(_, body)| body),
            None => document,
        };
        let _ = write!(self.out, "<{name}>");
        self.out.push_str(body.trim());
        let _ = writeln!(self.out, "</{name}>");
        Ok(())
    }

    /// Writes all of an item or nothing.
    fn whole(&mut self, write: impl FnOnce(&mut Self) -> Result<(), WriteError>) -> Result<(), WriteError> {
        let before = self.out.len();
        write(self).inspect_err(|_| self.out.truncate(before))
    }
}

impl ProtocolError {
    /// An error with a message for people.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Appends a text, escaped for elements and attributes alike.
fn escape(out: &mut String, field: &'static str, text: &str) -> Result<(), WriteError> {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            character if is_legal(character) => out.push(character),
            character => return Err(WriteError { field, character }),
        }
    }
    Ok(())
}
