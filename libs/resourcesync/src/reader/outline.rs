use std::slice::Iter;

use memchr::memmem;

use super::cursor::{Cursor, Stop};
use super::scope::{Name, Scope};
use crate::limits::Limits;

/// An entry with more of either does not have the common shape.
const MOST_PARTS: usize = 64;
const MOST_ATTRIBUTES: usize = 512;

/// The depth of `<loc>`.
const DEPTH: usize = 3;

const URL_END: &[u8; 6] = b"</url>";

/// The positions of an entry's parts, if it has the common shape: one `<url>` without attributes, of which
/// `<loc>` is the first element; only elements that are known here, without prefix or with `rs`; `rs:md` and
/// `rs:ln` empty; quoted attributes with blanks before them; no comment, no CDATA, no references but those
/// that stand for a character.
///
/// It reports what the parser would report of the same bytes, or nothing: every other shape is left to the
/// parser. It does not read values, so quirks and errors in them are found by the usual code.
pub(super) struct Outline {
    /// Whether `rs` is the prefix of ResourceSync.
    has_rs: bool,
    /// The position of `<url>`.
    pub(super) start: usize,
    /// Behind `</url>`.
    pub(super) end: usize,
    parts: Vec<Part>,
    attributes: Vec<Pair>,
}

/// A child of the entry.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) name: Name,
    /// The range of the text; for `rs:md` and `rs:ln` the range of their attributes among all.
    from: usize,
    until: usize,
    /// Whether the text is plain: without references and control characters.
    is_plain: bool,
}

/// The positions of an attribute's name and value.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    name: (usize, usize),
    value: (usize, usize),
    /// Whether the value is plain.
    is_plain: bool,
}

impl Outline {
    /// For the entries of a document whose root element has these namespace declarations. `None` if the names
    /// of the common shape have another meaning, or its elements are too deep.
    pub(super) fn of(scope: &Scope, limits: &Limits) -> Option<Self> {
        let has_rs = scope.declares_rs();
        let is_known = scope.takes_plain_names() && limits.max_depth >= DEPTH;
        is_known.then(|| Self { has_rs, start: 0, end: 0, parts: Vec::new(), attributes: Vec::new() })
    }

    /// Outlines the entry at the start of the bytes; blanks before it are allowed.
    pub(super) fn trace(&mut self, bytes: &[u8], limits: &Limits) -> Result<(), Stop> {
        self.parts.clear();
        self.attributes.clear();
        let mut cursor = Cursor::new(bytes);
        cursor.blanks();
        self.start = cursor.at();
        cursor.eat(b"<url>")?;
        cursor.blanks();
        self.text(&mut cursor, Name::Loc, b"<loc>", b"</loc>", limits)?;
        loop {
            cursor.blanks();
            match cursor.peek(1)? {
                b'r' if self.has_rs => self.element(&mut cursor, limits)?,
                b'l' => self.text(&mut cursor, Name::LastMod, b"<lastmod>", b"</lastmod>", limits)?,
                b'c' => {
                    self.text(&mut cursor, Name::ChangeFreq, b"<changefreq>", b"</changefreq>", limits)?;
                }
                b'p' => self.text(&mut cursor, Name::Priority, b"<priority>", b"</priority>", limits)?,
                _ => break,
            }
            if self.parts.len() > MOST_PARTS {
                return Err(Stop::Odd);
            }
        }
        cursor.eat(URL_END)?;
        self.end = cursor.at();
        let length = self.end as u64;
        if length < limits.max_event_bytes && length <= limits.max_entry_bytes {
            Ok(())
        } else {
            Err(Stop::Odd)
        }
    }

    /// The children, in their order.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The number of `rs:ln`.
    pub(super) fn links(&self) -> usize {
        self.parts.iter().filter(|part| part.name == Name::Ln).count()
    }

