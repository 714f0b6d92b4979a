//! The `Link` header (RFC 8288).
//!
//! ```
//! let links = links::header::parse("</capabilitylist.xml>; rel=\"resourcesync\", </next>; rel=next; type=text/html");
//! assert_eq!(links[0].target, "/capabilitylist.xml");
//! assert!(links[0].is("resourcesync") && !links[1].is("resourcesync"));
//! assert_eq!(links[1].attribute("type"), Some("text/html"));
//! ```

use crate::fault::{Fault, Faults};
use crate::limits::Limits;
use crate::link::{Link, Links, add_attribute};

/// Parses the links of one `Link` header, and tells nothing of its faults.
pub fn parse(header: &str) -> Vec<Link> {
    read([header], &Limits::HEADER).links
}

/// Parses the `Link` headers of a response. Any text can be parsed, in one pass. A link that cannot be read is
/// dropped, and reading goes on at the next comma before a `<`.
pub fn read<'a>(headers: impl IntoIterator<Item = &'a str>, limits: &Limits) -> Links {
    let mut found = Links::default();
    let mut bytes = limits.bytes;
    for header in headers {
        let is_cut = header.len() > bytes;
        let header = &header[..header.floor_char_boundary(bytes.min(header.len()))];
        bytes -= header.len();
        let goes_on = read_one(header, limits, &mut found);
        if is_cut {
            found.faults.add(Fault::TooManyBytes);
        }
        if is_cut || !goes_on {
            break;
        }
    }
    found
}

/// Reads one header. Whether another one may follow.
fn read_one(header: &str, limits: &Limits, found: &mut Links) -> bool {
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return true;
        }
        let Some(inner) = rest.strip_prefix('<') else {
            found.faults.add(Fault::NoAngleBrackets);
            rest = next_link(rest);
            continue;
        };
        // No URL has a `<`: the link before it was not closed.
        match inner.find(['<', '>']) {
            Some(end) if inner.as_bytes()[end] == b'>' => {
                let mut link = Link::new(inner[..end].replace(['\r', '\n'], "").trim(), "");
                rest = parameters(&inner[end + 1..], &mut link, &mut found.faults, limits);
                if !found.take(link, limits) {
                    return false;
                }
            }
            Some(next) => {
                found.faults.add(Fault::UnclosedTarget);
                rest = &inner[next..];
            }
            None => {
                found.faults.add(Fault::UnclosedTarget);
                return true;
            }
        }
    }
}

/// Reads the parameters of a link, and returns the text behind it. Of several `rel` only the first counts
/// (RFC 8288, 3.3).
fn parameters<'a>(mut rest: &'a str, link: &mut Link, faults: &mut Faults, limits: &Limits) -> &'a str {
    let mut rel = None;
    loop {
        rest = rest.trim_ascii_start();
        let Some(parameter) = rest.strip_prefix(';') else {
            if rest.is_empty() || rest.starts_with(',') {
                link.rel = rel.unwrap_or_default();
                return rest;
            }
            rest = next_parameter(rest);
            continue;
        };
        let parameter = parameter.trim_ascii_start();
        let end = parameter.find(['=', ';', ',']).unwrap_or(parameter.len());
        let (name, after) = parameter.split_at(end);
        let name = name.trim_ascii_end();
        rest = after;
        let value = match after.strip_prefix('=') {
            Some(after) => {
                let (value, after) = value(after.trim_ascii_start(), faults);
                rest = after;
                value
            }
            None if name.is_empty() || is_one(name, ["rel", "anchor"]) => continue,
            None => String::new(),
        };
        if name.eq_ignore_ascii_case("rel") {
            rel.get_or_insert(value);
        } else if name.eq_ignore_ascii_case("anchor") {
            link.anchor.get_or_insert(value);
        } else {
            add_attribute(link, name, value, faults, limits);
        }
    }
}

/// A token or a quoted string, and the text behind it. A line break is a blank.
fn value<'a>(text: &'a str, faults: &mut Faults) -> (String, &'a str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',']).unwrap_or(text.len());
        return (text[..end].trim_ascii_end().replace(['\r', '\n'], " "), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let after = &quoted[at + 1..];
                let next = after.trim_ascii_start();
                if !next.is_empty() && !next.starts_with([';', ',']) {
                    faults.add(Fault::NestedQuotes);
                }
                return (value, after);
            }
            '\\' => value.extend(characters.next().map(|(_, escaped)| unbroken(escaped))),
            other => value.push(unbroken(other)),
        }
    }
    faults.add(Fault::UnclosedQuote);
    (value, "")
}

