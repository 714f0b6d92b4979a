//! The `Link` headers of topics, publishers and hubs (CN-4, CN-6; WebSub, 4).

use ::links::header;
use url::Url;

/// The most hubs of a topic that are read.
const MOST_HUBS: usize = 8;

/// The topic and hubs in `Link` headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    /// The topic, `rel="self"`: the first if there are several.
    pub topic: Option<String>,
    /// Its hubs, `rel="hub"`, in their order; the first few.
    pub hubs: Vec<Url>,
}

impl Links {
    /// Parses the `Link` headers of the response at `base`. The topic is returned as written, and resolved if
    /// it is relative. Hubs that are no `http` or `https` URLs are left out.
    pub fn parse<'a>(headers: impl IntoIterator<Item = &'a str>, base: &Url) -> Self {
        let mut links = Self::default();
        for link in headers.into_iter().flat_map(header::parse) {
            // A link with an anchor concerns another resource (RFC 8288, 3.2).
            if link.anchor.is_some() {
                continue;
            }
            if link.is("self") && links.topic.is_none() {
                let is_absolute = Url::parse(&link.target).is_ok();
                let resolved = || base.join(&link.target).ok().map(String::from);
                links.topic = if is_absolute { Some(link.target.clone()) } else { resolved() };
            }
            if link.is("hub")
                && links.hubs.len() < MOST_HUBS
                && let Ok(hub) = base.join(&link.target)
                && matches!(hub.scheme(), "http" | "https")
                && !links.hubs.contains(&hub)
            {
                links.hubs.push(hub);
            }
        }
        links
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn base() -> Url {
        "http://example.com/dataset1/change/".parse().unwrap()
    }

    #[test]
    fn the_specifications_own_example_is_read() {
        let header = "<http://example.com/dataset1/change/> ; rel=\"self\", <http://hub.example.org/websub/> ; rel=\"hub\", \
                      <http://www.example.com/dataset1/capabilitylist.xml> ; rel=\"resourcesync\"";
        let links = Links::parse([header], &base());
        assert_eq!(links.topic.as_deref(), Some("http://example.com/dataset1/change/"));
        assert_eq!(links.hubs, ["http://hub.example.org/websub/".parse().unwrap()]);
    }

    #[test]
    fn several_headers_relative_links_and_links_of_others_are_told_apart() {
        let headers = [
            "</hub>; rel=hub, <ftp://h/>; rel=hub, </hub>; rel=HUB",
            "<../change2/>; rel=self, <http://late/>; rel=self",
            "<http://evil/>; rel=hub; anchor=\"http://other/\"",
        ];
        let links = Links::parse(headers, &base());
        assert_eq!(links.topic.as_deref(), Some("http://example.com/dataset1/change2/"));
        assert_eq!(links.hubs, ["http://example.com/hub".parse().unwrap()]);
        assert_eq!(Links::parse([], &base()), Links::default());
    }

    #[test]
    fn a_topic_that_names_very_many_hubs_is_not_heard_out() {
        let header: Vec<_> = (0..100).map(|n| format!("<http://hub{n}/>; rel=hub")).collect();
        assert_eq!(Links::parse([header.join(",").as_str()], &base()).hubs.len(), MOST_HUBS);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_text_is_read_without_panic(text in "[<>;,=\"\\\\ :/a-z]{0,60}|.{0,60}") {
            prop_assert!(Links::parse([text.as_str()], &base()).hubs.len() <= MOST_HUBS);
        }
    }
}