    /// The attributes of a `rs:md` or `rs:ln`.
    pub(super) fn attributes(&self, part: &Part) -> Iter<'_, Pair> {
        self.attributes[part.from..part.until].iter()
    }

    #[inline]
    fn text<const O: usize, const C: usize>(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Name,
        open: &[u8; O],
        close: &[u8; C],
        limits: &Limits,
    ) -> Result<(), Stop> {
        cursor.eat(open)?;
        let from = cursor.at();
        let is_plain = cursor.find(b'<')?;
        let until = cursor.at();
        cursor.eat(close)?;
        // The parser counts a reference as the longest character.
        if until - from + char::MAX.len_utf8() > limits.max_field_bytes {
            return Err(Stop::Odd);
        }
        self.parts.push(Part { name, from, until, is_plain });
        Ok(())
    }

    fn element(&mut self, cursor: &mut Cursor<'_>, limits: &Limits) -> Result<(), Stop> {
        cursor.eat(b"<rs:")?;
        let name = if cursor.peek(0)? == b'm' { Name::Md } else { Name::Ln };
        cursor.eat(if name == Name::Md { b"md" } else { b"ln" })?;
        let from = self.attributes.len();
        loop {
            let has_gap = cursor.blanks();
            match cursor.peek(0)? {
                b'/' => {
                    cursor.eat(b"/>")?;
                    let until = self.attributes.len();
                    self.parts.push(Part { name, from, until, is_plain: true });
                    return Ok(());
                }
                _ if has_gap => {}
                _ => return Err(Stop::Odd),
            }
            if self.attributes.len() - from >= limits.max_attributes
                || self.attributes.len() >= MOST_ATTRIBUTES
            {
                return Err(Stop::Odd);
            }
            let pair = Pair::trace(cursor)?;
            self.attributes.push(pair);
        }
    }
}

impl Part {
    /// For a text element.
    pub(super) fn text<'t>(&self, entry: &'t str) -> (&'t str, bool) {
        (&entry[self.from..self.until], self.is_plain)
    }
}

impl Pair {
    /// Up to and including the closing quote.
    #[inline]
    fn trace(cursor: &mut Cursor<'_>) -> Result<Self, Stop> {
        let name = cursor.name()?;
        cursor.eat(b"=")?;
        let quote = cursor.peek(0)?;
        if !matches!(quote, b'"' | b'\'') {
            return Err(Stop::Odd);
        }
        cursor.eat(&[quote])?;
        let from = cursor.at();
        let is_plain = cursor.find(quote)?;
        let value = (from, cursor.at());
        cursor.eat(&[quote])?;
        Ok(Self { name, value, is_plain })
    }

    /// The name and the value as written in the entry, and whether the value is plain.
    pub(super) fn of<'t>(&self, entry: &'t str) -> (&'t str, &'t str, bool) {
        (&entry[self.name.0..self.name.1], &entry[self.value.0..self.value.1], self.is_plain)
    }
}

/// Whether bytes contain the end of an entry.
pub(super) fn holds_end(bytes: &[u8]) -> bool {
    memmem::find(bytes, URL_END).is_some()
}

