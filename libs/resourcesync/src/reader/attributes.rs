use super::notes::Notes;
use super::values::{Pairs, Values};
use crate::entry::BadReason;
use crate::error::LimitKind;
use crate::limits::Limits;
use crate::link::{Link, relation};
use crate::metadata::Metadata;
use crate::quirk::Quirk;

/// An error in an element. It makes an entry bad; in the document's own metadata it ends the reading.
#[derive(Debug)]
pub(super) enum Flaw {
    Bad(BadReason),
    /// An entity, which always ends the reading.
    Entity(String),
    /// A limit of the document's own metadata.
    Limit(LimitKind),
}

impl From<BadReason> for Flaw {
    fn from(reason: BadReason) -> Self {
        Self::Bad(reason)
    }
}

/// Adds a `rs:md` to the values of earlier ones.
pub(super) fn metadata(
    pairs: Pairs<'_>,
    metadata: &mut Metadata,
    tells_changes: bool,
    limits: &Limits,
    notes: &mut Notes,
) -> Result<(), Flaw> {
    let mut values = Values::new(pairs, limits, notes);
    while let Some((name, raw)) = values.next()? {
        match name {
            "hash" => values.text("hash", raw, &mut metadata.hash)?,
            "length" => values.length("length", raw, &mut metadata.length)?,
            "type" => values.text("type", raw, &mut metadata.media_type)?,
            "change" => values.change(raw, &mut metadata.change, tells_changes)?,
            "datetime" => values.change_time(raw, &mut metadata.datetime)?,
            "path" => values.text("path", raw, &mut metadata.path)?,
            "encoding" => values.text("encoding", raw, &mut metadata.encoding)?,
            "capability" => values.capability(raw, &mut metadata.capability)?,
            "at" => values.time("at", raw, &mut metadata.at)?,
            "completed" => values.time("completed", raw, &mut metadata.completed)?,
            "from" => values.time("from", raw, &mut metadata.from)?,
            "until" => values.time("until", raw, &mut metadata.until)?,
            _ => {}
        }
    }
    Ok(())
}

/// Reads a `rs:ln`; `None` when it has no target.
pub(super) fn link(pairs: Pairs<'_>, limits: &Limits, notes: &mut Notes) -> Result<Option<Link>, Flaw> {
    let mut link = Link::default();
    let mut rel = None;
    let mut href = None;
    let mut values = Values::new(pairs, limits, notes);
    while let Some((name, raw)) = values.next()? {
        match name {
            "rel" => values.text("rel", raw, &mut rel)?,
            "href" => values.text("href", raw, &mut href)?,
            "hash" => values.text("hash", raw, &mut link.hash)?,
            "length" => values.length("length", raw, &mut link.length)?,
            "type" => values.text("type", raw, &mut link.media_type)?,
            "encoding" => values.text("encoding", raw, &mut link.encoding)?,
            "modified" => values.time("modified", raw, &mut link.modified)?,
            "path" => values.text("path", raw, &mut link.path)?,
            "pri" => values.pri(raw, &mut link.pri)?,
            _ if is_namespace(name) => {}
            _ => values.other(name, &raw, &mut link.other),
        }
    }
    let (Some(rel), Some(href)) = (rel, href) else {
        notes.add(Quirk::LinkWithoutTarget);
        return Ok(None);
    };
    link.rel = rel;
    link.href = href;
    Ok(Some(link))
}

/// The link, with a known relation in lower case.
pub(super) fn known_case(link: Link, notes: &mut Notes) -> Link {
    let Some(known) = relation::miscased(&link.rel) else { return link };
    notes.add(Quirk::RelationCase);
    Link { rel: known.to_owned(), ..link }
}

/// Whether an attribute declares a namespace.
fn is_namespace(name: &str) -> bool {
    name == "xmlns" || name.starts_with("xmlns:")
}
