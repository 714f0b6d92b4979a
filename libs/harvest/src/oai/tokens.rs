//! How a repository takes its tokens. A few refuse them as the protocol sends them; the first token of a list is tried
//! in each way that could help, and the way that works is remembered.

use model::OaiTokens;
use oaipmh::{Quirk, Request, Token, TokenForm, Verb};

/// What is known of a repository's tokens in this run.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// Whether a token was taken, so that one that is refused has expired.
    work: bool,
    /// Whether other ways are being tried.
    is_trying: bool,
    /// Whether every way was tried in vain.
    is_tried: bool,
}

impl Tokens {
    /// A token was taken. Returns what is to be counted, once.
    pub(super) fn worked(&mut self, way: OaiTokens) -> Option<Quirk> {
        if std::mem::replace(&mut self.work, true) {
            return None;
        }
        match way {
            OaiTokens::Encoded => None,
            OaiTokens::Decoded => Some(Quirk::EncodedToken),
            OaiTokens::Verbatim => Some(Quirk::TokenVerbatim),
            OaiTokens::WithPrefix => Some(Quirk::TokenNotExclusive),
        }
    }

    /// Whether a way is being tried: then whatever fails may be its fault, such as an error of the server.
    pub(super) fn are_tried(&self) -> bool {
        self.is_trying && !self.work
    }

    /// The next way to send the first token of a list, which was refused. None if no other way is left, or it would be
    /// no other one.
    pub(super) fn other(&mut self, way: OaiTokens, token: &str) -> Option<OaiTokens> {
        if self.work || self.is_tried {
            return None;
        }
        self.is_trying = true;
        let mut next = way;
        loop {
            let Some(other) = next.next() else {
                self.is_tried = true;
                // The way of the protocol is the one for other lists.
                return (!way.are_usual()).then(OaiTokens::default);
            };
            next = other;
            let is_other = match other {
                OaiTokens::Decoded => Token::new(token).is_some_and(|token| token.decoded().is_some()),
                OaiTokens::Verbatim => !token.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                OaiTokens::Encoded | OaiTokens::WithPrefix => true,
            };
            if is_other {
                return Some(other);
            }
        }
    }
}

/// The request for the page that a token leads to.
pub(super) fn request(way: OaiTokens, verb: Verb, token: Token, prefix: &str) -> Request {
    let (form, prefix) = match way {
        OaiTokens::Encoded => (TokenForm::Encoded, None),
        OaiTokens::Decoded => (TokenForm::Decoded, None),
        OaiTokens::Verbatim => (TokenForm::Verbatim, None),
        OaiTokens::WithPrefix => (TokenForm::Encoded, Some(prefix.to_owned())),
    };
    Request::Resume { verb, token, form, prefix }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_tried_once_and_then_the_usual_one_is_left() {
        let mut tokens = Tokens::default();
        let mut ways = vec![OaiTokens::Encoded];
        while let Some(other) = tokens.other(*ways.last().unwrap(), "a%2Fb") {
            ways.push(other);
        }
        use OaiTokens::{Decoded, Encoded, Verbatim, WithPrefix};
        assert_eq!(ways, [Encoded, Decoded, Verbatim, WithPrefix, Encoded]);
        assert!(tokens.are_tried() && !Tokens::default().are_tried());
        let mut tokens = Tokens::default();
        assert_eq!(tokens.other(Encoded, "abc"), Some(WithPrefix), "no encoding changes it");
    }

    #[test]
    fn a_token_that_is_refused_after_others_were_taken_has_expired() {
        let mut tokens = Tokens::default();
        assert_eq!(tokens.worked(OaiTokens::Verbatim), Some(Quirk::TokenVerbatim));
        assert_eq!(tokens.worked(OaiTokens::Verbatim), None, "it is counted once");
        assert_eq!(tokens.other(OaiTokens::Encoded, "a%2Fb"), None);
    }
}
