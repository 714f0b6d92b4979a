//! Which paths a robots.txt allows (RFC 9309, 2.2.2).

/// The rules of one group, in as little memory as their file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Rules {
    /// One rule per line: `+` or `-`, and its normalized pattern.
    lines: String,
}

impl Rules {
    /// Adds a rule. An empty pattern is no rule.
    pub(crate) fn add(&mut self, allow: bool, pattern: &[u8]) {
        if !pattern.is_empty() {
            self.lines.push(if allow { '+' } else { '-' });
            normalize(pattern, true, &mut self.lines);
            self.lines.push('\n');
        }
    }

    /// Whether a path, with its query, may be fetched: the longest matching rule decides, and of two with
    /// equal length the one that allows.
    pub(crate) fn allow(&self, path_and_query: &str) -> bool {
        if path_and_query == "/robots.txt" {
            return true;
        }
        let mut path = String::with_capacity(path_and_query.len());
        normalize(path_and_query.as_bytes(), false, &mut path);
        let rules = self.lines.lines().filter_map(|line| Some((line.strip_prefix('+'), line.get(1..)?)));
        let matching = rules.filter(|(_, pattern)| matches(pattern, &path));
        let decisive = matching.map(|(allow, pattern)| (pattern.len(), allow.is_some())).max();
        decisive.is_none_or(|(_, allow)| allow)
    }

    /// Bytes held.
    pub(crate) fn size(&self) -> usize {
        self.lines.len()
    }
}

/// Whether a pattern matches from the beginning of the path on. Linear in both: each piece between stars is
/// searched once, after the one before it.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, to_the_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let (first, rest) = match pattern.split_once('*') {
        None if to_the_end => return path == pattern,
        None => return path.starts_with(pattern),
        Some(parts) => parts,
    };
    let Some(mut path) = path.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        let Some(at) = path.find(piece) else { return false };
        path = &path[at + piece.len()..];
    }
    if to_the_end { path.ends_with(last) } else { path.contains(last) }
}

/// Normalizes octets for comparison: unneeded escapes are decoded, needed ones are written in upper case. `*`
/// and `$` stand for themselves only where they are special in a pattern.
fn normalize(octets: &[u8], is_pattern: bool, out: &mut String) {
    let mut at = 0;
    while let Some(&octet) = octets.get(at) {
        let last = at + 1 == octets.len();
        let escaped = match octets.get(at..at + 3) {
            Some([b'%', high, low]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        match (escaped, octet) {
            (Some(octet), _) if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) => {
                out.push(char::from(octet));
            }
            (Some(octet), _) => escape(octet, out),
            (None, b'*') if is_pattern => out.push('*'),
            (None, b'$') if is_pattern && last => out.push('$'),
            // An unfinished escape would be completed by the next octets.
            (None, b'*' | b'$' | b'%') => escape(octet, out),
            (None, b'!'..=b'~') => out.push(char::from(octet)),
            (None, _) => escape(octet, out),
        }
        at += if escaped.is_some() { 3 } else { 1 };
    }
}

fn escape(octet: u8, out: &mut String) {
    let digit =
        |value: u8| char::from_digit(u32::from(value), 16).map_or('0', |digit| digit.to_ascii_uppercase());
    out.extend(['%', digit(octet >> 4), digit(octet & 15)]);
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn allows(rules: &[(bool, &str)], path: &str) -> bool {
        let mut all = Rules::default();
        for (allow, pattern) in rules {
            all.add(*allow, pattern.as_bytes());
        }
        all.allow(path)
    }

    fn disallows(pattern: &str, path: &str) -> bool {
        !allows(&[(false, pattern)], path)
    }

    #[test]
    fn patterns_match_from_the_beginning() {
        assert!(disallows("/fish", "/fish/salmon.html") && disallows("/fish", "/fishheads?id=1"));
        assert!(!disallows("/fish", "/catfish") && !disallows("/fish", "/Fish"));
        assert!(disallows("/", "/") && !disallows("", "/"));
    }

    #[test]
    fn stars_stand_for_anything_and_a_dollar_for_the_end() {
        for (pattern, path, expected) in [
            ("/*.php", "/a/b.php?c", true),
            ("/*.php$", "/a/b.php?c", false),
            ("/*.php$", "/a.php/b.php", true),
            ("/fish*.php", "/fish.php", true),
            ("/a*b*c", "/a1c2b3c", true),
            ("/a*b*c", "/a1c2b3", false),
            ("/a$", "/a", true),
            ("/a$", "/ab", false),
            ("/a$b", "/a$b", true),
            ("*", "/x", true),
            ("/a*", "/a", true),
            ("/a**b", "/a-b", true),
            ("/a*a$", "/a", false),
        ] {
            assert_eq!(disallows(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn the_longest_match_decides_and_allow_wins_a_tie() {
        assert!(allows(&[(false, "/a"), (true, "/a/b")], "/a/b/c"));
        assert!(!allows(&[(true, "/a"), (false, "/a/b")], "/a/b/c"));
        assert!(allows(&[(false, "/a"), (true, "/a")], "/a"));
        assert!(allows(&[(false, "/")], "/robots.txt"));
    }

    #[test]
    fn escapes_are_compared_by_what_they_mean() {
        assert!(disallows("/ü", "/%C3%BC") && disallows("/%c3%bc", "/%C3%BC"));
        assert!(disallows("/%62", "/b") && disallows("/b", "/%62"));
        assert!(!disallows("/a%2Fb", "/a/b"));
        assert!(disallows("/a%2A", "/a*") && !disallows("/a%2A", "/abc"));
        assert!(disallows("/a%", "/a%"));
    }

    /// Whether a pattern matches, by trying everything.
    fn slowly(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], _) => true,
            ([b'$'], _) => path.is_empty(),
            ([b'*', rest @ ..], _) => (0..=path.len()).any(|skip| slowly(rest, &path[skip..])),
            ([a, pattern @ ..], [b, path @ ..]) => a == b && slowly(pattern, path),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn the_quick_way_matches_what_the_slow_one_does(pattern in "/[ab*]{0,6}\\$?", path in "/[ab]{0,8}") {
            prop_assert_eq!(disallows(&pattern, &path), slowly(pattern.as_bytes(), path.as_bytes()));
        }

        #[test]
        fn any_octets_are_normalized_to_one_line_and_stay_so(octets: Vec<u8>) {
            let mut once = String::new();
            normalize(&octets, true, &mut once);
            prop_assert!(once.bytes().all(|octet| octet.is_ascii_graphic()));
            let mut twice = String::new();
            normalize(once.as_bytes(), true, &mut twice);
            prop_assert_eq!(once, twice);
        }
    }
}
