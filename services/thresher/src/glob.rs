//! Shell patterns: `*` is any text, `?` any one character.

/// Whether a pattern matches the whole text. Takes at most the product of both lengths.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let mut at = 0;
    let mut seen = 0;
    // The last star, and the end of its match.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(&letter) if letter == '?' || letter == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((place, reached)) = star else { return false };
                star = Some((place, reached + 1));
                (at, seen) = (place + 1, reached + 1);
            }
        }
    }
    pattern[at..].iter().all(|&letter| letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text_and_question_marks_for_one_character() {
        for (pattern, text) in [
            ("*", ""),
            ("https://*.example.org/*", "https://a.example.org/list.xml"),
            ("a*b*c", "a-bb-b-c"),
            ("?b", "ab"),
            ("a", "a"),
            ("**", "a"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "ab"), ("?", ""), ("a*b", "abc"), ("A", "a"), ("a?c", "ac")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)));
    }
}
