//! The links in the head of an HTML page.
//!
//! A scanner, not a parser: it knows tags, attributes, comments and the elements whose content is no markup.
//! It reads the `<link>` elements of the head only. In a body, any visitor who may comment could place a link, and
//! so `<a rel>` is not read.
//!
//! ```
//! let head = links::html::scan("<head><link rel=item href=/a.pdf type=application/pdf></head>");
//! assert_eq!(head.links.links, [links::Link::new("/a.pdf", "item").with("type", "application/pdf")]);
//! ```

use crate::limits::Limits;
use crate::link::{Link, Links, add_attribute};

/// `&#x10FFFF;`
const LONGEST_REFERENCE: usize = 10;

/// The links in the head of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The base of relative references, if it is not the page's own URL.
    pub base: Option<String>,
    /// Its links, as written. Those without `rel` or `href` are left out.
    pub links: Links,
}

/// Elements whose content is text, even if it looks like markup.
const TEXT_ELEMENTS: [&str; 6] = ["script", "style", "title", "textarea", "template", "xmp"];

/// Scans a page, or the beginning of one, in one pass, within [`Limits::PAGE`].
pub fn scan(page: &str) -> Head {
    scan_within(page, &Limits::PAGE)
}

/// The title of a page, or of the beginning of one: the text of its first `title`, with single spaces. None if that is
/// empty.
///
/// ```
/// let page = "<head><title>Data &amp;\n  more</title>";
/// assert_eq!(links::html::title(page).as_deref(), Some("Data & more"));
/// ```
pub fn title(page: &str) -> Option<String> {
    let written = unescaped(read(page, &Limits::PAGE).1?);
    let words: Vec<&str> = written.split_whitespace().collect();
    Some(words.join(" ")).filter(|title| !title.is_empty())
}

fn scan_within(page: &str, limits: &Limits) -> Head {
    read(page, limits).0
}

/// The links in the head of a page, and its title as written.
fn read<'a>(page: &'a str, limits: &Limits) -> (Head, Option<&'a str>) {
    let mut head = Head::default();
    let mut title = None;
    let mut rest = &page[..page.floor_char_boundary(limits.bytes.min(page.len()))];
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            let Some(end) = comment.find("-->") else { return (head, title) };
            rest = &comment[end + 3..];
            continue;
        }
        if starts_with(rest, "/head") {
            return (head, title);
        }
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        let end =
            rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>')).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let name = name.to_ascii_lowercase();
        if matches!(name.as_str(), "body" | "frameset") {
            return (head, title);
        }
        // A tag that is cut off is ignored.
        let Some((attributes, after)) = attributes(after) else { return (head, title) };
        rest = after;
        let value = |wanted: &str| attributes.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        match name.as_str() {
            "base" if head.base.is_none() => head.base = value("href").cloned(),
            "link" => {
                if let Some(link) = link(attributes, &mut head.links, limits)
                    && !head.links.take(link, limits)
                {
                    return (head, title);
                }
            }
            _ if TEXT_ELEMENTS.contains(&name.as_str()) => {
                let Some(behind) = behind_end_tag(rest, &name) else { return (head, title) };
                if name == "title" && title.is_none() {
                    let written = rest.len() - behind.len() - "</title".len();
                    title = rest.get(..written);
                }
                rest = behind;
            }
            _ => {}
        }
    }
    (head, title)
}

/// The link of these attributes. Of several with one name the first counts (HTML, 13.2.5.33).
fn link(attributes: Vec<(String, String)>, links: &mut Links, limits: &Limits) -> Option<Link> {
    let value =
        |wanted: &str| attributes.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let mut link = Link::new(value("href")?, value("rel").filter(|rel| !rel.trim_ascii().is_empty())?);
    for (name, value) in attributes {
        if !matches!(name.as_str(), "href" | "rel") && link.attribute(&name).is_none() {
            add_attribute(&mut link, &name, value, &mut links.faults, limits);
        }
    }
    Some(link)
}

