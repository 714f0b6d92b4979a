//! JSON Pointers (RFC 6901).

use std::borrow::Cow;

use crate::PatchError;

/// The most tokens of a pointer. This bounds what following one takes, however deep a document is.
const MOST_TOKENS: usize = 256;

/// A pointer, as it is written. It is decoded when it is followed: the tokens of all pointers of a patch would take
/// many times its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer<'p>(Cow<'p, str>);

impl<'p> Pointer<'p> {
    /// A pointer that is well written.
    pub(crate) fn read(text: Cow<'p, str>) -> Result<Self, PatchError> {
        tokens(&text)?;
        Ok(Self(text))
    }

    /// Its tokens, decoded.
    pub(crate) fn tokens(&self) -> Result<Vec<String>, PatchError> {
        tokens(&self.0)
    }
}

fn tokens(pointer: &str) -> Result<Vec<String>, PatchError> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let rest = pointer.strip_prefix('/').ok_or(PatchError::NotApplicable)?;
    let mut tokens = Vec::new();
    for token in rest.split('/') {
        if tokens.len() == MOST_TOKENS {
            return Err(PatchError::TooLarge);
        }
        tokens.push(decoded(token).ok_or(PatchError::NotApplicable)?);
    }
    Ok(tokens)
}

/// `~1` is a slash and `~0` a tilde; another tilde is an error.
fn decoded(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let char = match part.as_bytes().first()? {
            b'0' => '~',
            b'1' => '/',
            _ => return None,
        };
        text.push(char);
        text.push_str(&part[1..]);
    }
    Some(text)
}

/// The position in an array that a token names; none if it is no number. `-` is the position after the last element.
pub(crate) fn index(token: &str) -> Option<Index> {
    if token == "-" {
        return Some(Index::End);
    }
    let is_number = token.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = token == "0" || !token.starts_with('0');
    token.parse().ok().filter(|_| is_number && is_plain).map(Index::At)
}

/// A position in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    At(usize),
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_decoded() {
        assert_eq!(tokens(""), Ok(vec![]));
        assert_eq!(tokens("/"), Ok(vec![String::new()]));
        assert_eq!(tokens("/a~1b/~01/é"), Ok(vec!["a/b".to_owned(), "~1".to_owned(), "é".to_owned()]));
        for odd in ["a", "/~", "/~2", "/a~"] {
            assert_eq!(tokens(odd), Err(PatchError::NotApplicable), "{odd}");
        }
        assert_eq!(tokens(&"/".repeat(300)), Err(PatchError::TooLarge));
    }

    #[test]
    fn a_pointer_is_kept_as_it_is_written() {
        let pointer = Pointer::read(Cow::Borrowed("/a~1b/c")).unwrap();
        assert!(matches!(pointer.0, Cow::Borrowed("/a~1b/c")));
        assert_eq!(pointer.tokens(), Ok(vec!["a/b".to_owned(), "c".to_owned()]));
        assert_eq!(Pointer::read("/~".into()), Err(PatchError::NotApplicable));
    }

    #[test]
    fn an_index_is_a_plain_number() {
        assert_eq!(
            (index("0"), index("12"), index("-")),
            (Some(Index::At(0)), Some(Index::At(12)), Some(Index::End))
        );
        for odd in ["", "01", "+1", "-1", "1.0", "99999999999999999999999"] {
            assert_eq!(index(odd), None, "{odd}");
        }
    }
}