fn is_one(name: &str, names: [&str; 2]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn unbroken(character: char) -> char {
    if matches!(character, '\r' | '\n') { ' ' } else { character }
}

/// The text behind the next comma that a link follows.
fn next_link(text: &str) -> &str {
    text.match_indices(',').map(|(at, _)| &text[at + 1..]).find(|rest| begins_link(rest)).unwrap_or_default()
}

/// The text from the next semicolon, or from the comma before the next link.
fn next_parameter(text: &str) -> &str {
    let is_end = |&(at, mark): &(usize, &str)| mark == ";" || begins_link(&text[at + 1..]);
    text.match_indices([';', ',']).find(is_end).map_or("", |(at, _)| &text[at..])
}

fn begins_link(text: &str) -> bool {
    text.trim_ascii_start().starts_with('<')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(header: &str) -> Link {
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
        assert_eq!(parse("</no/relation>; type=text/html"), []);
        assert_eq!(one("\"a, b\" junk, </good>; rel=up").target, "/good");
        assert_eq!(one("</good>; rel=\"never closed").rel, "never closed");
        assert_eq!(one("<never closed, </good>; rel=up").target, "/good");
    }

    /// Each fault was seen in the wild; only the link that has it may suffer.
    #[test]
    fn each_fault_is_named_and_costs_no_other_link() {
        use Fault::*;
        let good = "</good>; rel=item";
        for (fault, header, read) in [
            (NestedQuotes, "</a>; title=\"on \"b\", c\"; rel=item", 2),
            (NestedQuotes, "</a>; rel=item; title=\"on \"b\" c\"; type=text/html", 2),
            (NoAngleBrackets, "http://e.org/a; rel=item", 1),
            (UnclosedTarget, "<http://e.org/a; rel=item", 1),
            (NoRelation, "</a>; type=text/html", 1),
            (RelationCase, "</a>; rel=describedBy", 2),
            (BadAttribute, "</a>; rel=item; a b=c", 2),
        ] {
            let found = super::read([format!("{header}, {good}").as_str()], &Limits::HEADER);
            assert_eq!(found.links.len(), read, "{header}: {:?}", found.links);
            assert_eq!(found.links.last(), Some(&Link::new("/good", "item")), "{header}");
            assert_eq!(found.faults.count(fault), 1, "{header}: {:?}", found.faults);
        }
        let broken = super::read(["</a>; rel=item; title=\"on \"b\" c\"; type=text/html"], &Limits::HEADER);
        assert_eq!(broken.links[0].attribute("type"), Some("text/html"));
    }

    #[test]
    fn attributes_are_kept_in_order_and_the_first_of_a_name_counts() {
        let link = one("</a>; rel=item; Type=\"text/html\"; title=\"A \\\"b\\\", c\"; type=x; crossorigin");
        assert_eq!(
            (link.attribute("type"), link.attribute("title")),
            (Some("text/html"), Some("A \"b\", c"))
        );
        assert_eq!(link.attribute("crossorigin"), Some(""));
        assert_eq!(link.attributes.len(), 4);
    }

    #[test]
    fn reading_stops_at_its_limits() {
        let limits = Limits { links: 2, bytes: 60, value_bytes: 10 };
        let faults = |headers: &[&str]| super::read(headers.iter().copied(), &limits);
        let many = faults(&["</a>; rel=x, </b>; rel=x", "</c>; rel=x"]);
        assert_eq!((many.links.len(), many.faults.count(Fault::TooManyLinks)), (2, 1));
        let long = faults(&["</12345678901>; rel=x, </b>; rel=x; title=12345678901"]);
        assert_eq!(long.links, [Link::new("/b", "x")]);
        assert_eq!(long.faults.count(Fault::TooLong), 2);
        let large = faults(&["</a>; rel=x", &format!("</b>; rel=\"{}", "\u{e9}".repeat(60)), "</c>; rel=x"]);
        assert_eq!((large.links.len(), large.faults.count(Fault::TooManyBytes)), (1, 1));
        let attributes = (0..40).map(|n| format!("; a{n}=1")).collect::<String>();
        let found = super::read([format!("</a>; rel=x{attributes}").as_str()], &Limits::HEADER);
        assert_eq!(found.links[0].attributes.len(), crate::MOST_ATTRIBUTES);
        assert_eq!(found.faults.count(Fault::TooManyAttributes), 8);
    }

    /// If the end of each were searched, this would take minutes.
    #[test]
    fn a_header_of_links_that_are_not_closed_is_read_in_one_pass() {
        let limits = Limits { bytes: usize::MAX, ..Limits::HEADER };
        for text in ["<,", "\"", "<a>;\" ", ", \u{e9}", "<a>x, "] {
            super::read([text.repeat(300_000).as_str()], &limits);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_text_is_read_and_what_was_read_can_be_written(text in "[<>;,=\"\\\\ a-crel\u{e9}\t]{0,60}|.{0,60}") {
            let links = parse(&text);
            prop_assert!(links.len() <= text.matches('<').count());
            let written: Vec<_> = links.iter().map(Link::to_string).collect();
            prop_assert_eq!(parse(&written.join(", ")), links);
        }

        #[test]
        fn what_is_written_is_read(
            links in prop::collection::vec(
                ("[a-z/:.,;=\"]{1,12}", "[ -~]{0,12}", "[a-z]{1,8}", prop::option::of("[ -~]{0,8}")), 1..5)
        ) {
            let link = |(target, title, rel, anchor): (String, String, String, Option<String>)| {
                Link { anchor, ..Link::new(target, rel).with("title", title) }
            };
            let links: Vec<_> = links.into_iter().map(link).collect();
            let written: Vec<_> = links.iter().map(Link::to_string).collect();
            prop_assert_eq!(parse(&written.join(", ")), links);
        }
    }
}
