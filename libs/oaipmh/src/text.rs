//! Characters and references of XML.

use std::borrow::Cow;

use memchr::{memchr, memchr3};
use resourcesync::steers_display;

use crate::quirk::{Quirk, QuirkSet};

const MAX_NAME_BYTES: usize = 64;

/// What stands between `&` and `;`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    Char(char),
    /// A reference to a character that XML forbids.
    Illegal,
    /// No name, as in `?a=1&b=2;`: an ampersand that should have been escaped.
    Bare,
    /// A name that only a document type definition could define.
    Entity,
}

/// Resolves XML's own references.
pub(crate) fn reference(name: &str) -> Reference {
    match name {
        "amp" => Reference::Char('&'),
        "lt" => Reference::Char('<'),
        "gt" => Reference::Char('>'),
        "quot" => Reference::Char('"'),
        "apos" => Reference::Char('\''),
        _ => match name.strip_prefix('#') {
            Some(number) => character(number).map_or(Reference::Illegal, Reference::Char),
            None if is_name(name) => Reference::Entity,
            None => Reference::Bare,
        },
    }
}

fn character(number: &str) -> Option<char> {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?).filter(|&character| is_legal(character))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
}

/// Whether XML 1.0 has this character (production 2).
pub(crate) fn is_legal(character: char) -> bool {
    !matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Replaces characters that XML forbids with U+FFFD. Returns how many, and the byte of the first.
pub(crate) fn replace_illegal(text: &str) -> Option<(String, u64, usize)> {
    // All bytes are checked without an early exit, so that the compiler can vectorize the loop.
    let suspicious = text.bytes().fold(false, |found, byte| {
        found | ((byte < b' ') & (byte != b'\n') & (byte != b'\r') & (byte != b'\t')) | (byte == 0xef)
    });
    if !suspicious {
        return None;
    }
    let (first, _) = text.char_indices().find(|(_, character)| !is_legal(*character))?;
    let mut count = 0;
    let mut clean = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_legal(character) {
            clean.push(character);
        } else {
            count += 1;
            clean.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Some((clean, count, first))
}

/// An attribute's value with references resolved and line ends turned into blanks. The error is the refused
/// entity.
pub(crate) fn attribute_value<'v>(raw: &'v str, quirks: &mut QuirkSet) -> Result<Cow<'v, str>, String> {
    let special = raw.bytes().fold(false, |special, byte| special | (byte < b' ') | (byte == b'&'));
    if !special {
        return Ok(Cow::Borrowed(raw));
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find(['&', '\n', '\r', '\t']) {
        text.push_str(&rest[..at]);
        let special = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        if special == b'&' {
            rest = resolve_into(&mut text, rest, quirks)?;
        } else {
            text.push(' ');
            if special == b'\r' {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
        }
    }
    text.push_str(rest);
    Ok(Cow::Owned(text))
}

/// Appends what an ampersand before `rest` means; returns what follows.
fn resolve_into<'r>(text: &mut String, rest: &'r str, quirks: &mut QuirkSet) -> Result<&'r str, String> {
    // A longer search would make many lone ampersands costly.
    let end = rest.bytes().take(MAX_NAME_BYTES).position(|byte| byte == b';');
    let name = end.and_then(|end| rest.get(..end));
    match name.map(|name| (name, reference(name))) {
        Some((name, Reference::Char(character))) => {
            text.push(character);
            return Ok(&rest[name.len() + 1..]);
        }
        Some((name, Reference::Illegal)) => {
            quirks.insert(Quirk::IllegalCharacter);
            text.push(char::REPLACEMENT_CHARACTER);
            return Ok(&rest[name.len() + 1..]);
        }
        Some((name, Reference::Entity)) => return Err(shorten(name)),
        Some((_, Reference::Bare)) | None => {
            quirks.insert(Quirk::BareAmpersand);
            text.push('&');
        }
    }
    Ok(rest)
}

