//! How a document is written: its indentation, and its spaces after colons and commas. New values are written alike.

use std::cell::Cell;

use crate::PatchError;
use crate::scan::{Scan, is_space};

/// The most white space that is repeated: more is no style.
const MOST_SPACE: usize = 64;

/// The style of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Style {
    /// White space around a colon, with it.
    colon: Vec<u8>,
    /// White space after a comma, in a document of one line.
    comma: Vec<u8>,
    /// None in a document of one line.
    indent: Option<Indent>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Indent {
    newline: &'static [u8],
    /// Of one level.
    unit: Vec<u8>,
}

impl Style {
    /// The style of a text: that of its first container, colon and comma.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut style = Self { colon: b":".to_vec(), comma: Vec::new(), indent: None };
        let space_from = |at: usize| {
            let rest = text.get(at..).unwrap_or_default();
            let length = rest.iter().take(MOST_SPACE).take_while(|byte| is_space(**byte)).count();
            &rest[..length]
        };
        let work = Cell::new(u64::MAX);
        let scan = Scan::new(text, &work);
        let (mut has_container, mut has_colon, mut has_comma) = (false, false, false);
        let mut at = 0;
        while let Some(byte) = scan.byte(at) {
            match byte {
                b'"' => match scan.end_of_string(at) {
                    Some(end) => {
                        at = end;
                        continue;
                    }
                    None => break,
                },
                b'{' | b'[' if !has_container => {
                    has_container = true;
                    style.indent = indent(space_from(at + 1));
                }
                b':' if !has_colon => {
                    has_colon = true;
                    let before =
                        text[..at].iter().rev().take(MOST_SPACE).take_while(|byte| is_space(**byte)).count();
                    style.colon = [&text[at - before..at], b":", space_from(at + 1)].concat();
                }
                b',' if !has_comma => {
                    has_comma = true;
                    style.comma = space_from(at + 1).to_vec();
                }
                _ => {}
            }
            if has_container && has_colon && has_comma {
                break;
            }
            at += 1;
        }
        style
    }

    pub(crate) fn colon(&self) -> &[u8] {
        &self.colon
    }

    /// Ends the line, and begins one at this depth; nothing in a document of one line.
    pub(crate) fn begin_line(&self, depth: usize, out: &mut Vec<u8>) {
        if let Some(Indent { newline, unit }) = &self.indent {
            out.extend_from_slice(newline);
            (0..depth).for_each(|_| out.extend_from_slice(unit));
        }
    }

    /// A comma, and what follows it at this depth.
    pub(crate) fn comma(&self, depth: usize, out: &mut Vec<u8>) {
        out.push(b',');
        if self.indent.is_some() {
            self.begin_line(depth, out);
        } else {
            out.extend_from_slice(&self.comma);
        }
    }

    /// Writes a value at this depth, `most` bytes at most. Names, text and numbers stay as they are written.
    pub(crate) fn write(
        &self,
        value: &[u8],
        depth: usize,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), PatchError> {
        let work = Cell::new(u64::MAX);
        let scan = Scan::new(value, &work);
        let mut deep = depth;
        let mut at = 0;
        while let Some(byte) = scan.byte(at) {
            if out.len() > most {
                return Err(PatchError::TooLarge);
            }
            let end = match byte {
                b'{' | b'[' => {
                    out.push(byte);
                    let next = scan.skip_space(at + 1);
                    match scan.byte(next) {
                        Some(closing @ (b'}' | b']')) => {
                            out.push(closing);
                            next + 1
                        }
                        _ => {
                            deep += 1;
                            self.begin_line(deep, out);
                            at + 1
                        }
                    }
                }
                b'}' | b']' => {
                    deep =
                        deep.checked_sub(1).filter(|deep| *deep >= depth).ok_or(PatchError::NotApplicable)?;
                    self.begin_line(deep, out);
                    out.push(byte);
                    at + 1
                }
                b',' => {
                    self.comma(deep, out);
                    at + 1
                }
                b':' => {
                    out.extend_from_slice(&self.colon);
                    at + 1
                }
                byte if is_space(byte) => at + 1,
                _ => {
                    let end = if byte == b'"' { scan.end_of_string(at) } else { scan.end_of_literal(at) };
                    let end = end.filter(|end| *end <= value.len()).ok_or(PatchError::NotApplicable)?;
                    out.extend_from_slice(&value[at..end]);
                    end
                }
            };
            at = end;
        }
        if out.len() > most { Err(PatchError::TooLarge) } else { Ok(()) }
    }
}

/// The indentation that the white space after the first bracket shows.
fn indent(space: &[u8]) -> Option<Indent> {
    let line = space.iter().rposition(|byte| *byte == b'\n')?;
    let newline: &[u8] = if space[..line].ends_with(b"\r") { b"\r\n" } else { b"\n" };
    Some(Indent { newline, unit: space[line + 1..].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value in the style of another text.
    fn written(like: &str, value: &str, depth: usize) -> String {
        let mut out = Vec::new();
        Style::of(like.as_bytes()).write(value.as_bytes(), depth, 1_000, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_written_like_the_document() {
        let value = r#"{"a" : [1,2, {}],"b":"x,: y"}"#;
        assert_eq!(written("", value, 1), r#"{"a":[1,2,{}],"b":"x,: y"}"#);
        assert_eq!(written(r#"{"x": 1, "y": 2}"#, value, 1), r#"{"a": [1, 2, {}], "b": "x,: y"}"#);
        let pretty = "{\r\n\t\t\"a\" : [\r\n\t\t\t\t1\r\n\t\t]\r\n}".replace('\t', " ");
        assert_eq!(written(&pretty, r#"{"a":[1]}"#, 0), pretty);
    }

    #[test]
    fn what_grows_beyond_the_limit_is_too_large() {
        let deep = "[".repeat(500) + "1" + &"]".repeat(500);
        let style = Style::of(b"{\n        \"a\": 1\n}");
        assert_eq!(style.write(deep.as_bytes(), 1, 100_000, &mut Vec::new()), Err(PatchError::TooLarge));
    }
}
