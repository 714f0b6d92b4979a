//! Characters that command a terminal, or that disguise a text as another one.

/// Whether a character commands a display instead of being shown: controls (C0, DEL, C1), line and paragraph
/// separators, and marks that change the direction of text.
///
/// No URI has one of them (RFC 3986), so an entry whose `loc` does is bad. All code that prints a Source's
/// text replaces them.
pub fn steers_display(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first such character of a text. Nearly all texts are printable ASCII, and are checked by bytes only.
pub(crate) fn first_steering(text: &str) -> Option<char> {
    let is_odd = text.bytes().fold(false, |odd, byte| odd | !(b' '..0x7f).contains(&byte));
    if is_odd { text.chars().find(|character| steers_display(*character)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_turned_directions_steer_and_letters_do_not() {
        for character in
            ['\0', '\t', '\n', '\u{1b}', '\u{7f}', '\u{85}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{2028}']
        {
            assert_eq!(first_steering(&format!("http://e/é{character}")), Some(character));
        }
        assert_eq!(first_steering("http://e.org/a b/é/\u{fffd}~"), None);
    }
}
