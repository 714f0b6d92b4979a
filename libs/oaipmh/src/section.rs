//! The sections of the specifications that quirks refer to.

use resourcesync::{Section, Specification};

const fn oai(number: &'static str, name: &'static str) -> Section {
    Section { specification: Specification::OaiPmh, number: Some(number), name }
}

pub(crate) const RECORD: Section = oai("2.5", "Record");
pub(crate) const DELETED: Section = oai("2.5.1", "Deleted records");
pub(crate) const SETS: Section = oai("2.6", "Set");
pub(crate) const SELECTIVE_DATES: Section = oai("2.7.1", "Selective Harvesting and Datestamps");
pub(crate) const SELECTIVE_SETS: Section = oai("2.7.2", "Selective Harvesting and Sets");
pub(crate) const REQUEST_ENCODING: Section = oai("3.1.1", "HTTP Request Format");
pub(crate) const STATUS_CODES: Section = oai("3.1.2", "HTTP Response Format");
pub(crate) const COMPRESSION: Section = oai("3.1.3", "Response Compression");
pub(crate) const XML_FORMAT: Section = oai("3.2", "XML Response Format");
pub(crate) const DATES: Section = oai("3.3", "UTCdatetime");
pub(crate) const FLOW_CONTROL: Section = oai("3.5", "Flow Control");
pub(crate) const TOKEN_IDEMPOTENCY: Section = oai("3.5.1", "Idempotency of resumptionTokens");
pub(crate) const ERRORS: Section = oai("3.6", "Error and Exception Conditions");
pub(crate) const REQUESTS: Section = oai("4", "Protocol Requests and Responses");
pub(crate) const IDENTIFY: Section = oai("4.2", "Identify");
pub(crate) const LIST_SETS: Section = oai("4.6", "ListSets");
pub(crate) const XML_WELL_FORMED: Section = Section::XML_WELL_FORMED;
pub(crate) const XML_PROLOG: Section = Section::XML_PROLOG;
pub(crate) const XML_PREFIXES: Section = Section::XML_PREFIXES;
pub(crate) const XML_CHARACTERS: Section =
    Section { specification: Specification::Xml, number: Some("2.2"), name: "Characters" };
