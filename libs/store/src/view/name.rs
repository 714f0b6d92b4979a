//! Encodes one segment of a URI as a name of a file or directory, and decodes it.
//!
//! `^` begins each escape. It is no character of a URI, so ordinary segments stay as they are.

use super::hazard::{Hazards, is_hazard};

/// What a name is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    File,
    Directory,
}

/// The marks in names that prevent collisions in the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// None: names are as the URI writes them.
    Plain,
    /// A mark of case, for case-insensitive file systems.
    Cased,
    /// A mark of case, and one of the name's role: no two paths can collide anywhere.
    Strict,
}

/// How names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) rule: Rule,
    pub(super) hazards: Hazards,
}

/// The limit of most file systems, in bytes.
pub(super) const LONGEST: usize = 255;
/// At the end of a name in the role that it does not look like.
pub(super) const OTHER_ROLE: char = '^';
/// An empty segment.
const EMPTY: &str = "^-";
/// Begins the mark of letters whose case is unexpected.
const CASE: &str = "^u";

/// The name of a segment, without a limit of its length.
pub(super) fn encode(segment: &str, role: Role, style: Style) -> String {
    let mut name = escape(segment, style);
    let looks_like = if looks_like_a_file(segment) { Role::File } else { Role::Directory };
    if style.rule == Rule::Strict && looks_like != role {
        name.push(OTHER_ROLE);
    }
    name
}

/// The segment of a name that [`encode`] returned, by any rule; for other names `None` or anything.
pub(super) fn decode(name: &str) -> Option<String> {
    let name = name.strip_suffix(OTHER_ROLE).unwrap_or(name);
    if name == EMPTY {
        return Some(String::new());
    }
    // Letters are written as they are, so decoding does not need the mark of case.
    let (before, marked) = name.split_once(CASE).unwrap_or((name, ""));
    let after = marked.trim_start_matches(|c: char| matches!(c, '0'..='9' | 'a'..='f'));
    let mut bytes = Vec::with_capacity(name.len());
    for part in [before, after] {
        let mut rest = part.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte != b'^' {
                bytes.push(byte);
                continue;
            }
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a name counts as a file's: it ends with an extension, is a number, is empty (a trailing slash), or
/// holds a query or fragment. Names of files and directories thus differ without reading other URIs.
fn looks_like_a_file(segment: &str) -> bool {
    segment.bytes().all(|b| b.is_ascii_digit())
        || segment.contains(['?', '#'])
        || extension(segment).is_some_and(|at| segment[at..].bytes().any(|b| b.is_ascii_alphabetic()))
}

/// Where a name's extension begins, at its dot.
fn extension(name: &str) -> Option<usize> {
    let at = name.rfind('.')?;
    let extension = &name[at + 1..];
    let fits = (1..=8).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric());
    (fits && at > 0).then_some(at)
}

/// The segment with escapes for all bytes that a name cannot have, and with the mark of case if the rule has
/// it.
pub(super) fn escape(segment: &str, style: Style) -> String {
    if segment.is_empty() {
        return EMPTY.to_owned();
    }
    let bytes = segment.as_bytes();
    let mut name = String::with_capacity(bytes.len() + 8);
    let mut odd = Vec::new();
    for (i, (&byte, is_upper)) in bytes.iter().zip(expect_upper(bytes)).enumerate() {
        if is_hazard(bytes, i, style.hazards) {
            name.push_str(&format!("^{byte:02x}"));
            continue;
        }
        if byte.is_ascii_alphabetic() {
            odd.push(byte.is_ascii_uppercase() != is_upper);
        }
        name.push(char::from(byte));
    }
    if style.rule != Rule::Plain && odd.contains(&true) {
        // Before the extension, so that the system still recognizes the file's type.
        let at = extension(&name).unwrap_or(name.len());
        name.insert_str(at, &case_mark(&odd));
    }
    name
}

/// For each byte, whether a letter there is expected in upper case: only in `%XX`, as RFC 3986 section 2.1
/// recommends.
fn expect_upper(bytes: &[u8]) -> impl Iterator<Item = bool> + '_ {
    let mut escape_ends = 0;
    (0..bytes.len()).map(move |i| {
        let digits = bytes.get(i + 1..i + 3);
        if bytes[i] == b'%' && digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            escape_ends = i + 3;
        }
        i < escape_ends
    })
}

/// The mark of the letters with unexpected case: empty when all are, otherwise a bit for each, four to a
/// digit.
fn case_mark(odd: &[bool]) -> String {
    let mut mark = CASE.to_owned();
    if !odd.contains(&false) {
        return mark;
    }
    let last = odd.iter().rposition(|odd| *odd).map_or(0, |at| at + 1);
    for four in odd[..last].chunks(4) {
        let digit = four.iter().enumerate().fold(0, |digit, (n, odd)| digit | (u32::from(*odd) << n));
        mark.extend(char::from_digit(digit, 16));
    }
    mark
}
