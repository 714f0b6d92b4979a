//! Finds the inbox of a resource in a body of Turtle (LDN-1).

use oxrdf::{NamedOrBlankNode, Term};
use oxttl::TurtleParser;
use url::Url;

use crate::Limits;
use crate::discovery::{NoInbox, the_one};
use crate::json::Unreadable;
use crate::terms::INBOX;

/// The media type of Turtle.
pub const TURTLE: &str = "text/turtle";

/// Whether a body of this `Content-Type` is Turtle.
pub fn is_turtle(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(TURTLE)
}

/// The inbox of `target` by a body of Turtle. `base` is the URL that answered; `target` may have a fragment, and is then
/// a part of what the body describes. Of the limits, `bytes` and `members` count: a member is a triple.
///
/// # Errors
/// [`Unreadable`] where it is no Turtle within the limits, and [`NoInbox`] within the result.
pub fn inbox_in_turtle(
    body: &[u8],
    target: &Url,
    base: &Url,
    limits: &Limits,
) -> Result<Result<Url, NoInbox>, Unreadable> {
    if body.len() > limits.bytes {
        return Err(Unreadable::TooLarge { bytes: body.len(), limit: limits.bytes });
    }
    let broken = |error: &dyn std::fmt::Display| Unreadable::NotTurtle(error.to_string());
    let parser = TurtleParser::new().with_base_iri(base.as_str()).map_err(|error| broken(&error))?;
    let mut inboxes = Vec::new();
    for (number, triple) in parser.for_slice(body).enumerate() {
        if number >= limits.members {
            return Err(Unreadable::TooManyMembers { limit: limits.members });
        }
        let triple = triple.map_err(|error| broken(&error))?;
        if triple.predicate.as_str() != INBOX {
            continue;
        }
        let NamedOrBlankNode::NamedNode(subject) = &triple.subject else { continue };
        let Term::NamedNode(inbox) = &triple.object else { continue };
        let is_about = |url: Url| url == *target || (target.fragment().is_none() && url == *base);
        if Url::parse(subject.as_str()).is_ok_and(is_about) {
            inboxes.extend(Url::parse(inbox.as_str()));
        }
    }
    Ok(the_one(inboxes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { bytes: 10_000, depth: 20, members: 100 };

    fn found(body: &str, target: &str) -> Result<Result<String, NoInbox>, Unreadable> {
        let [target, base] = [target, "https://e.org/a"].map(|url| Url::parse(url).unwrap());
        inbox_in_turtle(body.as_bytes(), &target, &base, &LIMITS).map(|found| found.map(String::from))
    }

    #[test]
    fn a_body_tells_of_the_inbox_of_what_it_is_about() {
        let inbox = Ok(Ok("https://e.org/inbox/".to_owned()));
        for body in [
            "<https://e.org/a> <http://www.w3.org/ns/ldp#inbox> <https://e.org/inbox/> .",
            "@prefix ldp: <http://www.w3.org/ns/ldp#> . <> a ldp:Resource ; ldp:inbox </inbox/> .",
            "PREFIX l: <http://www.w3.org/ns/ldp#> <#me> l:inbox </wrong> . </other> l:inbox </wrong> . <a> l:inbox <inbox/>, </inbox/> .",
            "@prefix ldp: <http://www.w3.org/ns/ldp#> . <> ldp:inbox </inbox/>, 'text', [] , <mailto:a@e.org> . [] ldp:inbox </wrong> .",
        ] {
            assert_eq!(found(body, "https://e.org/a"), inbox, "{body}");
        }
        let part =
            "@prefix ldp: <http://www.w3.org/ns/ldp#> . <#me> ldp:inbox </inbox/> . <> ldp:inbox </wrong> .";
        assert_eq!(found(part, "https://e.org/a#me"), inbox);
        assert_eq!(found("", "https://e.org/a"), Ok(Err(NoInbox::None)));
        let two = "@prefix ldp: <http://www.w3.org/ns/ldp#> . <> ldp:inbox </1>, </2> .";
        assert!(matches!(found(two, "https://e.org/a"), Ok(Err(NoInbox::Several(..)))));
    }

    #[test]
    fn what_is_no_turtle_or_too_much_is_refused() {
        assert!(matches!(found("<html><body>", "https://e.org/a"), Err(Unreadable::NotTurtle(_))));
        let many = "<> <p:p> 1 .".repeat(200);
        assert_eq!(found(&many, "https://e.org/a"), Err(Unreadable::TooManyMembers { limit: 100 }));
        let large = "#".repeat(10_001);
        assert_eq!(
            found(&large, "https://e.org/a"),
            Err(Unreadable::TooLarge { bytes: 10_001, limit: 10_000 })
        );
        for nested in ["[", "(", "<> <p:p> [ <p:p> "] {
            let deep = nested.repeat(9_000 / nested.len());
            assert!(found(&deep, "https://e.org/a").is_err(), "{nested}");
        }
    }

    #[test]
    fn turtle_is_known_by_its_type() {
        assert!(is_turtle("text/turtle") && is_turtle("Text/Turtle; charset=utf-8"));
        assert!(!is_turtle("text/html") && !is_turtle(""));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_text_is_read_without_panic(body in r##"(<|>|a|:|;|,|\.| |@prefix|\[|\]|\(|\)|'|"|_|#|\\u|1){0,40}|.{0,80}"##) {
            let _ = found(&body, "https://e.org/a");
        }
    }
}
