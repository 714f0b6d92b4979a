//! Any text as a `Link` header: no panic, no more output than input, and the same links as a simple parser of
//! single characters. What is parsed, or any text at all, can be written as a link and is parsed again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use resourcesync::link_header::{LinkValue, parse};

fuzz_target!(|header: &str| {
    let links = parse(header);
    assert!(links.len() <= header.matches('<').count());
    assert!(links.iter().map(length).sum::<usize>() <= header.len());
    assert_eq!(links, plainly(header));
    for link in &links {
        assert!(link.rel.split_ascii_whitespace().all(|rel| link.is(&rel.to_ascii_uppercase())));
    }

    let mut written: Vec<_> = links.iter().map(print).collect();
    assert_eq!(parse(&written.join(",")), links);
    let target = header.replace(['<', '>'], "").trim().to_owned();
    let any = LinkValue { target, rel: header.to_owned(), anchor: Some(header.to_owned()) };
    written.insert(0, print(&any));
    assert_eq!(parse(&written.join(", "))[0], any);

    // A header may be sent in several, or joined to one.
    let joined = parse(&format!("{}, {header}", print(&any)));
    assert_eq!(joined.split_first(), Some((&any, &links[..])));
});

fn length(link: &LinkValue) -> usize {
    link.target.len() + link.rel.len() + link.anchor.as_ref().map_or(0, String::len)
}

fn print(link: &LinkValue) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let anchor = link.anchor.as_ref().map(|anchor| format!("; anchor={}", quoted(anchor)));
    format!("<{}>; rel={}{}", link.target, quoted(&link.rel), anchor.unwrap_or_default())
}

/// The state of the simple parser.
#[derive(Clone, Copy)]
enum State {
    Between,
    Junk,
    JunkQuoted,
    JunkEscaped,
    Target,
    After,
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
}

impl Draft {
    fn end_parameter(&mut self, value: String) {
        match self.name.trim_ascii_end().to_ascii_lowercase().as_str() {
            "rel" => drop(self.rel.get_or_insert(value)),
            "anchor" => drop(self.anchor.get_or_insert(value)),
            _ => {}
        }
        self.name.clear();
        self.value.clear();
    }

    fn end(&mut self) -> LinkValue {
        let Self { target, rel, anchor, .. } = std::mem::take(self);
        LinkValue { target: target.trim().to_owned(), rel: rel.unwrap_or_default(), anchor }
    }
}

/// Parses a header one character at a time.
fn plainly(header: &str) -> Vec<LinkValue> {
    use State::*;
    let mut links = Vec::new();
    let mut draft = Draft::default();
    let mut state = Between;
    let mut characters = header.chars().peekable();
    while let Some(&character) = characters.peek() {
        let blank = character.is_ascii_whitespace();
        // The character that ends a part is read once more by the next state.
        let (next, is_used) = match (state, character) {
            (Between, ' ' | '\t' | '\r' | '\n' | ',') => (Between, true),
            (Between, '<') => (Target, true),
            (Between, _) => (Junk, false),
            (Junk, ',') => (Between, true),
            (Junk, '"') => (JunkQuoted, true),
            (JunkQuoted, '"') => (Junk, true),
            (JunkQuoted, '\\') => (JunkEscaped, true),
            (JunkEscaped, _) => (JunkQuoted, true),
            (Target, '>') => (After, true),
            (Target, _) => {
                draft.target.push(character);
                (Target, true)
            }
            (After, _) if blank => (After, true),
            (After, ';') => (BeforeName, true),
            (After, _) => {
                links.push(draft.end());
                (Junk, false)
            }
            (BeforeName, _) if blank => (BeforeName, true),
            (BeforeName, _) => (Name, false),
            (Name, '=') => (BeforeValue, true),
            (Name, ';' | ',') => {
                draft.name.clear();
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
                let value = draft.value.trim_ascii_end().to_owned();
                draft.end_parameter(value);
                (After, false)
            }
            (Quoted, '"') => {
                let value = draft.value.clone();
                draft.end_parameter(value);
                (After, true)
            }
            (Quoted, '\\') => (Escaped, true),
            (Token | Quoted | Escaped, _) => {
                draft.value.push(character);
                (if matches!(state, Token) { Token } else { Quoted }, true)
            }
            (Junk | JunkQuoted, _) => (state, true),
        };
        if is_used {
            characters.next();
        }
        state = next;
    }
    match state {
        Token | BeforeValue => {
            let value = draft.value.trim_ascii_end().to_owned();
            draft.end_parameter(value);
        }
        Quoted | Escaped => {
            let value = draft.value.clone();
            draft.end_parameter(value);
        }
        _ => {}
    }
    if !matches!(state, Between | Junk | JunkQuoted | JunkEscaped | Target) {
        links.push(draft.end());
    }
    links
}