/// Appends a text as C14N has it: `&`, `<`, `>` and CR escaped. `raw`: line ends are those of a file, so CR and
/// CRLF become LF first.
pub(crate) fn push_text(out: &mut String, text: &str, raw: bool) {
    let mut rest = text;
    loop {
        let found = match (memchr3(b'>', b'\r', b'<', rest.as_bytes()), memchr(b'&', rest.as_bytes())) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let Some(at) = found else { break };
        out.push_str(&rest[..at]);
        let special = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match special {
            b'&' => out.push_str("&amp;"),
            b'<' => out.push_str("&lt;"),
            b'>' => out.push_str("&gt;"),
            _ if raw => {
                out.push('\n');
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
            _ => out.push_str("&#xD;"),
        }
    }
    out.push_str(rest);
}

/// Appends an attribute's value as C14N has it.
pub(crate) fn push_attribute_value(out: &mut String, value: &str) {
    let plain = !value
        .bytes()
        .fold(false, |special, byte| special | (byte < b' ') | matches!(byte, b'&' | b'<' | b'"'));
    if plain {
        out.push_str(value);
        return;
    }
    for character in value.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#x9;"),
            '\n' => out.push_str("&#xA;"),
            '\r' => out.push_str("&#xD;"),
            other => out.push(other),
        }
    }
}

/// The beginning of a Source's text, short enough for a message, and without display commands.
pub(crate) fn shorten(text: &str) -> String {
    shorten_to(text, 60)
}

/// As [`shorten`], to this many characters.
pub(crate) fn shorten_to(text: &str, characters: usize) -> String {
    let shown = |character| if steers_display(character) { char::REPLACEMENT_CHARACTER } else { character };
    text.chars().take(characters).map(shown).collect()
}

/// Whether a text is a prefix, a colon and a local name; returns the prefix.
pub(crate) fn qname_prefix(text: &str) -> Option<&str> {
    const LONGEST: usize = 100;
    if text.len() > LONGEST {
        return None;
    }
    let (prefix, local) = text.split_once(':')?;
    (is_ncname(prefix) && is_ncname(local)).then_some(prefix)
}

fn is_ncname(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_character_references_are_resolved_and_line_ends_become_blanks() {
        let mut quirks = QuirkSet::default();
        let value = attribute_value("a&amp;b&lt;&#65;&#x42;\r\nc\td&#10;", &mut quirks).unwrap();
        assert_eq!(value, "a&b<AB c d\n");
        assert!(quirks.is_empty());
    }

    #[test]
    fn bare_ampersands_and_illegal_references_are_counted_and_entities_refused() {
        let mut quirks = QuirkSet::default();
        assert_eq!(
            attribute_value("?a=1&b=2;&#0;&#xFFFE;", &mut quirks).unwrap(),
            "?a=1&b=2;\u{fffd}\u{fffd}"
        );
        assert_eq!(quirks.iter().collect::<Vec<_>>(), [Quirk::IllegalCharacter, Quirk::BareAmpersand]);
        assert_eq!(attribute_value("caf&eacute;", &mut quirks), Err("eacute".to_owned()));
    }

    #[test]
    fn forbidden_characters_are_replaced_and_counted_and_others_kept() {
        assert_eq!(replace_illegal("é\t\n\r\u{ff01}\u{fffd}"), None);
        assert_eq!(replace_illegal("ab\u{1f}\u{fffe}c"), Some(("ab\u{fffd}\u{fffd}c".to_owned(), 2, 2)));
    }

    #[test]
    fn text_is_escaped_as_c14n_does_and_its_line_ends_are_unified() {
        let mut out = String::new();
        push_text(&mut out, "a>b\r\nc\rd", true);
        push_text(&mut out, "|<&\r\n", false);
        assert_eq!(out, "a&gt;b\nc\nd|&lt;&amp;&#xD;\n");
    }

    #[test]
    fn qualified_names_are_told_from_urls_and_prose() {
        assert_eq!(qname_prefix("dcterms:URI"), Some("dcterms"));
        for text in ["http://example.org/", "10:30", "a: b", "plain", "doi:10.1/x"] {
            assert_eq!(qname_prefix(text), None, "{text}");
        }
    }
}
