//! The `Link` header (RFC 8288), one of the ways from any resource to its Capability List (RS-21).
//!
//! ```
//! let links = resourcesync::link_header::parse("</capabilitylist.xml>; rel=\"resourcesync\", </next>; rel=next");
//! assert_eq!(links[0].target, "/capabilitylist.xml");
//! assert!(links[0].is("resourcesync") && !links[1].is("resourcesync"));
//! ```

/// One link of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkValue {
    /// The target, as written: it may be relative.
    pub target: String,
    /// The relations, as written.
    pub rel: String,
    /// The link's context, if it is not the requested resource.
    pub anchor: Option<String>,
}

impl LinkValue {
    /// Whether the link has this relation; case does not matter (RFC 8288, 2.1.1).
    pub fn is(&self, relation: &str) -> bool {
        self.rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case(relation))
    }
}

/// Parses the links of one `Link` header. An unreadable link is skipped up to the next comma, so any text can
/// be parsed, in one pass.
pub fn parse(header: &str) -> Vec<LinkValue> {
    let mut rest = header;
    let mut links = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n', ',']);
        if rest.is_empty() {
            return links;
        }
        let Some(inner) = rest.strip_prefix('<') else {
            rest = behind_value(rest);
            continue;
        };
        // No later link is closed either, and searching for the end of each would take too long.
        let Some((target, after)) = inner.split_once('>') else { return links };
        let (rel, anchor, after) = parameters(after);
        rest = after;
        links.push(LinkValue { target: target.trim().to_owned(), rel: rel.unwrap_or_default(), anchor });
    }
}

/// `rel`, `anchor`, and the text behind the link. Of several `rel` only the first counts (RFC 8288, 3.3).
fn parameters(mut rest: &str) -> (Option<String>, Option<String>, &str) {
    let mut rel = None;
    let mut anchor = None;
    loop {
        rest = rest.trim_ascii_start();
        let Some(parameter) = rest.strip_prefix(';') else {
            return (rel, anchor, behind_value(rest));
        };
        let parameter = parameter.trim_ascii_start();
        let end = parameter.find(['=', ';', ',']).unwrap_or(parameter.len());
        let (name, after) = parameter.split_at(end);
        rest = after;
        let Some(after) = after.strip_prefix('=') else { continue };
        let (value, after) = value(after.trim_ascii_start());
        rest = after;
        let slot = match name.trim_ascii_end() {
            name if name.eq_ignore_ascii_case("rel") => &mut rel,
            name if name.eq_ignore_ascii_case("anchor") => &mut anchor,
            _ => continue,
        };
        slot.get_or_insert(value);
    }
}

/// A token or a quoted string, and the text behind it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',']).unwrap_or(text.len());
        return (text[..end].trim_ascii_end().to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

/// The text behind the next comma outside of quotes.
fn behind_value(text: &str) -> &str {
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(header: &str) -> LinkValue {
        let links = parse(header);
        assert_eq!(links.len(), 1, "{links:?}");
        links.into_iter().next().unwrap()
    }

    #[test]
    fn the_specifications_own_example_is_read() {
        let link = one("<http://www.example.com/dataset1/capabilitylist.xml>;\r\n      rel=\"resourcesync\"");
        assert_eq!(link.target, "http://www.example.com/dataset1/capabilitylist.xml");
        assert!(link.is("resourcesync") && !link.is("resource"));
    }

    #[test]
    fn commas_and_semicolons_in_uris_and_quotes_divide_nothing() {
        let links =
            parse("</a,b;c>; title=\"x, <y>; rel=\\\"up\\\"\"; rel=next, </d>;rel=\"up resourcesync\"");
        let targets: Vec<_> = links.iter().map(|link| link.target.as_str()).collect();
        assert_eq!(targets, ["/a,b;c", "/d"]);
        assert!(links[0].is("next") && !links[0].is("up"));
        assert!(links[1].is("up") && links[1].is("ResourceSync"));
    }

    #[test]
    fn of_several_relations_the_first_counts() {
        assert_eq!(one("</a>; rel=first; REL=second").rel, "first");
    }

    #[test]
    fn names_blanks_and_tokens_are_taken_as_servers_write_them() {
        let link = one(" ,  < /caps.xml > ; Rel = resourcesync ; crossorigin ; Anchor=\"/other\" ,, ");
        assert_eq!((link.target.as_str(), link.rel.as_str()), ("/caps.xml", "resourcesync"));
        assert_eq!(link.anchor.as_deref(), Some("/other"));
    }

    #[test]
    fn what_is_no_link_is_passed_over() {
        assert_eq!(parse(""), []);
        assert_eq!(parse("nonsense; rel=resourcesync"), []);
        assert_eq!(parse("<never closed; rel=resourcesync"), []);
        assert_eq!(one("\"a, b\" junk, </good>; rel=up").target, "/good");
        assert_eq!(one("</good>; rel=\"never closed").rel, "never closed");
    }

    /// If the end of each were searched, this would take minutes.
    #[test]
    fn a_header_of_links_that_are_not_closed_is_read_in_one_pass() {
        assert_eq!(parse(&"<,".repeat(2_000_000)), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_text_is_read_without_panic(text in "[<>;,=\"\\\\ a-crel\u{e9}\t]{0,60}|.{0,60}") {
            let links = parse(&text);
            prop_assert!(links.len() <= text.matches('<').count());
        }

        #[test]
        fn what_is_written_is_read(
            links in prop::collection::vec(("[a-z/:.,;=\"]{1,12}", "[ -~]{0,12}", "[a-z]{1,8}"), 1..5)
        ) {
            let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let written: Vec<_> = links
                .iter()
                .map(|(target, title, rel)| format!("<{target}>; title=\"{}\"; rel=\"{rel}\"", quoted(title)))
                .collect();
            let read: Vec<_> =
                parse(&written.join(", ")).into_iter().map(|link| (link.target, link.rel)).collect();
            let expected: Vec<_> =
                links.iter().map(|(target, _, rel)| (target.clone(), rel.clone())).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
