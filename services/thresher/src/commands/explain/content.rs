//! What the stored metadata of an OAI-PMH record names, and which rule classed each link.

use model::ResourceRecord;
use oaipmh::Limits;
use serde::Serialize;
use store::Store;

/// Links that are shown.
const SHOWN: usize = 300;

/// A link in the metadata of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Named {
    pub(super) href: String,
    /// What is behind it, as far as the record says.
    pub(super) role: &'static str,
    /// The rule that says so: the format, and what stands there.
    pub(super) rule: &'static str,
    /// When it becomes open, as the record writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) open_from: Option<String>,
}

/// Reads them from the stored bytes; none of what is no record, or cannot be read.
pub(super) async fn of(store: &Store, record: Option<&ResourceRecord>) -> Vec<Named> {
    let Some(bitstream) = record.and_then(|record| record.bitstream.as_ref()) else { return Vec::new() };
    let limits = Limits::default();
    if bitstream.computed.length() > limits.max_record_bytes as u64 {
        return Vec::new();
    }
    let Ok(bytes) = store.read_verified(bitstream).await else { return Vec::new() };
    let document = std::str::from_utf8(&bytes).ok();
    let Some(metadata) = document.and_then(|text| oaipmh::canonicalize(text, &limits).ok()) else {
        return Vec::new();
    };
    let links = oaipmh::links(&metadata, &limits, SHOWN).links.into_iter();
    links
        .map(|link| Named {
            role: link.role.as_str(),
            rule: link.rule,
            open_from: link.open_from,
            href: link.href,
        })
        .collect()
}
