use super::attributes::{self, Flaw};
use super::notes::Notes;
use super::scope::Name;
use super::tokens::Tag;
use super::uri;
use crate::entry::BadReason;
use crate::error::{LimitKind, ReadError};
use crate::header::Header;
use crate::limits::Options;
use crate::metadata::Metadata;
use crate::position::Position;

impl Options {
    /// Adds a `rs:md` or `rs:ln` of the document itself to its header.
    pub(super) fn absorb(
        &self,
        tag: &Tag<'_>,
        header: &mut Header,
        header_bytes: u64,
        notes: &mut Notes,
    ) -> Result<(), Flaw> {
        let limits = &self.limits;
        if header_bytes > limits.max_entry_bytes {
            return Err(Flaw::Limit(LimitKind::HeaderBytes(limits.max_entry_bytes)));
        }
        if tag.name == Name::Ln {
            if let Some(mut link) = attributes::link(tag.pairs(), limits, notes)? {
                if header.links.len() >= limits.max_links_per_entry {
                    return Err(Flaw::Limit(LimitKind::Links(limits.max_links_per_entry)));
                }
                link.href = uri::absolute(link.href, self.base.as_ref(), notes);
                header.links.push(attributes::known_case(link, notes));
            }
            return Ok(());
        }
        let Header { capability, at, completed, from, until, .. } = header;
        let mut said = Metadata {
            capability: capability.take(),
            at: at.take(),
            completed: completed.take(),
            from: from.take(),
            until: until.take(),
            ..Metadata::default()
        };
        let result = attributes::metadata(tag.pairs(), &mut said, false, limits, notes);
        *capability = said.capability;
        *at = said.at;
        *completed = said.completed;
        *from = said.from;
        *until = said.until;
        result
    }
}

/// The document's own metadata has no entry to drop, so an error ends the reading.
pub(super) fn header_error(position: Position, flaw: Flaw) -> ReadError {
    let limit = match flaw {
        Flaw::Entity(name) => return ReadError::EntityRefused { position, name },
        Flaw::Limit(limit) => limit,
        Flaw::Bad(BadReason::FieldTooLong { limit, .. }) => LimitKind::FieldBytes(limit),
        Flaw::Bad(BadReason::TooManyAttributes { limit }) => LimitKind::Attributes(limit),
        Flaw::Bad(reason) => return ReadError::Malformed { position, message: reason.to_string() },
    };
    ReadError::Limit { position, limit }
}
