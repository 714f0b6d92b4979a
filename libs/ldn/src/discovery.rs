//! Finds the inbox of a resource, in `Link` headers and in a body of JSON-LD (LDN-1).

use links::header;
use serde_json::Value;
use url::Url;

use crate::node::{Document, Item};
use crate::terms::INBOX;

/// Why a resource has no usable inbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoInbox {
    /// It names none.
    #[error("it names no inbox")]
    None,
    /// It names several, and a resource has one (LDN, 3.1).
    #[error("it names two inboxes, {0} and {1}; one is allowed")]
    Several(String, String),
}

/// The inbox in the `Link` headers of a resource. `base` is the URL that answered. A link with another
/// context (`anchor`) does not concern this resource.
///
/// # Errors
/// [`NoInbox`].
pub fn inbox_in_links<'h>(headers: impl IntoIterator<Item = &'h str>, base: &Url) -> Result<Url, NoInbox> {
    let links = headers.into_iter().flat_map(header::parse);
    let inboxes = links.filter(|link| link.is(INBOX) && link.is_about(base));
    the_one(inboxes.filter_map(|link| base.join(&link.target).ok()))
}

/// The inbox of `target` by a body of JSON-LD. `base` is the URL that answered; `target` may have a fragment,
/// and is then a part of what the body describes.
///
/// # Errors
/// [`NoInbox`].
pub fn inbox_in_body(body: &Value, target: &Url, base: &Url) -> Result<Url, NoInbox> {
    let document = Document::of(body);
    let nodes = document.nodes();
    let about = |id: Option<&str>| match id {
        Some(id) => {
            base.join(id).is_ok_and(|url| url == *target || (target.fragment().is_none() && url == *base))
        }
        // A single node without an id can only be the requested resource.
        None => nodes.len() == 1 && target.fragment().is_none(),
    };
    let mut inboxes = Vec::new();
    for node in nodes.iter().filter(|node| about(node.id())) {
        inboxes.extend(node.values(INBOX).filter_map(|item: Item<'_>| base.join(item.name()?).ok()));
    }
    the_one(inboxes)
}

pub(crate) fn the_one(inboxes: impl IntoIterator<Item = Url>) -> Result<Url, NoInbox> {
    let mut inboxes = inboxes.into_iter().filter(|url| matches!(url.scheme(), "http" | "https"));
    let first = inboxes.next().ok_or(NoInbox::None)?;
    match inboxes.find(|other| *other != first) {
        Some(other) => Err(NoInbox::Several(first.into(), other.into())),
        None => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn linked(headers: &[&str]) -> Result<String, NoInbox> {
        inbox_in_links(headers.iter().copied(), &url("https://e.org/a/b")).map(String::from)
    }

    #[test]
    fn a_link_with_the_relation_leads_to_the_inbox() {
        let inbox = Ok("https://e.org/inbox/".to_owned());
        assert_eq!(linked(&["</inbox/>; rel=\"http://www.w3.org/ns/ldp#inbox\""]), inbox);
        assert_eq!(
            linked(&["</x>; rel=up", "<../inbox/>; rel=\"up http://www.w3.org/ns/ldp#inbox\""]),
            inbox
        );
        let own = "</inbox/>; rel=\"http://www.w3.org/ns/ldp#inbox\"; anchor=\"/a/b\"";
        assert_eq!(linked(&[own, own]), inbox);
        for none in [
            "</inbox/>; rel=inbox",
            "</inbox/>; rel=\"http://www.w3.org/ns/ldp#inbox\"; anchor=\"/other\"",
            "<mailto:a@e.org>; rel=\"http://www.w3.org/ns/ldp#inbox\"",
            "",
        ] {
            assert_eq!(linked(&[none]), Err(NoInbox::None), "{none}");
        }
        let two =
            "</1>; rel=\"http://www.w3.org/ns/ldp#inbox\", </2>; rel=\"http://www.w3.org/ns/ldp#inbox\"";
        assert!(matches!(linked(&[two]), Err(NoInbox::Several(..))));
    }

    #[test]
    fn a_body_tells_of_the_inbox_of_what_it_is_about() {
        let target = url("https://e.org/a");
        let found = |body: Value, target: &Url| {
            inbox_in_body(&body, target, &url("https://e.org/a")).map(String::from)
        };
        let inbox = Ok("https://e.org/inbox/".to_owned());
        for body in [
            json!({"@id": "https://e.org/a", "http://www.w3.org/ns/ldp#inbox": {"@id": "/inbox/"}}),
            json!({"@context": "http://www.w3.org/ns/ldp", "@id": "", "inbox": "https://e.org/inbox/"}),
            json!({"@context": {"ldp": "http://www.w3.org/ns/ldp#"}, "@graph": [
                {"@id": "/a", "ldp:inbox": {"@id": "inbox/"}}, {"@id": "/other", "ldp:inbox": "/wrong"}]}),
            json!({"http://www.w3.org/ns/ldp#inbox": "/inbox/"}),
            json!({"@context": "https://www.w3.org/ns/activitystreams", "type": "Service", "inbox": "/inbox/"}),
        ] {
            assert_eq!(found(body.clone(), &target), inbox, "{body}");
        }
        let other =
            json!({"@id": "https://e.org/other", "http://www.w3.org/ns/ldp#inbox": {"@id": "/inbox/"}});
        assert_eq!(found(other, &target), Err(NoInbox::None));
        let parts = json!([{"@id": "#me", "http://www.w3.org/ns/ldp#inbox": {"@id": "/inbox/"}},
            {"@id": "#you", "http://www.w3.org/ns/ldp#inbox": {"@id": "/wrong"}}]);
        assert_eq!(found(parts.clone(), &url("https://e.org/a#me")), inbox);
        assert_eq!(found(parts, &target), Err(NoInbox::None));
    }
}
