//! The elements around the items: the root element, and the verb's.

use std::borrow::Cow;

use resourcesync::Position;

use super::unit::Unit;
use super::{Place, Reader, record};
use crate::answer::Identify;
use crate::error::ReadError;
use crate::events::Events;
use crate::quirk::{Quirk, QuirkSet};
use crate::scope::{is_oai, split};
use crate::verb::Verb;

/// A start tag outside of the items.
struct OuterTag {
    /// The namespace of its name.
    namespace: String,
    declared: Vec<(String, String)>,
    quirks: QuirkSet,
}

impl Reader {
    /// The root element's start tag.
    pub(super) fn root(&mut self, length: usize, name_length: usize, empty: bool) -> Result<(), ReadError> {
        let position = self.input.position();
        let name = self.input.ahead()[1..=name_length].to_vec();
        let shown = record::shown(&String::from_utf8_lossy(&name));
        let (prefix, local) = split(&shown);
        if local.eq_ignore_ascii_case("html") {
            return Err(ReadError::Html { position });
        }
        let outer = self.outer_tag(length, prefix)?;
        let quirk = match is_oai(&outer.namespace) {
            Some(quirk) if local == "OAI-PMH" => quirk,
            _ => return Err(ReadError::UnknownRoot { position, name: shown }),
        };
        quirk.into_iter().for_each(|quirk| self.note_at(quirk, position));
        if !prefix.is_empty() {
            self.note_at(Quirk::PrefixedOaiNamespace, position);
        }
        self.take(outer, 1, length, position);
        self.root_name = name;
        self.place = Place::Root;
        if empty {
            self.finish();
        }
        Ok(())
    }

    /// The start tag of an element named like a verb. `false`: it is another vocabulary's.
    pub(super) fn verb(
        &mut self,
        verb: Verb,
        length: usize,
        name_length: usize,
        empty: bool,
    ) -> Result<bool, ReadError> {
        let position = self.input.position();
        let name = self.input.ahead()[1..=name_length].to_vec();
        let outer = self.outer_tag(length, split(&String::from_utf8_lossy(&name)).0)?;
        if is_oai(&outer.namespace).is_none() {
            return Ok(false);
        }
        self.answer.verb.get_or_insert(verb);
        if verb == Verb::Identify {
            self.answer.identify.get_or_insert_with(Identify::default);
        }
        self.take(outer, 2, length, position);
        if empty {
            self.scope.leave(1);
        } else {
            self.verb_name = name;
            self.place = Place::Verb;
            // What is known of elements depends on the elements around them.
            self.unit = Unit::default();
        }
        Ok(true)
    }

    /// Reads a start tag outside of the items.
    fn outer_tag(&self, length: usize, prefix: &str) -> Result<OuterTag, ReadError> {
        let position = self.input.position();
        let malformed = |message: String| ReadError::Malformed { position, message };
        let text = std::str::from_utf8(&self.input.ahead()[..length])
            .map_err(|_| malformed("a start tag is not UTF-8".to_owned()))?;
        let mut events = Events::new(text, position, self.scope.inner(), &self.options.limits);
        events.next().map_err(|reason| malformed(reason.to_string()))?;
        let namespace = events.scope.resolve(prefix).unwrap_or_default().into_owned();
        Ok(OuterTag { namespace, declared: events.scope.of_first_element(), quirks: events.quirks })
    }

    /// Enters the element of a start tag outside of the items, which is at this depth.
    fn take(&mut self, tag: OuterTag, depth: usize, length: usize, position: Position) {
        for (prefix, uri) in tag.declared {
            self.scope.declare(depth, Cow::Owned(prefix), Cow::Owned(uri));
        }
        self.note_all(tag.quirks, position);
        self.input.consume(length);
    }
}
