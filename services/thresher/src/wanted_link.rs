//! A link that listed resources must have: `ls --link`.

use std::str::FromStr;

use model::Links;

/// A relation, and perhaps a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedLink {
    rel: String,
    href: Option<String>,
}

impl FromStr for WantedLink {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A relation may be a URI, and only a target behind it begins with a scheme again.
        let (rel, href) = match text.split_once('=') {
            Some((rel, href)) if !rel.contains("://") || href.contains("://") => (rel, Some(href)),
            _ => (text, None),
        };
        if rel.is_empty() || href == Some("") {
            return Err(
                "pass a relation (describedby), or a relation and its target (collection=https://example.org/c)",
            );
        }
        Ok(Self { rel: rel.to_owned(), href: href.map(str::to_owned) })
    }
}

impl WantedLink {
    /// Whether it is among the links of a resource.
    pub(crate) fn is_among(&self, links: Option<&Links>) -> bool {
        links.is_some_and(|links| {
            links
                .to_vec()
                .iter()
                .any(|link| link.rel == self.rel && self.href.as_ref().is_none_or(|href| *href == link.href))
        })
    }
}

#[cfg(test)]
mod tests {
    use resourcesync::Link;

    use super::*;

    #[test]
    fn a_relation_is_asked_for_with_or_without_a_target() {
        let links =
            Links::of(&[Link::new("collection", "http://h/c?a=b"), Link::new("http://t/r", "http://h/x")]);
        for (text, is_among) in [
            ("collection", true),
            ("collection=http://h/c?a=b", true),
            ("collection=http://h/c", false),
            ("via", false),
            ("http://t/r", true),
            ("http://t/r=http://h/x", true),
            ("http://t/r=http://h/y", false),
        ] {
            let wanted: WantedLink = text.parse().unwrap();
            assert_eq!(wanted.is_among(links.as_ref()), is_among, "{text}");
            assert!(!wanted.is_among(None));
        }
        for text in ["", "=http://h/x", "via="] {
            assert!(text.parse::<WantedLink>().is_err(), "{text}");
        }
    }
}