/// How many bytes of an entry's end may be before the new bytes.
pub(super) const END_OVERLAP: usize = URL_END.len() - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn outline() -> Outline {
        Outline { has_rs: true, start: 0, end: 0, parts: Vec::new(), attributes: Vec::new() }
    }

    fn trace(text: &str) -> Result<Outline, Stop> {
        let mut outline = outline();
        outline.trace(text.as_bytes(), &Limits::default()).map(|()| outline)
    }

    const COMMON: &str = "\n  <url>\n    <loc>http://e.org/?a=1&amp;b=2</loc>\n    <lastmod>2013-01-02</lastmod>\r\n\
        <changefreq>daily</changefreq><priority>0.5</priority>\n    <rs:md change='updated'\n\thash=\"md5:1\" />\n    \
        <rs:ln rel=\"up\" href=\"http://e.org/?a&#38;b\"/><rs:ln/>\n  </url>";

    #[test]
    fn common_shape_is_traced_to_its_end() {
        let text = format!("{COMMON}\n  <url>");
        let outline = trace(&text).unwrap();
        assert_eq!(&text[outline.start..outline.end], COMMON.trim_start());
        let names: Vec<Name> = outline.parts().iter().map(|part| part.name).collect();
        assert_eq!(
            names,
            [Name::Loc, Name::LastMod, Name::ChangeFreq, Name::Priority, Name::Md, Name::Ln, Name::Ln]
        );
        assert_eq!(outline.parts()[0].text(&text), ("http://e.org/?a=1&amp;b=2", false));
        let pairs = |part: usize| -> Vec<(&str, &str, bool)> {
            outline.attributes(&outline.parts()[part]).map(|pair| pair.of(&text)).collect()
        };
        assert_eq!(pairs(4), [("change", "updated", true), ("hash", "md5:1", true)]);
        assert_eq!(pairs(5), [("rel", "up", true), ("href", "http://e.org/?a&#38;b", false)]);
        assert_eq!((pairs(6).len(), outline.links()), (0, 2));
    }

    #[test]
    fn common_shape_that_ends_early_is_cut_wherever_it_ends() {
        for length in 0..COMMON.len() {
            assert_eq!(trace(&COMMON[..length]).err(), Some(Stop::Cut), "{:?}", &COMMON[..length]);
        }
    }

    #[test]
    fn what_needs_the_parser_is_odd() {
        for odd in [
            "</urlset>",
            "text <url>",
            "<!-- --><url>",
            "<sitemap><loc>x</loc></sitemap>",
            "<url a=''><loc>x</loc></url>",
            "<url><lastmod>2013</lastmod><loc>x</loc></url>",
            "<url><loc>x<!-- --></loc></url>",
            "<url><loc><![CDATA[x]]></loc></url>",
            "<url><loc>a&b; is no reference to a character, and so is none</loc></url>",
            "<url><loc>a&amp b, and a semicolon behind all that; comes late</loc></url>",
            "<url><loc>x</loc >  </url>",
            "<url><loc>x</lastmod>  </url>",
            "<url><loc>x</loc><image:loc>x</image:loc></url>",
            "<url><loc>x</loc><rs:md></rs:md></url>",
            "<url><loc>x</loc><rs:mdx a=''/></url>",
            "<url><loc>x</loc><rs:md a=''b=''/></url>",
            "<url><loc>x</loc><rs:md a = ''/></url>",
            "<url><loc>x</loc><rs:md a=x/></url>",
            "<url><loc>x</loc><rs:md a/></url>",
            "<url><loc>x</loc><rs:md =''/></url>",
            "<url><loc>x</loc><rs:md xmlns:rs=''/></url>",
            "<url><loc>x</loc><rs:md hash='&hash;'/></url>",
            "<url><loc>x</loc><rs:md / ></url>",
            "<url><loc>x</loc>text</url>",
            "<url><loc>x</loc></url >",
        ] {
            assert_eq!(trace(odd).err(), Some(Stop::Odd), "{odd}");
        }
    }

    #[test]
    fn what_is_near_a_limit_is_odd() {
        let entry = "<url><loc>12345678</loc><rs:md a='' b=''/></url>";
        let at_most = Limits {
            max_field_bytes: 12,
            max_attributes: 2,
            max_entry_bytes: entry.len() as u64,
            max_event_bytes: entry.len() as u64 + 1,
            ..Limits::default()
        };
        let mut outline = outline();
        assert_eq!(outline.trace(entry.as_bytes(), &at_most), Ok(()));
        for less in [
            Limits { max_field_bytes: 11, ..at_most.clone() },
            Limits { max_attributes: 1, ..at_most.clone() },
            Limits { max_entry_bytes: at_most.max_entry_bytes - 1, ..at_most.clone() },
            Limits { max_event_bytes: at_most.max_event_bytes - 1, ..at_most.clone() },
        ] {
            assert_eq!(outline.trace(entry.as_bytes(), &less), Err(Stop::Odd), "{less:?}");
        }
    }
}
