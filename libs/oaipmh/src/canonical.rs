//! The canonical form of metadata: exclusive C14N with comments, except that every prefix is declared at the root.
//!
//! A prefix that is bound to two namespaces is declared at the root for the first, and where it is used for
//! others. The default namespace is declared where it is used, as exclusive C14N does, since moving it could change
//! the meaning of names in values.

use std::borrow::Cow;

use resourcesync::Position;
use sha2::{Digest, Sha256};

use crate::error::BadReason;
use crate::events::{Events, Tag, Token};
use crate::limits::Limits;
use crate::quirk::Quirk;
use crate::record::Metadata;
use crate::scope::{MAX_DECLARATIONS, Scope, XML_NAMESPACE, split};
use crate::text::{push_attribute_value, push_text, qname_prefix};

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// A short document may double its length and more, by the declarations that it gets.
const EXTRA_BYTES: usize = 64 * 1024;

/// Attributes that differ in each answer though nothing changed: namespace and local name of the element, and the
/// attribute. DSpace writes the time of the answer there.
const VOLATILE: [(&str, &str, &str); 1] = [("http://www.loc.gov/METS/", "metsHdr", "CREATEDATE")];

/// Canonicalizes the element whose start tag was read. `scratch` is a buffer to be used again.
pub(crate) fn element<'x>(
    events: &mut Events<'x>,
    root: Tag<'x>,
    scratch: &mut String,
) -> Result<Metadata, BadReason> {
    scratch.clear();
    let mut form = Form {
        out: scratch,
        root_name_end: 0,
        hoisted: Vec::new(),
        overrides: Vec::new(),
        defaults: Vec::new(),
        declared: Vec::new(),
        attributes: Vec::new(),
    };
    let (prefix, local) = split(root.name());
    let namespace = events.namespace(prefix)?;
    let depth = events.depth + usize::from(root.empty);
    form.open(events, &root, depth, true)?;
    if !root.empty {
        let inside = events.depth;
        while events.depth >= inside {
            let token = events.next()?;
            form.token(events, token)?;
        }
    }
    Ok(Metadata { document: form.document(), namespace: namespace.into_owned(), root: local.to_owned() })
}

