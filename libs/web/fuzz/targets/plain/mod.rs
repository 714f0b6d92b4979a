//! A robots.txt parser as simple as possible: groups as written, patterns matched by trying everything.

use std::time::Duration;

/// The rules of a robots.txt for one agent.
pub struct Plain {
    /// Whether a rule allows, and its pattern as written.
    rules: Vec<(bool, Vec<u8>)>,
    pub delay: Option<Duration>,
    pub sitemaps: Vec<String>,
}

/// Lines for the same agents.
#[derive(Default)]
struct Group {
    readers: Vec<Vec<u8>>,
    rules: Vec<(bool, Vec<u8>)>,
    delays: Vec<Duration>,
    /// Whether it has a rule yet; after that, an agent line begins another group.
    is_begun: bool,
}

/// A character of a path as it is compared, or a special character of a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Character(u8),
    Star,
    End,
}

impl Plain {
    pub fn read(text: &[u8], agent: &[u8]) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut groups: Vec<Group> = Vec::new();
    let mut sitemaps: Vec<String> = Vec::new();
        for line in text.split(|byte| b"\r\n".contains(byte)) {
            let line = line.splitn(2, |&byte| byte == b'#').next().unwrap_or_default();
            let mut sides = line.splitn(2, |&byte| byte == b':');
            let (Some(name), Some(value)) = (sides.next(), sides.next()) else { continue };
            let name = name.trim_ascii().to_ascii_lowercase();
            let value = value.trim_ascii();
            if name == b"user-agent" {
                if groups.last().is_none_or(|group| group.is_begun) {
                    groups.push(Group::default());
                }
                groups.last_mut().expect("there is one").readers.push(value.to_owned());
            } else if name == b"sitemap" && !value.is_empty() {
                sitemaps.extend(String::from_utf8(value.to_owned()));
            }
            let Some(group) = groups.last_mut() else { continue };
            if name == b"allow" || name == b"disallow" {
                group.is_begun = true;
                group.rules.push((name == b"allow", value.to_owned()));
            } else if name == b"crawl-delay" {
                group.is_begun = true;
                group.delays.extend(seconds(value));
            }
        }
        let names_us = |reader: &[u8]| {
            let end = reader.iter().position(|byte| *byte == b'/' || byte.is_ascii_whitespace());
            reader[..end.unwrap_or(reader.len())].eq_ignore_ascii_case(agent)
        };
        let ours = groups.iter().any(|group| group.readers.iter().any(|reader| names_us(reader)));
        groups.retain(|group| {
            group.readers.iter().any(|reader| if ours { names_us(reader) } else { reader == b"*" })
        });
        Self {
            delay: groups.iter().flat_map(|group| &group.delays).max().copied(),
            rules: groups.into_iter().flat_map(|group| group.rules).collect(),
            sitemaps,
        }
    }

    pub fn allows(&self, path: &[u8]) -> bool {
        let path_units = units(path, false);
        let matching = self.rules.iter().filter_map(|(allow, pattern)| {
            let pattern = units(pattern, true);
            (!pattern.is_empty() && matches(&pattern, &path_units)).then_some((pattern.len(), *allow))
        });
        let longest: Option<(usize, bool)> = matching.max();
        path == b"/robots.txt" || longest.is_none_or(|(_, allow)| allow)
    }

    /// The same rules, written for all agents.
    pub fn written(&self) -> Vec<u8> {
        let mut text = b"user-agent: *\n".to_vec();
        for (allow, pattern) in &self.rules {
            text.extend([if *allow { &b"allow:"[..] } else { b"disallow:" }, pattern, b"\n"].concat());
        }
        if let Some(delay) = self.delay {
            text.extend(format!("crawl-delay: {}.{:09}\n", delay.as_secs(), delay.subsec_nanos()).bytes());
        }
        text.extend(self.sitemaps.iter().flat_map(|url| format!("sitemap: {url}\n").into_bytes()));
        text
    }
}

/// Digits with at most one point among them; at most a day.
fn seconds(value: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let day = Duration::from_secs(86_400);
    match whole.trim_start_matches('0').len() {
        0..=6 => Some(Duration::from_secs_f64(text.parse().ok()?).min(day)),
        _ => Some(day),
    }
}

fn units(octets: &[u8], is_pattern: bool) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut rest = octets;
    while let [first, after @ ..] = rest {
        let escape =
            rest.get(1..3).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let escaped = escape.map(|digits| {
            let digits = std::str::from_utf8(digits).expect("they are digits");
            u8::from_str_radix(digits, 16).expect("they are digits")
        });
        rest = if escaped.is_some() { &rest[3..] } else { after };
        let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-._~".contains(&octet);
        match (escaped, *first) {
            (Some(octet), _) if is_plain(octet) => units.push(Unit::Character(octet)),
            (Some(octet), _) | (None, octet @ (b'%' | ..=b' ' | 0x7f..)) => units.extend(escape_of(octet)),
            (None, b'*') if is_pattern => units.push(Unit::Star),
            (None, b'$') if is_pattern && after.is_empty() => units.push(Unit::End),
            (None, octet @ (b'*' | b'$')) => units.extend(escape_of(octet)),
            (None, octet) => units.push(Unit::Character(octet)),
        }
    }
    units
}

fn escape_of(octet: u8) -> impl Iterator<Item = Unit> {
    format!("%{octet:02X}").into_bytes().into_iter().map(Unit::Character)
}

/// Whether a pattern matches the beginning of a path, by trying all ends of each of its parts.
fn matches(pattern: &[Unit], path: &[Unit]) -> bool {
    let mut places = vec![false; path.len() + 1];
    places[0] = true;
    for unit in pattern {
        let mut next = vec![false; path.len() + 1];
        for at in (0..=path.len()).filter(|&at| places[at]) {
            match unit {
                Unit::Star => next[at..].fill(true),
                Unit::End => next[at] = at == path.len(),
                same if path.get(at) == Some(same) => next[at + 1] = true,
                _ => {}
            }
        }
        places = next;
    }
    places.contains(&true)
}
