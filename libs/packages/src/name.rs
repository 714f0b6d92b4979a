//! Names of members: their encoding, their oddities, and how a manifest's `path` finds them.

use std::borrow::Cow;

/// An oddity of a member's name.
///
/// None of these is dangerous here: a name is looked up, never opened as a file. A member with an odd name is
/// used only if the manifest has exactly the same string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameOddity {
    /// A segment is `..`, so a careless tool would write outside its folder.
    ParentFolder,
    /// It begins with `/` or with a drive letter.
    Absolute,
    /// It holds a `\`, which some systems read as `/`.
    Backslash,
    /// It holds a control character, such as NUL, where other readers may end it.
    Control,
    /// It is not UTF-8, and is read as code page 437.
    NotUtf8,
}

impl NameOddity {
    /// All oddities of `name`.
    pub fn of(name: &[u8]) -> Vec<Self> {
        let drive = matches!(name, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
        let has = |found: bool, oddity| found.then_some(oddity);
        [
            has(
                name.split(|byte| matches!(byte, b'/' | b'\\')).any(|part| part == b".."),
                Self::ParentFolder,
            ),
            has(drive || matches!(name.first(), Some(b'/' | b'\\')), Self::Absolute),
            has(name.contains(&b'\\'), Self::Backslash),
            has(name.iter().any(u8::is_ascii_control), Self::Control),
            has(std::str::from_utf8(name).is_err(), Self::NotUtf8),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// How a manifest's `path` matches the name of its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathMatch {
    /// The very same string.
    Exact,
    /// The same except for the leading slash, which the specification writes in `path` and archives do not
    /// write in names.
    LeadingSlash,
}

/// The possible member names of a manifest's `path`: the same string, the string without its leading slash,
/// or with one.
///
/// Nothing else is tried: `..` is not resolved, `\` is not `/`, and case matters.
pub fn path_candidates(path: &str) -> [(Cow<'_, str>, PathMatch); 2] {
    let other = match path.strip_prefix('/') {
        Some(relative) => Cow::Borrowed(relative),
        None => Cow::Owned(format!("/{path}")),
    };
    [(Cow::Borrowed(path), PathMatch::Exact), (other, PathMatch::LeadingSlash)]
}

/// `name` as text: UTF-8, or else code page 437, the fallback of ZIP's own specification (APPNOTE, appendix
/// D).
pub(crate) fn text(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(name.iter().map(|&byte| cp437(byte)).collect()),
    }
}

/// `text` in code page 437, if that exists and differs from its UTF-8.
pub(crate) fn to_cp437(text: &str) -> Option<Vec<u8>> {
    if text.is_ascii() {
        return None;
    }
    let byte = |c: char| {
        if c.is_ascii() {
            Some(c as u8)
        } else {
            CP437.chars().position(|other| other == c).map(|position| 0x80 + position as u8)
        }
    };
    text.chars().map(byte).collect()
}

/// `name` for a message: without control characters, and at most a line long.
pub(crate) fn shown(name: &[u8]) -> String {
    const LONGEST: usize = 200;
    let text = text(name);
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

fn cp437(byte: u8) -> char {
    match byte.checked_sub(0x80) {
        None => byte as char,
        Some(upper) => CP437.chars().nth(usize::from(upper)).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_not_odd() {
        for name in ["a", "a/b.pdf", "a..b/..c/d..", "ä/ö", "a:b", ".hidden", "a b"] {
            assert_eq!(NameOddity::of(name.as_bytes()), [], "{name}");
        }
    }

    #[test]
    fn each_oddity_is_told() {
        use NameOddity::*;
        let cases: [(&[u8], &[NameOddity]); 9] = [
            (b"../a", &[ParentFolder]),
            (b"a/..", &[ParentFolder]),
            (b"..\\a", &[ParentFolder, Backslash]),
            (b"/a", &[Absolute]),
            (b"C:/a", &[Absolute]),
            (b"\\\\host\\a", &[Absolute, Backslash]),
            (b"a\\b", &[Backslash]),
            (b"a.pdf\0.exe", &[Control]),
            (b"na\xefve", &[NotUtf8]),
        ];
        for (name, expected) in cases {
            assert_eq!(NameOddity::of(name), expected, "{}", shown(name));
        }
    }

    #[test]
    fn code_page_437_goes_both_ways() {
        assert_eq!(CP437.chars().count(), 128);
        assert_eq!(text(b"b\x84r"), "bär");
        assert_eq!(to_cp437("bär").unwrap(), b"b\x84r");
        assert_eq!(to_cp437("bar"), None, "the same bytes anyway");
        assert_eq!(to_cp437("日"), None);
    }

    #[test]
    fn shown_names_are_one_short_line() {
        assert_eq!(shown(b"a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
        assert_eq!(shown(&[b'x'; 5_000]).chars().count(), 201);
    }

    #[test]
    fn path_finds_the_same_string_first_and_then_the_one_without_slash() {
        let candidates = |path| path_candidates(path).map(|(name, _)| name.into_owned());
        assert_eq!(candidates("/a/b"), ["/a/b", "a/b"]);
        assert_eq!(candidates("a/b"), ["a/b", "/a/b"]);
        assert_eq!(candidates("../a"), ["../a", "/../a"]);
    }
}
