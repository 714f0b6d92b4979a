use std::borrow::Cow;
use std::collections::BTreeMap;
use std::slice::Iter;

use quick_xml::events::attributes::Attributes;

use super::attributes::Flaw;
use super::notes::Notes;
use super::outline::Pair;
use super::reference::{is_plain, shorten, unescape};
use crate::capability::{Capability, Change};
use crate::datetime::Datetime;
use crate::display::first_steering;
use crate::entry::BadReason;
use crate::limits::Limits;
use crate::quirk::Quirk;

const MAX_PRI: u32 = 999_999;

/// An element's attributes one after the other, with a method for each kind of value.
pub(super) struct Values<'t, 'n> {
    pairs: Pairs<'t>,
    left: usize,
    limits: &'n Limits,
    notes: &'n mut Notes,
}

/// A value as written.
pub(super) struct Raw<'t> {
    text: Cow<'t, str>,
    /// Whether it is plain: without references and control characters.
    is_plain: bool,
}

/// Names and values as written.
pub(super) enum Pairs<'t> {
    /// As the parser splits them.
    Parsed(Attributes<'t>),
    /// From an outline, in the entry's text.
    Outlined(Iter<'t, Pair>, &'t str),
}

impl<'t, 'n> Values<'t, 'n> {
    pub(super) fn new(pairs: Pairs<'t>, limits: &'n Limits, notes: &'n mut Notes) -> Self {
        Self { pairs, left: limits.max_attributes, limits, notes }
    }

    pub(super) fn next(&mut self) -> Result<Option<(&'t str, Raw<'t>)>, Flaw> {
        let attributes = match &mut self.pairs {
            Pairs::Parsed(attributes) => attributes,
            // An outline never has more of them than the limit.
            Pairs::Outlined(pairs, entry) => {
                return Ok(pairs.next().map(|pair| {
                    let (name, text, is_plain) = pair.of(entry);
                    (name, Raw { text: text.into(), is_plain })
                }));
            }
        };
        match attributes.next() {
            None => Ok(None),
            Some(_) if self.left == 0 => {
                Err(BadReason::TooManyAttributes { limit: self.limits.max_attributes }.into())
            }
            Some(Ok(attribute)) => {
                self.left -= 1;
                let raw = Raw { is_plain: is_plain(&attribute.value), text: attribute.value };
                Ok(Some((attribute.key.into_inner(), raw)))
            }
            Some(Err(error)) => Err(BadReason::Attribute { message: error.to_string() }.into()),
        }
    }