struct Form<'x, 's> {
    out: &'s mut String,
    /// Where the root's declarations go.
    root_name_end: usize,
    /// Prefixes that are declared at the root.
    hoisted: Vec<(String, Cow<'x, str>)>,
    /// Prefixes that mean something else below an element at this depth.
    overrides: Vec<(usize, String, Cow<'x, str>)>,
    /// The default namespaces in force in the output.
    defaults: Vec<(usize, Cow<'x, str>)>,
    /// Declarations of the current element.
    declared: Vec<(String, Cow<'x, str>)>,
    /// Attributes of the current element: namespace, name, where the local name begins, value.
    attributes: Vec<(Cow<'x, str>, &'x str, usize, Cow<'x, str>)>,
}

impl<'x> Form<'x, '_> {
    fn token(&mut self, events: &mut Events<'x>, token: Token<'x>) -> Result<(), BadReason> {
        match token {
            Token::Open(tag) => {
                let depth = events.depth + usize::from(tag.empty);
                self.open(events, &tag, depth, false)?;
            }
            Token::Close(name) => {
                self.out.push_str("</");
                self.out.push_str(name);
                self.out.push('>');
                self.leave(events.depth);
            }
            Token::Text(text) => {
                if let Some(prefix) = qname_prefix(text.trim_ascii()) {
                    self.bind_if_declared(events, prefix);
                }
                push_text(self.out, &text, true);
            }
            Token::Char(character) => {
                let mut bytes = [0; 4];
                push_text(self.out, character.encode_utf8(&mut bytes), false);
            }
            Token::Comment(text) => self.kept("<!--", &text, "-->"),
            Token::Instruction(text) => self.kept("<?", &text, "?>"),
            Token::Declaration => events.quirks.insert(Quirk::InnerXmlDeclaration),
            Token::End => return Err(events.cut()),
        }
        Ok(())
    }

    fn kept(&mut self, opening: &str, text: &str, closing: &str) {
        self.out.push_str(opening);
        if text.contains('\r') {
            self.out.push_str(&text.replace("\r\n", "\n").replace('\r', "\n"));
        } else {
            self.out.push_str(text);
        }
        self.out.push_str(closing);
    }

    fn open(
        &mut self,
        events: &mut Events<'x>,
        tag: &Tag<'x>,
        depth: usize,
        is_root: bool,
    ) -> Result<(), BadReason> {
        let name = tag.name();
        let (prefix, local) = split(name);
        if local.is_empty() || local.contains(':') {
            return Err(events.flawed(&format!("<{name}> is no qualified name")));
        }
        let limit = events.limits().max_record_bytes;
        // Declarations that are repeated make it longer than it was.
        if self.out.len() > limit.saturating_mul(2).saturating_add(EXTRA_BYTES) {
            return Err(BadReason::RecordBytes(limit));
        }
        if self.hoisted.len() > MAX_DECLARATIONS || self.overrides.len() > MAX_DECLARATIONS {
            return Err(BadReason::Declarations(MAX_DECLARATIONS));
        }
        self.declared.clear();
        let uri = events.namespace(prefix)?;
        if !prefix.is_empty() {
            self.bind(prefix, uri, depth);
        } else if self.defaults.last().map_or("", |(_, uri)| &**uri) != uri {
            self.declared.push((String::new(), uri.clone()));
            self.defaults.push((depth, uri));
        }
        self.attributes.clear();
        if tag.has_attributes() {
            self.read_attributes(events, tag, depth)?;
        }
        self.out.push('<');
        self.out.push_str(name);
        if is_root {
            self.root_name_end = self.out.len();
            // Only the default namespace: it goes before all prefixes.
            self.hoisted.append(&mut self.declared);
        } else if !self.declared.is_empty() {
            self.declared.sort_unstable();
            let declared = std::mem::take(&mut self.declared);
            push_declarations(self.out, &declared);
            self.declared = declared;
        }
        for (_, name, _, value) in &self.attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            push_attribute_value(self.out, value);
            self.out.push('"');
        }
        self.out.push('>');
        if tag.empty {
            self.out.push_str("</");
            self.out.push_str(name);
            self.out.push('>');
            self.leave(depth - 1);
        }
        Ok(())
    }

    fn read_attributes(
        &mut self,
        events: &mut Events<'x>,
        tag: &Tag<'x>,
        depth: usize,
    ) -> Result<(), BadReason> {
        events.attributes(tag, |events, name, value| {
            let (prefix, local) = split(name);
            if local.is_empty() || local.contains(':') {
                return Err(events.flawed(&format!("{name} is no qualified name")));
            }
            let uri = match prefix {
                "" => Cow::Borrowed(""),
                "xml" => Cow::Borrowed(XML_NAMESPACE),
                prefix => {
                    let uri = events.namespace(prefix)?;
                    self.bind(prefix, uri.clone(), depth);
                    uri
                }
            };
            if let Some(prefix) = qname_prefix(value.trim_ascii())
                && prefix != "xml"
                && let Some(uri) = events.scope.resolve(prefix)
            {
                self.bind(prefix, uri, depth);
            }
            self.attributes.push((uri, name, name.len() - local.len(), value));
            Ok(())
        })?;
        if self.attributes.len() > 1 {
            self.attributes.sort_unstable_by(|one, other| {
                (&*one.0, &one.1[one.2..]).cmp(&(&*other.0, &other.1[other.2..]))
            });
            let same = |pair: &[(Cow<'_, str>, &str, usize, Cow<'_, str>)]| {
                pair[0].0 == pair[1].0 && pair[0].1[pair[0].2..] == pair[1].1[pair[1].2..]
            };
            if self.attributes.windows(2).any(same) {
                return Err(events.flawed("an element has an attribute twice"));
            }
        }
        Ok(())
    }

    /// A prefix in the text of the current element, whose declarations are written already: declared at the root,
    /// unless it means something else there.
    fn bind_if_declared(&mut self, events: &Events<'x>, prefix: &str) {
        if prefix != "xml"
            && let Some(uri) = events.scope.resolve(prefix)
            && !self.hoisted.iter().any(|(known, _)| known == prefix)
        {
            self.hoisted.push((prefix.to_owned(), uri));
        }
    }

    /// Sees to it that a prefix means this namespace in the output.
    fn bind(&mut self, prefix: &str, uri: Cow<'x, str>, depth: usize) {
        let known = self.overrides.iter().rev().find(|(_, known, _)| known == prefix).map(|(_, _, uri)| uri);
        let known =
            known.or_else(|| self.hoisted.iter().find(|(known, _)| known == prefix).map(|(_, uri)| uri));
        match known {
            Some(known) if *known == uri => {}
            Some(_) => {
                self.declared.push((prefix.to_owned(), uri.clone()));
                self.overrides.push((depth, prefix.to_owned(), uri));
            }
            None => self.hoisted.push((prefix.to_owned(), uri)),
        }
    }

    /// Drops what was declared deeper than `depth`.
    fn leave(&mut self, depth: usize) {
        while self.overrides.last().is_some_and(|(own, _, _)| *own > depth) {
            self.overrides.pop();
        }
        while self.defaults.last().is_some_and(|(own, _)| *own > depth) {
            self.defaults.pop();
        }
    }

    /// The document, with the declarations of its root.
    fn document(mut self) -> String {
        self.hoisted.sort_unstable();
        let declarations: usize =
            self.hoisted.iter().map(|(prefix, uri)| prefix.len() + uri.len() + 10).sum();
        let mut document = String::with_capacity(DECLARATION.len() + self.out.len() + declarations + 1);
        document.push_str(DECLARATION);
        document.push_str(&self.out[..self.root_name_end]);
        push_declarations(&mut document, &self.hoisted);
        document.push_str(&self.out[self.root_name_end..]);
        document.push('\n');
        document
    }
}

fn push_declarations(out: &mut String, declarations: &[(String, Cow<'_, str>)]) {
    for (prefix, uri) in declarations {
        out.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
        out.push_str(prefix);
        out.push_str("=\"");
        push_attribute_value(out, uri);
        out.push('"');
    }
}

/// Canonicalizes a standalone document, for instance one that was fetched, as records are.
///
/// # Errors
/// When it is not well-formed or beyond a limit, as records are refused.
pub fn canonicalize(document: &str, limits: &Limits) -> Result<Metadata, BadReason> {
    let mut events = Events::new(document, Position::default(), Scope::default(), limits);
    let mut found = None;
    loop {
        match events.next()? {
            Token::Open(tag) if found.is_none() => {
                found = Some(element(&mut events, tag, &mut String::new())?);
            }
            Token::End => return found.ok_or(BadReason::EmptyMetadata),
            Token::Text(text) if text.trim().is_empty() => {}
            Token::Comment(_) | Token::Instruction(_) | Token::Declaration => {}
            _ => return Err(BadReason::NotOneElement),
        }
    }
}

/// The digest of a canonical document's comparison form: without blank text between elements, and without known
/// volatile parts (the time of the answer in METS). Two documents with equal digests are the same metadata, even
/// if their bytes differ.
///
/// # Errors
/// When it is not well-formed, which no canonical document is.
pub fn comparison_digest(document: &str, limits: &Limits) -> Result<[u8; 32], BadReason> {
    let mut events = Events::new(document, Position::default(), Scope::default(), limits);
    let mut hash = Sha256::new();
    let mut scratch = String::new();
    // Blank text is dropped only where it touches markup on both sides.
    let mut blank: Option<Cow<'_, str>> = None;
    let mut after_text = false;
    loop {
        let token = events.next()?;
        let is_text = matches!(token, Token::Text(_) | Token::Char(_));
        if let Some(blank) = blank.take()
            && is_text
        {
            hash.update(blank.as_bytes());
            after_text = true;
        }
        scratch.clear();
        match token {
            Token::Open(tag) => {
                start_tag(&mut events, &tag, &mut scratch)?;
            }
            Token::Close(_) => scratch.push_str("</>"),
            Token::Text(text) if !after_text && text.trim().is_empty() => {
                blank = Some(text);
                continue;
            }
            Token::Text(text) => push_text(&mut scratch, &text, true),
            Token::Char(character) => {
                let mut bytes = [0; 4];
                push_text(&mut scratch, character.encode_utf8(&mut bytes), false);
            }
            Token::Comment(text) => {
                scratch.push_str("<!--");
                scratch.push_str(&text);
                scratch.push_str("-->");
            }
            Token::Instruction(text) => {
                scratch.push_str("<?");
                scratch.push_str(&text);
                scratch.push_str("?>");
            }
            Token::Declaration => {}
            Token::End => return Ok(hash.finalize().into()),
        }
        hash.update(scratch.as_bytes());
        after_text = is_text;
    }
}

/// A start tag by its expanded names, so that only what it means counts.
fn start_tag<'x>(events: &mut Events<'x>, tag: &Tag<'x>, out: &mut String) -> Result<(), BadReason> {
    let (prefix, local) = split(tag.name());
    let uri = events.namespace(prefix)?;
    out.push_str("<{");
    out.push_str(&uri);
    out.push('}');
    out.push_str(local);
    let volatile = VOLATILE
        .iter()
        .filter(|(namespace, element, _)| uri == *namespace && local == *element)
        .map(|(_, _, attribute)| *attribute);
    let mut attributes = Vec::new();
    events.attributes(tag, |events, name, value| {
        let (prefix, local) = split(name);
        let uri = if prefix.is_empty() { Cow::Borrowed("") } else { events.namespace(prefix)? };
        attributes.push((uri, local, value));
        Ok(())
    })?;
    attributes.sort_unstable();
    for (uri, local, value) in attributes {
        if uri.is_empty() && volatile.clone().any(|name| name == local) {
            continue;
        }
        out.push_str(" {");
        out.push_str(&uri);
        out.push('}');
        out.push_str(local);
        out.push_str("=\"");
        push_attribute_value(out, &value);
        out.push('"');
    }
    out.push('>');
    if tag.empty {
        out.push_str("</>");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(document: &str) -> String {
        let limits = Limits::default();
        let metadata = canonicalize(document, &limits).unwrap();
        let again = canonicalize(&metadata.document, &limits).unwrap();
        assert_eq!(again, metadata, "the form of the form is itself");
        metadata.document.strip_prefix(DECLARATION).unwrap().trim_end().to_owned()
    }

    fn digest(document: &str) -> [u8; 32] {
        comparison_digest(document, &Limits::default()).unwrap()
    }

    #[test]
    fn declarations_and_attributes_are_sorted_and_unused_ones_go() {
        let document = "<b:r  z='1'\n xmlns:c=\"urn:c\" a:y='2' a:x=\"3\" xmlns:a='urn:a' xmlns:b='urn:b'/>";
        assert_eq!(
            canonical(document),
            r#"<b:r xmlns:a="urn:a" xmlns:b="urn:b" z="1" a:x="3" a:y="2"></b:r>"#
        );
    }

    #[test]
    fn where_a_prefix_is_declared_does_not_matter() {
        let outside = r#"<o:r xmlns:o="urn:o" xmlns:d="urn:d"><d:t>x</d:t><d:t>y</d:t></o:r>"#;
        let inside = r#"<o:r xmlns:o="urn:o"><d:t xmlns:d="urn:d">x</d:t><d:t xmlns:d="urn:d">y</d:t></o:r>"#;
        assert_eq!(canonical(inside), canonical(outside));
        assert_eq!(
            canonical(outside),
            r#"<o:r xmlns:d="urn:d" xmlns:o="urn:o"><d:t>x</d:t><d:t>y</d:t></o:r>"#
        );
    }

    #[test]
    fn a_prefix_with_two_meanings_is_declared_where_the_second_one_is() {
        let document =
            r#"<p:r xmlns:p="urn:1"><p:a xmlns:p="urn:2"><p:b xmlns:p="urn:1"/></p:a><p:c/></p:r>"#;
        assert_eq!(
            canonical(document),
            r#"<p:r xmlns:p="urn:1"><p:a xmlns:p="urn:2"><p:b xmlns:p="urn:1"></p:b></p:a><p:c></p:c></p:r>"#
        );
    }

    #[test]
    fn the_default_namespace_is_declared_where_it_is_used_and_ended_where_it_ends() {
        let document =
            r#"<r xmlns="urn:1"><a/><b xmlns=""><c/></b><p:d xmlns:p="urn:p"><e xmlns="urn:1"/></p:d></r>"#;
        assert_eq!(
            canonical(document),
            r#"<r xmlns="urn:1" xmlns:p="urn:p"><a></a><b xmlns=""><c></c></b><p:d><e></e></p:d></r>"#
        );
    }

    #[test]
    fn prefixes_in_values_stay_declared() {
        let document = r#"<r xmlns:t="urn:t" xmlns:u="urn:u" xmlns:v="urn:v"
            xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><a xsi:type="t:URI"/><b>u:name</b></r>"#;
        let canonical = canonical(document);
        assert!(canonical.contains(r#"xmlns:t="urn:t""#) && canonical.contains(r#"xmlns:u="urn:u""#));
        assert!(!canonical.contains("urn:v"), "{canonical}");
    }

    #[test]
    fn text_cdata_line_ends_and_references_are_written_one_way() {
        let document =
            "<r a='&#10;&quot;&apos;>'>\r\n<![CDATA[a<b&c]]>&gt;&#233;&#13;<!-- x\r\n--><?p q?></r>";
        assert_eq!(
            canonical(document),
            "<r a=\"&#xA;&quot;'>\">\na&lt;b&amp;c&gt;é&#xD;<!-- x\n--><?p q?></r>"
        );
    }

    #[test]
    fn an_attribute_twice_under_two_prefixes_is_refused() {
        let document = r#"<r xmlns:a="urn:1" xmlns:b="urn:1" a:x="1" b:x="2"/>"#;
        let error = canonicalize(document, &Limits::default()).unwrap_err();
        assert!(matches!(error, BadReason::Malformed { .. }), "{error}");
    }

    #[test]
    fn other_indentation_and_prefixes_give_the_same_digest_and_other_text_does_not() {
        let one = digest(r#"<a:r xmlns:a="urn:1"><a:b>x &amp; y</a:b></a:r>"#);
        assert_eq!(digest("<r xmlns=\"urn:1\">\n  <b>x &amp; y</b>\n</r>"), one);
        assert_ne!(digest(r#"<a:r xmlns:a="urn:1"><a:b>x &amp;y</a:b></a:r>"#), one);
        assert_ne!(digest("<r>&amp;&amp;</r>"), digest("<r>&amp; &amp;</r>"));
    }

    #[test]
    fn the_time_of_the_answer_in_mets_does_not_count_and_other_attributes_do() {
        let mets = |attributes: &str| {
            digest(&format!(r#"<mets xmlns="http://www.loc.gov/METS/"><metsHdr {attributes}/></mets>"#))
        };
        assert_eq!(
            mets(r#"CREATEDATE="2026-01-01T00:00:00Z""#),
            mets(r#"CREATEDATE="2026-01-02T00:00:00Z""#)
        );
        assert_ne!(mets(r#"LASTMODDATE="1""#), mets(r#"LASTMODDATE="2""#));
    }
}
