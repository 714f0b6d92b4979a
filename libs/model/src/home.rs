//! The site of a Source's entry URL, and whether resources belong to it.

use url::Url;

use crate::same_site_hosts;

/// The site of a Source's entry. Listed resources of other sites are foreign: only those sites can vouch for
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeSite(String);

impl HomeSite {
    /// The site of a Source with this entry URL.
    pub fn of(entry: &Url) -> Self {
        Self(entry.host_str().unwrap_or_default().to_owned())
    }

    /// The same for an entry URL in text form. A text that is no URL has no site.
    pub fn of_text(entry: &str) -> Self {
        Url::parse(entry).map_or_else(|_| Self(String::new()), |entry| Self::of(&entry))
    }

    /// Whether a URI belongs to another site. A text that is no URL belongs to none.
    pub fn is_foreign(&self, uri: &str) -> bool {
        // Nearly all are of the very host, which is checked much faster than a URL is parsed.
        if usual_host(uri) == Some(self.0.as_str()) {
            return false;
        }
        let Ok(url) = Url::parse(uri) else { return false };
        !url.host_str().is_some_and(|host| same_site_hosts(&self.0, host))
    }
}

/// The host of a URI without user and password, as written.
fn usual_host(uri: &str) -> Option<&str> {
    let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
    let end = rest.bytes().position(|byte| matches!(byte, b'/' | b'?' | b'#' | b'\\' | b'@'));
    let (authority, next) = rest.split_at(end.unwrap_or(rest.len()));
    if next.starts_with('@') {
        return None;
    }
    Some(authority.split_once(':').map_or(authority, |(host, _port)| host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_another_registrable_domain_is_foreign() {
        let home = HomeSite::of_text("https://www.example.org:8443/list.xml");
        for uri in [
            "http://www.example.org/a",
            "https://www.example.org:1/a",
            "https://files.example.org/a",
            "https://EXAMPLE.org",
            "no url",
        ] {
            assert!(!home.is_foreign(uri), "{uri}");
        }
        for uri in [
            "https://example.com/",
            "https://www.example.org@evil.test/",
            "https://www.example.org:x@evil.test/",
            "https://www.example.org.evil.test/a",
            "http://127.0.0.1/",
        ] {
            assert!(home.is_foreign(uri), "{uri}");
        }
        assert!(HomeSite::of_text("no url").is_foreign("https://example.org/"));
    }

    #[test]
    fn an_address_is_a_site_by_itself_at_every_port() {
        let home = HomeSite::of_text("http://127.0.0.1:8080/list.xml");
        assert!(!home.is_foreign("http://127.0.0.1:9/a"));
        assert!(home.is_foreign("http://localhost:8080/a") && home.is_foreign("http://127.0.0.2:8080/a"));
    }
}