    fn value<'v>(&mut self, field: &'static str, raw: &'v Raw<'_>) -> Result<Option<Cow<'v, str>>, Flaw> {
        let Raw { text, is_plain } = raw;
        let raw = text.trim_ascii();
        if raw.is_empty() {
            self.notes.add(Quirk::EmptyValue);
            return Ok(None);
        }
        let limit = self.limits.max_field_bytes;
        if raw.len() > limit {
            return Err(BadReason::FieldTooLong { field, limit }.into());
        }
        if *is_plain {
            return Ok(Some(Cow::Borrowed(raw)));
        }
        let value = unescape(raw, self.notes).map_err(Flaw::Entity)?;
        check_text(field, &value, self.notes)?;
        Ok(Some(value))
    }

    pub(super) fn text(
        &mut self,
        field: &'static str,
        raw: Raw<'t>,
        slot: &mut Option<String>,
    ) -> Result<(), Flaw> {
        if let Some(value) = self.value(field, &raw)? {
            put(slot, value.into_owned(), field, self.notes)?;
        }
        Ok(())
    }

    /// An attribute of another vocabulary, by its name. It is left out where it cannot be read: the link does not
    /// depend on it.
    pub(super) fn other(&mut self, name: &str, raw: &Raw<'t>, others: &mut BTreeMap<String, String>) {
        let written = raw.text.trim_ascii();
        if written.is_empty() || others.contains_key(name) {
            return;
        }
        if name.len() + written.len() > self.limits.max_href_bytes {
            self.notes.add(Quirk::LinksTruncated);
            return;
        }
        let value = if raw.is_plain {
            Cow::Borrowed(written)
        } else {
            match unescape(written, self.notes) {
                Ok(value) if check_text("attribute", &value, self.notes).is_ok() => value,
                _ => return,
            }
        };
        others.insert(name.to_owned(), value.into_owned());
    }

    pub(super) fn length(
        &mut self,
        field: &'static str,
        raw: Raw<'t>,
        slot: &mut Option<u64>,
    ) -> Result<(), Flaw> {
        if let Some(value) = self.value(field, &raw)? {
            match digits(&value).and_then(|digits| digits.parse().ok()) {
                Some(length) => put(slot, length, field, self.notes)?,
                None => self.notes.add(Quirk::UnreadableLength),
            }
        }
        Ok(())
    }

    pub(super) fn pri(&mut self, raw: Raw<'t>, slot: &mut Option<u32>) -> Result<(), Flaw> {
        if let Some(value) = self.value("pri", &raw)? {
            let pri = digits(&value).and_then(|digits| digits.parse().ok());
            match pri.filter(|pri| (1..=MAX_PRI).contains(pri)) {
                Some(pri) => put(slot, pri, "pri", self.notes)?,
                None => self.notes.add(Quirk::UnreadablePriority),
            }
        }
        Ok(())
    }

    pub(super) fn time(
        &mut self,
        field: &'static str,
        raw: Raw<'t>,
        slot: &mut Option<Datetime>,
    ) -> Result<(), Flaw> {
        if let Some(value) = self.value(field, &raw)?
            && let Some(time) = read_time(&value, self.notes)
        {
            put(slot, time, field, self.notes)?;
        }
        Ok(())
    }

    /// The time of a change. If an unreadable one were dropped, `lastmod` would replace it, which would be a
    /// guess.
    pub(super) fn change_time(&mut self, raw: Raw<'t>, slot: &mut Option<Datetime>) -> Result<(), Flaw> {
        let value = self.value("datetime", &raw)?.unwrap_or_default();
        match Datetime::parse_lenient(&value) {
            Ok((time, quirks)) => {
                self.notes.add_set(quirks);
                Ok(put(slot, time, "datetime", self.notes)?)
            }
            Err(_) => Err(BadReason::UnreadableTime { value: shorten(&value) }.into()),
        }
    }

    pub(super) fn change(
        &mut self,
        raw: Raw<'t>,
        slot: &mut Option<Change>,
        tells_changes: bool,
    ) -> Result<(), Flaw> {
        let Some(value) = self.value("change", &raw)? else { return Ok(()) };
        let change = value.parse().or_else(|unknown| {
            let change = value.to_ascii_lowercase().parse::<Change>();
            if change.is_ok() {
                self.notes.add(Quirk::OddChangeCase);
            }
            change.map_err(|_| unknown)
        });
        match change {
            Ok(change) => put(slot, change, "change", self.notes)?,
            Err(_) if tells_changes => {
                return Err(BadReason::UnreadableChange { value: shorten(&value) }.into());
            }
            Err(_) => self.notes.add(Quirk::UnreadableChange),
        }
        Ok(())
    }

    pub(super) fn capability(&mut self, raw: Raw<'t>, slot: &mut Option<Capability>) -> Result<(), Flaw> {
        if let Some(value) = self.value("capability", &raw)? {
            let (capability, quirk) = Capability::read(&value);
            quirk.into_iter().for_each(|quirk| self.notes.add(quirk));
            put(slot, capability, "capability", self.notes)?;
        }
        Ok(())
    }
}

/// Checks that a text has valid characters only.
pub(super) fn check_text(field: &'static str, text: &str, notes: &mut Notes) -> Result<(), BadReason> {
    if !is_plain(text) && text.bytes().any(|byte| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r')) {
        notes.add(Quirk::InvalidUtf8);
        return Err(BadReason::NotText { field });
    }
    Ok(())
}

/// Refuses a `loc` with display commands: a terminal that lists entries would obey them.
pub(super) fn check_loc(text: &str) -> Result<(), BadReason> {
    first_steering(text).map_or(Ok(()), |character| Err(BadReason::ControlCharacter { character }))
}

/// A text without surrounding blanks, which most texts do not have.
pub(super) fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [b'!'..=b'~', .., b'!'..=b'~'] => text,
        _ => text.trim(),
    }
}

/// Fills a slot; the same value twice is a quirk, different values are a conflict.
pub(super) fn put<T: PartialEq>(
    slot: &mut Option<T>,
    value: T,
    field: &'static str,
    notes: &mut Notes,
) -> Result<(), BadReason> {
    match slot {
        None => *slot = Some(value),
        Some(known) if *known == value => notes.add(Quirk::RepeatedMetadata),
        Some(_) => return Err(BadReason::Conflict { field }),
    }
    Ok(())
}

/// A time that may be dropped when it is unreadable.
pub(super) fn read_time(text: &str, notes: &mut Notes) -> Option<Datetime> {
    match Datetime::parse_lenient(text) {
        Ok((time, quirks)) => {
            notes.add_set(quirks);
            Some(time)
        }
        Err(_) => {
            notes.add(Quirk::UnreadableTime);
            None
        }
    }
}

/// Decimal digits only: number parsers also accept a sign.
fn digits(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}
