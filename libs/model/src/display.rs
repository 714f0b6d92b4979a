//! Texts of Sources, servers and senders, as a person may be shown them.

use std::borrow::Cow;

use resourcesync::steers_display;

/// A text without what would command a display: such characters become U+FFFD. Line ends are among them, so what was one
/// line stays one. The one cleaner for whatever is printed.
pub fn displayed(text: &str) -> Cow<'_, str> {
    clean(text, |_| false)
}

/// The same for a text of several lines, whose line ends stay. What stands in a line has to be [`displayed`] before.
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
