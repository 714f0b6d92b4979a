//! Texts of Sources, servers and senders, made safe for display.

use std::borrow::Cow;

use resourcesync::steers_display;

/// A text without control characters, which could command a terminal: they become U+FFFD. Line ends are among
/// them, so one line stays one. All printed text goes through here.
pub fn displayed(text: &str) -> Cow<'_, str> {
    clean(text, |_| false)
}

/// The same for a text of several lines, whose line ends stay. Each part of a line has to be [`displayed`]
/// before.
pub fn displayed_lines(text: &str) -> Cow<'_, str> {
    clean(text, |character| character == '\n')
}

fn clean(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let goes = |character: char| steers_display(character) && !stays(character);
    if text.contains(goes) { text.replace(goes, "\u{fffd}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_display_is_replaced_and_nothing_else() {
        assert_eq!(
            displayed("a\u{1b}]0;x\u{7}\nb\u{9b}\u{202e}é"),
            "a\u{fffd}]0;x\u{fffd}\u{fffd}b\u{fffd}\u{fffd}é"
        );
        assert_eq!(displayed_lines("a\nb\rc"), "a\nb\u{fffd}c");
        assert!(matches!(displayed("as it is"), Cow::Borrowed(_)));
    }
}
