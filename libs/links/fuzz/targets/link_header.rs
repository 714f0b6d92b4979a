//! Any text as a `Link` header: no panic, no more output than input, and the same links as a simple parser of
//! single characters. What is parsed, or any text at all, can be written as a link and is parsed again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use links::header::parse;
use links::{Link, MOST_ATTRIBUTES};

fuzz_target!(|header: &str| {
    let links = parse(header);
    assert!(links.len() <= header.matches('<').count());
    assert!(links.iter().map(length).sum::<usize>() <= header.len());
    assert_eq!(links, plainly(header));
    for link in &links {
        assert!(link.relations().all(|rel| link.is(&rel.to_ascii_uppercase())));
    }

    let written: Vec<_> = links.iter().map(Link::to_string).collect();
    assert_eq!(parse(&written.join(",")), links);
    let target = header.replace(['<', '>', '\r', '\n'], "").trim().to_owned();
    let text = header.replace(['\r', '\n'], " ");
    let any =
        Link { anchor: Some(text.clone()), ..Link::new(target, format!("x {text}")).with("title", text) };

    // A header may be sent in several, or joined to one.
    let joined = parse(&format!("{any}, {header}"));
    assert_eq!(joined.split_first(), Some((&any, &links[..])));
});

fn length(link: &Link) -> usize {
    let attributes = link.attributes.iter().map(|(name, value)| name.len() + value.len());
    link.target.len()
        + link.rel.len()
        + link.anchor.as_ref().map_or(0, String::len)
        + attributes.sum::<usize>()
}

/// The state of the simple parser.
#[derive(Clone, Copy)]
enum State {
    Between,
    Junk,
    JunkComma,
    Target,
    After,
    JunkAfter,
    JunkAfterComma,
    BeforeName,
    Name,
    BeforeValue,
    Token,
    Quoted,
    Escaped,
}

/// A link during parsing.
#[derive(Default)]
struct Draft {
    target: String,
    name: String,
    value: String,
    rel: Option<String>,
    anchor: Option<String>,
    attributes: Vec<(String, String)>,
}

impl Draft {
    fn end_parameter(&mut self) {
        let value = std::mem::take(&mut self.value).replace(['\r', '\n'], " ");
        let name = std::mem::take(&mut self.name).trim_ascii_end().to_ascii_lowercase();
        match name.as_str() {
            "rel" => drop(self.rel.get_or_insert(value)),
            "anchor" => drop(self.anchor.get_or_insert(value)),
            name if is_token(name) && self.attributes.len() < MOST_ATTRIBUTES => {
                self.attributes.push((name.to_owned(), value));
            }
            _ => {}
        }
    }

    /// A parameter without a value.
    fn end_flag(&mut self) {
        if matches!(self.name.trim_ascii_end().to_ascii_lowercase().as_str(), "rel" | "anchor" | "") {
            self.name.clear();
        } else {
            self.end_parameter();
        }
    }

    fn end(&mut self, links: &mut Vec<Link>) {
        let Self { target, rel, anchor, attributes, .. } = std::mem::take(self);
        let target = target.replace(['\r', '\n'], "").trim().to_owned();
        let rel = rel.unwrap_or_default();
        if !rel.trim_ascii().is_empty() {
            links.push(Link { target, rel, anchor, attributes });
        }
    }
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

/// Parses a header one character at a time.
fn plainly(header: &str) -> Vec<Link> {
    use State::*;
    let mut links = Vec::new();
    let mut draft = Draft::default();
    let mut state = Between;
    let mut characters = header.chars().peekable();
    while let Some(&character) = characters.peek() {
        let blank = character.is_ascii_whitespace();
        // The character that ends a part is read once more by the next state.
        let (next, is_used) = match (state, character) {
            (Between, _) if blank || character == ',' => (Between, true),
            (Between, '<') => (Target, true),
            (Between, _) => (Junk, false),
            (Junk | JunkComma, ',') => (JunkComma, true),
            (JunkComma, _) if blank => (JunkComma, true),
            (JunkComma, '<') => (Target, true),
            (Junk | JunkComma, _) => (Junk, true),
            (Target, '>') => (After, true),
            (Target, '<') => {
                draft.target.clear();
                (Target, true)
            }
            (Target, _) => {
                draft.target.push(character);
                (Target, true)
            }
            (After, _) if blank => (After, true),
            (After | JunkAfter | JunkAfterComma, ';') => (BeforeName, true),
            (After, ',') => {
                draft.end(&mut links);
                (Between, true)
            }
            (After, _) => (JunkAfter, false),
            (JunkAfter | JunkAfterComma, ',') => (JunkAfterComma, true),
            (JunkAfterComma, _) if blank => (JunkAfterComma, true),
            (JunkAfterComma, '<') => {
                draft.end(&mut links);
                (Target, true)
            }
            (JunkAfter | JunkAfterComma, _) => (JunkAfter, true),
            (BeforeName, _) if blank => (BeforeName, true),
            (BeforeName, _) => (Name, false),
            (Name, '=') => (BeforeValue, true),
            (Name, ';' | ',') => {
                draft.end_flag();
                (After, false)
            }
            (Name, _) => {
                draft.name.push(character);
                (Name, true)
            }
            (BeforeValue, _) if blank => (BeforeValue, true),
            (BeforeValue, '"') => (Quoted, true),
            (BeforeValue, _) => (Token, false),
            (Token, ';' | ',') => {
                draft.value.truncate(draft.value.trim_ascii_end().len());
                draft.end_parameter();
                (After, false)
            }
            (Quoted, '"') => {
                draft.end_parameter();
                (After, true)
            }
            (Quoted, '\\') => (Escaped, true),
            (Token | Quoted | Escaped, _) => {
                draft.value.push(character);
                (if matches!(state, Token) { Token } else { Quoted }, true)
            }
        };
        if is_used {
            characters.next();
        }
        state = next;
    }
    match state {
        Name | BeforeName => draft.end_flag(),
        Token | BeforeValue => {
            draft.value.truncate(draft.value.trim_ascii_end().len());
            draft.end_parameter();
        }
        Quoted | Escaped => draft.end_parameter(),
        _ => {}
    }
    if !matches!(state, Between | Junk | JunkComma | Target) {
        draft.end(&mut links);
    }
    links
}
