//! URLs of inboxes, as clients see them.

use std::fmt::Display;
use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use control::NotificationId;
use model::SourceId;
use url::Url;

use crate::config::{InboxSettings, Settings};

/// Builds the URLs for the client of a request.
#[derive(Debug, Clone)]
pub(crate) struct InboxUrls {
    /// The base URL, with a trailing slash.
    base: Url,
}

impl InboxUrls {
    /// The base URL comes from the configuration, or else from the request's `Host`. Only the client of that request
    /// sees the result.
    pub(crate) fn of(inbox: &InboxSettings, listen: SocketAddr, headers: &HeaderMap) -> Self {
        let mut base = inbox.public_url.clone().or_else(|| named(headers)).unwrap_or_else(|| {
            Url::parse(&format!("http://{listen}/")).expect("an address and a port make a URL")
        });
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        base.set_query(None);
        base.set_fragment(None);
        Self { base }
    }

    /// The resource that has an inbox: a Source, or the collection of all.
    pub(crate) fn target(&self, source: Option<&SourceId>) -> Url {
        self.at(&source.map_or_else(|| "ldn".to_owned(), |source| format!("ldn/sources/{source}")))
    }

    /// The URL of an inbox.
    pub(crate) fn inbox(&self, source: Option<&SourceId>) -> Url {
        self.at(&source.map_or_else(|| "ldn/inbox".to_owned(), |source| format!("ldn/sources/{source}/inbox")))
    }

    /// The URL of a notification.
    pub(crate) fn notification(&self, source: Option<&SourceId>, id: &NotificationId) -> Url {
        let mut url = self.inbox(source);
        url.set_path(&format!("{}/{id}", url.path()));
        url
    }

    /// The URL of the constraints for notifications.
    pub(crate) fn constraints(&self) -> Url {
        self.at("ldn/constraints")
    }

    /// The header that advertises an inbox (LDN-1).
    pub(crate) fn advertise(&self, source: Option<&SourceId>) -> Option<(HeaderName, HeaderValue)> {
        link(self.inbox(source), ldn::terms::INBOX)
    }

    fn at(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        url
    }
}

/// The header that advertises the inbox of a Source. None where no inboxes are configured.
pub(crate) fn advertised(
    settings: &Settings,
    headers: &HeaderMap,
    source: &SourceId,
) -> Option<(HeaderName, HeaderValue)> {
    let inbox = settings.inbox.as_ref()?;
    InboxUrls::of(inbox, settings.listen, headers).advertise(Some(source))
}

/// A header `Link` with this target and relation.
pub(crate) fn link(target: impl Display, relation: &str) -> Option<(HeaderName, HeaderValue)> {
    Some((header::LINK, HeaderValue::try_from(format!("<{target}>; rel=\"{relation}\"")).ok()?))
}

/// This host, as a request names it.
pub(crate) fn named(headers: &HeaderMap) -> Option<Url> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST.as_str())?;
    let scheme = text("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
    let url = Url::parse(&format!("{scheme}://{host}/")).ok()?;
    // Accept only host and port. Nothing else may redirect the client.
    (url.path() == "/" && url.username().is_empty() && url.password().is_none() && url.query().is_none())
        .then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_taken_as_the_request_names_it_and_nothing_beside_it() {
        let named = |host: &'static str, proto: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            headers.extend(proto.map(|proto| {
                ("x-forwarded-proto".parse::<HeaderName>().unwrap(), HeaderValue::from_static(proto))
            }));
            named(&headers).map(String::from)
        };
        assert_eq!(named("e.org:8080", None).as_deref(), Some("http://e.org:8080/"));
        assert_eq!(named("e.org", Some("https")).as_deref(), Some("https://e.org/"));
        assert_eq!(named("e.org", Some("gopher")).as_deref(), Some("http://e.org/"));
        for wrong in ["", "a b", "u@e.org", "e.org/x", "e.org?x"] {
            assert_eq!(named(wrong, None), None, "{wrong}");
        }
    }

    #[test]
    fn places_lie_below_the_base_whatever_its_path() {
        let urls = |base: &str| InboxUrls { base: Url::parse(base).unwrap() };
        let source = "a-1".parse().unwrap();
        let urls = urls("https://e.org/harvest/");
        assert_eq!(urls.target(None).as_str(), "https://e.org/harvest/ldn");
        assert_eq!(urls.inbox(None).as_str(), "https://e.org/harvest/ldn/inbox");
        assert_eq!(urls.inbox(Some(&source)).as_str(), "https://e.org/harvest/ldn/sources/a-1/inbox");
        let id = "7-0a0a0a0a0a0a0a0a".parse().unwrap();
        let one = urls.notification(Some(&source), &id);
        assert_eq!(one.as_str(), "https://e.org/harvest/ldn/sources/a-1/inbox/7-0a0a0a0a0a0a0a0a");
    }
}
