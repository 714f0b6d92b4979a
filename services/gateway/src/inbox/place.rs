//! Where inboxes lie, as the world sees them.

use axum::http::{HeaderMap, header};
use control::NotificationId;
use model::SourceId;
use url::Url;

use super::Inbox;
use crate::state::Gateway;

/// Where all of it begins; the resource that has the inbox for all.
pub(super) const HOME: &str = "/ldn";

/// Where everything lies for whoever asks.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// With a slash at its end.
    base: Url,
}

impl Places {
    /// As the configuration says; else as the request names this host, which is told to nobody but whoever sent it.
    pub(super) fn of(inbox: &Inbox, gateway: &Gateway, headers: &HeaderMap) -> Self {
        let mut base = inbox.settings().public_url.clone().or_else(|| named(headers)).unwrap_or_else(|| {
            let listen = gateway.settings().listen;
            Url::parse(&format!("http://{listen}/")).expect("an address and a port make a URL")
        });
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        base.set_query(None);
        base.set_fragment(None);
        Self { base }
    }

    /// The resource that has an inbox: a Source, or all of it.
    pub(super) fn target(&self, source: Option<&SourceId>) -> Url {
        self.at(&source.map_or_else(|| "ldn".to_owned(), |source| format!("ldn/sources/{source}")))
    }

    /// An inbox.
    pub(super) fn inbox(&self, source: Option<&SourceId>) -> Url {
        self.at(&source.map_or_else(|| "ldn/inbox".to_owned(), |source| format!("ldn/sources/{source}/inbox")))
    }

    /// A notification.
    pub(super) fn notification(&self, source: Option<&SourceId>, id: &NotificationId) -> Url {
        let mut url = self.inbox(source);
        url.set_path(&format!("{}/{id}", url.path()));
        url
    }

    /// What notifications have to be like.
    pub(super) fn constraints(&self) -> Url {
        self.at("ldn/constraints")
    }

    fn at(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path()));
        url
    }
}

/// This host, as a request names it.
fn named(headers: &HeaderMap) -> Option<Url> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST.as_str())?;
    let scheme = text("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
    let url = Url::parse(&format!("{scheme}://{host}/")).ok()?;
    // Host and port alone, and nothing that could lead elsewhere.
    (url.path() == "/" && url.username().is_empty() && url.password().is_none() && url.query().is_none())
        .then_some(url)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_host_is_taken_as_the_request_names_it_and_nothing_beside_it() {
        let named = |host: &'static str, proto: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            headers.extend(proto.map(|proto| {
                ("x-forwarded-proto".parse::<header::HeaderName>().unwrap(), HeaderValue::from_static(proto))
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
        let places = |base: &str| Places { base: Url::parse(base).unwrap() };
        let source = "a-1".parse().unwrap();
        let places = places("https://e.org/harvest/");
        assert_eq!(places.target(None).as_str(), "https://e.org/harvest/ldn");
        assert_eq!(places.inbox(None).as_str(), "https://e.org/harvest/ldn/inbox");
        assert_eq!(places.inbox(Some(&source)).as_str(), "https://e.org/harvest/ldn/sources/a-1/inbox");
        let id = "7-0a0a0a0a0a0a0a0a".parse().unwrap();
        let one = places.notification(Some(&source), &id);
        assert_eq!(one.as_str(), "https://e.org/harvest/ldn/sources/a-1/inbox/7-0a0a0a0a0a0a0a0a");
    }
}