/// The attributes of a tag up to its end, names in lower case, and the rest of the page; none when the tag
/// does not end.
fn attributes(mut rest: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return Some((attributes, after));
        }
        // A name may even begin with "=" (HTML, 13.2.5.32).
        let end = rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '='))
            .map(|(at, _)| at)?;
        let (name, after) = rest.split_at(end);
        rest = after;
        let mut value = "";
        if let Some(after) = rest.trim_ascii_start().strip_prefix('=') {
            let after = after.trim_ascii_start();
            let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
            (value, rest) = match quote {
                Some(quote) => after[1..].split_once(quote)?,
                None => after.split_at(after.find(|c: char| c.is_ascii_whitespace() || c == '>')?),
            };
        }
        attributes.push((name.to_ascii_lowercase(), unescaped(value.trim())));
    }
}

fn behind_end_tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = text;
    loop {
        rest = &rest[rest.find("</")? + 2..];
        if starts_with(rest, name) {
            return Some(&rest[name.len()..]);
        }
    }
}

fn starts_with(text: &str, lower: &str) -> bool {
    text.as_bytes().get(..lower.len()).is_some_and(|start| start.eq_ignore_ascii_case(lower.as_bytes()))
}

/// Resolves the references that occur in URLs: `&amp;` and its kin, and characters by number. All others stay
/// as they are.
fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        // No further than the longest reference: a value may consist of "&" only.
        let end = rest.bytes().take(LONGEST_REFERENCE).position(|byte| byte == b';');
        let character = end.and_then(|end| Some((reference(&rest[1..end])?, end)));
        match character {
            Some((character, end)) => {
                text.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                text.push('&');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

fn reference(name: &str) -> Option<char> {
    // A sign is no digit, though the standard library would accept one.
    let number = |digits: &str, radix| {
        let digits = digits.chars().all(|c| c.is_digit(radix)).then_some(digits)?;
        char::from_u32(u32::from_str_radix(digits, radix).ok()?)
    };
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let digits = name.strip_prefix('#')?;
            match digits.strip_prefix(['x', 'X']) {
                Some(digits) => number(digits, 16),
                None => number(digits, 10),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn links(page: &str) -> Vec<String> {
        let found = scan(page).links.links.into_iter();
        found.filter(|link| link.is("resourcesync")).map(|link| link.target).collect()
    }

    #[test]
    fn the_specifications_own_example_is_read() {
        let page = "<html>\n  <head>\n    <link rel=\"resourcesync\"\n          \
                    href=\"http://www.example.com/dataset1/capabilitylist.xml\"/>\n    ...\n  </head>\n  \
                    <body>...</body>\n</html>\n";
        assert_eq!(links(page), ["http://www.example.com/dataset1/capabilitylist.xml"]);
    }

    #[test]
    fn the_title_is_the_first_in_the_head() {
        let read = |page: &str| title(page);
        assert_eq!(
            read("<TITLE lang=en> A\n <b>&#66;</b></Title ><title>C</title>").as_deref(),
            Some("A <b>B</b>")
        );
        for none in
            ["<title> </title>", "<title>cut off", "<body><title>A</title>", "<!--<title>A</title>-->", ""]
        {
            assert_eq!(read(none), None, "{none}");
        }
        let hidden = "<script><title>A</title></script><svg></head><title>B</title>";
        assert_eq!(read(hidden), None);
    }

    #[test]
    fn tags_are_read_as_people_write_them() {
        let page = "<!DOCTYPE HTML><LINK HREF = '/a?x=1&amp;y=&#50;' disabled REL='alternate ResourceSync'>\
                    <link href=/b.xml rel=resourcesync><link/rel=\"resourcesync\"/href=\" /c \"/>";
        assert_eq!(links(page), ["/a?x=1&y=2", "/b.xml", "/c"]);
    }

    #[test]
    fn comments_scripts_and_other_relations_are_no_links() {
        let page = "<!-- <link rel=resourcesync href=/1> --><script>'<link rel=resourcesync href=/2>'</script>\
                    <title><link rel=resourcesync href=/3></TITLE><link rel=stylesheet href=/4>\
                    <meta title='<link rel=resourcesync href=/5>'><link rel=resourcesync><link rel=resourcesync href=/6>";
        assert_eq!(links(page), ["/6"]);
    }

    #[test]
    fn a_link_in_the_body_is_somebodys_comment() {
        assert_eq!(links("<head></head><link rel=resourcesync href=/1>"), Vec::<String>::new());
        assert_eq!(links("<title>x</title><body><link rel=resourcesync href=/1>"), Vec::<String>::new());
    }

    #[test]
    fn the_base_is_the_first_one_given() {
        let head = scan("<base target=_top href='/a/'><base href=/b/><link rel=resourcesync href=c>");
        assert_eq!(head.base.as_deref(), Some("/a/"));
        assert_eq!(head.links.links, [Link::new("c", "resourcesync")]);
    }

    #[test]
    fn what_is_no_reference_stays_as_it_is() {
        let page = "<link rel=resourcesync href='&#x10FFFF;&#+65;&#x110000;&nbsp;&amp&'>";
        assert_eq!(links(page), ["\u{10ffff}&#+65;&#x110000;&nbsp;&amp&"]);
    }

    /// If each `&` were searched to the end of the page, this would take minutes.
    #[test]
    fn a_page_of_nothing_but_ampersands_is_read_in_one_pass() {
        let href = "&".repeat(4_000_000);
        let limits = Limits { bytes: usize::MAX, value_bytes: usize::MAX, ..Limits::PAGE };
        let head = scan_within(&format!("<link rel=resourcesync href={href}>"), &limits);
        assert_eq!(head.links.links, [Link::new(href, "resourcesync")]);
    }

    #[test]
    fn a_page_of_very_many_links_is_read_to_its_limit() {
        let head = scan(&"<link rel=item href=/a>".repeat(2_000));
        assert_eq!(head.links.links.len(), Limits::PAGE.links);
        assert_eq!(head.links.faults.count(crate::Fault::TooManyLinks), 1);
        let head = scan(&format!("<link rel=item href={}><link rel=item href=/b>", "a".repeat(10_000)));
        assert_eq!(head.links.links, [Link::new("/b", "item")]);
    }

    #[test]
    fn attributes_are_kept_and_the_first_of_a_name_counts() {
        let head = scan(
            "<link rel='describedby' href=/a type='a&amp;b' TYPE=c title=\"x\"><link href=/no rel=''><link rel=up>",
        );
        assert_eq!(head.links.links, [Link::new("/a", "describedby").with("type", "a&b").with("title", "x")]);
    }

    #[test]
    fn a_page_that_is_cut_off_gives_what_came_before() {
        let whole = "<link rel=resourcesync href=/1><link rel=resourcesync href=\"/2\">";
        for end in 31..whole.len() {
            assert_eq!(links(&whole[..end]), ["/1"], "up to {end}");
        }
        assert_eq!(links("<link rel=resourcesync href=/1><!-- <link"), ["/1"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_text_is_read_without_panic(text in "(<|>|/|!--|-->|=|'|\"|&|#|;| |link|rel|resourcesync|script|\u{e9}){0,40}|.{0,80}") {
            prop_assert!(scan(&text).links.links.len() <= text.matches('<').count());
        }

        #[test]
        fn what_is_written_is_read(href in "[a-zA-Z0-9:/?&=;#<>\u{e9}-]{1,30}", filler in "[a-z <>/]{0,5}") {
            let escaped = href.replace('&', "&amp;");
            let page = format!("<!--{filler}--><link rel=resourcesync href=\"{escaped}\">");
            prop_assert_eq!(links(&page), vec![href]);
        }
    }
}
