//! JSON Pointers (RFC 6901).

use crate::PatchError;

/// The most tokens of a pointer: deeper documents are no documents of anybody.
const MOST_TOKENS: usize = 256;

/// The tokens of a pointer, decoded.
pub(crate) fn tokens(pointer: &str) -> Result<Vec<String>, PatchError> {
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
