//! Plain text of at most 100 columns.

use model::{displayed, displayed_lines};

/// The most columns of a line. Mail programs leave such lines unchanged.
pub(crate) const COLUMNS: usize = 100;

/// A text under construction.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// The title, doubly underlined.
    pub(super) fn title(&mut self, text: &str) {
        self.underlined(text, '=');
    }

    /// A heading after an empty line.
    pub(super) fn heading(&mut self, text: &str) {
        self.blank();
        self.underlined(text, '-');
    }

    /// An empty line.
    pub(super) fn blank(&mut self) {
        self.0.push('\n');
    }

    /// Sentences, broken between words.
    pub(super) fn words(&mut self, indent: usize, text: &str) {
        self.hanging(indent, indent, text);
    }

    /// Sentences with a hanging indent, as after a number or a name.
    pub(super) fn hanging(&mut self, first: usize, others: usize, text: &str) {
        let mut line = " ".repeat(first);
        let mut is_empty = true;
        for word in displayed_lines(text).split_whitespace() {
            let width = line.chars().count();
            if !is_empty && width + 1 + word.chars().count() > COLUMNS {
                self.line(&line);
                line = " ".repeat(others);
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(&shortened(word, COLUMNS - line.chars().count()));
            is_empty = false;
        }
        self.line(&line);
    }

    /// One line without a break. If it is too long, it loses its middle.
    pub(super) fn whole(&mut self, indent: usize, text: &str) {
        let line = format!("{}{}", " ".repeat(indent), shortened(&displayed(text), COLUMNS - indent));
        self.line(&line);
    }

    /// A name and its value, in two columns.
    pub(super) fn pair(&mut self, name: &str, value: &str) {
        const NAMES: usize = 20;
        self.whole(2, &format!("{name:NAMES$}{value}"));
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }

    fn underlined(&mut self, text: &str, with: char) {
        let text = displayed(text);
        self.line(&text);
        self.line(&String::from(with).repeat(text.chars().count()));
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }
}

fn shortened(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(1);
    let head = kept / 2;
    let end = text.chars().skip(length - (kept - head));
    text.chars().take(head).chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(fill: impl FnOnce(&mut Page)) -> Vec<String> {
        let mut page = Page::default();
        fill(&mut page);
        page.into_text().lines().map(str::to_owned).collect()
    }

    #[test]
    fn sentences_are_broken_between_words_and_no_line_is_too_long() {
        let text = "word ".repeat(50);
        let lines = lines(|page| page.hanging(2, 6, &text));
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS), "{lines:?}");
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("      word"));
        assert_eq!(lines.iter().map(|line| line.matches("word").count()).sum::<usize>(), 50);
    }

    #[test]
    fn what_is_too_long_for_a_line_loses_its_middle() {
        let uri = format!("https://example.org/{}/end.pdf", "é".repeat(200));
        for lines in [lines(|page| page.whole(4, &uri)), lines(|page| page.words(4, &uri))] {
            let [line] = &lines[..] else { panic!("{lines:?}") };
            assert_eq!(line.chars().count(), COLUMNS);
            assert!(line.starts_with("    https://example.org/") && line.ends_with("/end.pdf"), "{line}");
        }
    }

    #[test]
    fn control_characters_of_strangers_are_not_passed_on() {
        assert_eq!(lines(|page| page.whole(0, "a\u{1b}[31mb")), ["a\u{fffd}[31mb"]);
    }
}
