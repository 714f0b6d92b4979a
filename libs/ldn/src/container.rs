//! Listings of an inbox, written and parsed (LDN-2, LDN-4).

use serde_json::{Value, json};
use url::Url;

use crate::node::{Document, Item};
use crate::terms::{AS, BASIC_CONTAINER, CONSTRAINED_BY, CONTAINS};

/// A page of an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The inbox itself.
    pub inbox: Url,
    /// The notifications of this page.
    pub contains: Vec<Url>,
    /// The next page.
    pub next: Option<Url>,
    /// The document with the constraints on notifications.
    pub constrained_by: Url,
}

impl Listing {
    /// As JSON-LD. A reader needs to fetch no context.
    pub fn to_json(&self) -> Value {
        let mut said = json!({
            "@context": {
                "contains": {"@id": CONTAINS, "@type": "@id"},
                "constrainedBy": {"@id": CONSTRAINED_BY, "@type": "@id"},
                "next": {"@id": format!("{AS}next"), "@type": "@id"},
            },
            "@id": self.inbox.as_str(),
            "@type": BASIC_CONTAINER,
            "constrainedBy": self.constrained_by.as_str(),
            "contains": self.contains.iter().map(Url::as_str).collect::<Vec<_>>(),
        });
        if let Some(next) = &self.next {
            said["next"] = next.as_str().into();
        }
        said
    }
}

/// The notifications of an inbox by a body of JSON-LD, in its order. `base` is the URL that answered.
pub fn contained(body: &Value, inbox: &Url, base: &Url) -> Vec<Url> {
    let document = Document::of(body);
    let nodes = document.nodes();
    let about = |id: Option<&str>| match id {
        Some(id) => base.join(id).is_ok_and(|url| url == *inbox || url == *base),
        None => nodes.len() == 1,
    };
    let mut found: Vec<Url> = Vec::new();
    for node in nodes.iter().filter(|node| about(node.id())) {
        let urls = node.values(CONTAINS).filter_map(|item: Item<'_>| base.join(item.name()?).ok());
        found.extend(urls.filter(|url| matches!(url.scheme(), "http" | "https")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn what_is_listed_is_read_back_and_in_the_forms_of_others_too() {
        let inbox = url("https://e.org/inbox/");
        let contains = vec![url("https://e.org/inbox/1"), url("https://e.org/inbox/2")];
        let listing = Listing {
            inbox: inbox.clone(),
            contains: contains.clone(),
            next: Some(url("https://e.org/inbox/?page=2")),
            constrained_by: url("https://e.org/constraints"),
        };
        for body in [
            listing.to_json(),
            json!({"@context": "http://www.w3.org/ns/ldp", "@id": "https://e.org/inbox/", "contains": ["/inbox/1", "2"]}),
            json!([{"@id": "", CONTAINS: [{"@id": "1"}, {"@id": "2"}]}, {"@id": "1", "@type": "urn:x"}]),
            json!({"@graph": [{"@id": "https://e.org/inbox/", CONTAINS: [{"@id": "1"}, {"@id": "2"}]}]}),
        ] {
            assert_eq!(contained(&body, &inbox, &inbox), contains, "{body}");
        }
        let other = json!({"@id": "https://e.org/other", CONTAINS: [{"@id": "1"}]});
        assert_eq!(contained(&other, &inbox, &inbox), []);
    }
}
