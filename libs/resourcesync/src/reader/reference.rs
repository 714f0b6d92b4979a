use std::borrow::Cow;

use memchr::memchr;

use super::notes::Notes;
use super::source::NOT_TEXT;
use crate::display::steers_display;
use crate::quirk::Quirk;
use crate::writer::is_xml_character;

const MAX_NAME_BYTES: usize = 64;

/// The name between `&` and `;`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference {
    Char(char),
    /// No name at all, as in `?a=1&b=2;`: an ampersand that should have been escaped.
    Bare,
    /// A name that only a document type definition could define.
    Entity,
}

/// Resolves XML's own references.
pub(super) fn resolve(name: &str) -> Reference {
    match name {
        "amp" => Reference::Char('&'),
        "lt" => Reference::Char('<'),
        "gt" => Reference::Char('>'),
        "quot" => Reference::Char('"'),
        "apos" => Reference::Char('\''),
        _ => match name.strip_prefix('#') {
            Some(number) => Reference::Char(character(number).unwrap_or(NOT_TEXT)),
            None if is_name(name) => Reference::Entity,
            None => Reference::Bare,
        },
    }
}

/// An attribute's value with references resolved and line ends turned into blanks. The error is the refused
/// entity.
pub(super) fn unescape<'v>(raw: &'v str, notes: &mut Notes) -> Result<Cow<'v, str>, String> {
    if is_plain(raw) {
        return Ok(Cow::Borrowed(raw));
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find(['&', '\n', '\r', '\t']) {
        text.push_str(&rest[..at]);
        let special = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        if special != b'&' {
            text.push(' ');
            continue;
        }
        match name(rest).map(|name| (name, resolve(name))) {
            Some((name, Reference::Char(character))) => {
                text.push(character);
                rest = &rest[name.len() + 1..];
            }
            Some((name, Reference::Entity)) => return Err(shorten(name)),
            Some((_, Reference::Bare)) | None => {
                notes.add(Quirk::BareAmpersand);
                text.push('&');
            }
        }
    }
    text.push_str(rest);
    Ok(Cow::Owned(text))
}

/// Appends an element's text, resolving the references that stand for a character. All others stay as they
/// are.
pub(super) fn resolve_characters(raw: &str, text: &mut String) {
    let mut rest = raw;
    while let Some(at) = memchr(b'&', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match name(rest).map(|name| (name, resolve(name))) {
            Some((name, Reference::Char(character))) => {
                text.push(character);
                rest = &rest[name.len() + 1..];
            }
            _ => text.push('&'),
        }
    }
    text.push_str(rest);
}

/// Whether a text is plain: without references and control characters.
///
/// All bytes are checked without an early exit, so that the compiler can vectorize the loop.
pub(super) fn is_plain(text: &str) -> bool {
    !text.bytes().fold(false, |special, byte| special | (byte < b' ') | (byte == b'&'))
}

/// The beginning of a Source's text, short enough for a message, and without display commands.
pub(super) fn shorten(text: &str) -> String {
    let shown = |character| if steers_display(character) { char::REPLACEMENT_CHARACTER } else { character };
    text.chars().take(60).map(shown).collect()
}

/// The name before a near `;`. A longer search would make many lone ampersands costly.
fn name(rest: &str) -> Option<&str> {
    let end = rest.bytes().take(MAX_NAME_BYTES).position(|byte| byte == b';')?;
    rest.get(..end)
}

fn character(number: &str) -> Option<char> {
    let code = match number.strip_prefix('x') {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?).filter(|&c| is_xml_character(c))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Mode;

    fn read(raw: &str) -> (Result<String, String>, u64) {
        let mut notes = Notes::new(Mode::Tolerant);
        let text = unescape(raw, &mut notes).map(Cow::into_owned);
        (text, notes.quirks().count(Quirk::BareAmpersand))
    }

    #[test]
    fn own_and_character_references_are_resolved() {
        assert_eq!(read("a&amp;b&lt;&#65;&#x42;&apos;"), (Ok("a&b<AB'".to_owned()), 0));
    }

    #[test]
    fn line_ends_become_blanks_but_not_when_referred_to() {
        assert_eq!(read("md5:1\nsha-1:2&#10;"), (Ok("md5:1 sha-1:2\n".to_owned()), 0));
    }

    #[test]
    fn text_keeps_line_ends_and_what_is_no_reference_to_a_character() {
        let mut text = "x".to_owned();
        resolve_characters("&lt;a&amp;b\n&#233;&eacute;&c", &mut text);
        assert_eq!(text, "x<a&b\né&eacute;&c");
    }

    #[test]
    fn bare_ampersands_are_taken_for_themselves_and_flagged() {
        assert_eq!(read("?a=1&b=2;c&d"), (Ok("?a=1&b=2;c&d".to_owned()), 2));
    }

    #[test]
    fn other_entities_are_refused_by_name() {
        assert_eq!(read("caf&eacute;").0, Err("eacute".to_owned()));
    }

    #[test]
    fn references_to_what_is_no_character_become_not_text() {
        let read = read("&#0;&#xD800;&#x110000;&#xFFFE;&#65535;").0;
        assert_eq!(read, Ok(NOT_TEXT.to_string().repeat(5)));
    }
}
