//! Which hubs may receive a secret. Pure.

use control::SourceSpec;
use model::Push;
use url::{Host, Url};

/// Whether a request to a hub is confidential: over TLS, or within this machine. False for an invalid URL.
pub(crate) fn keeps_a_secret(hub: &str) -> bool {
    let Ok(url) = Url::parse(hub) else { return true };
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
}

/// Whether a Source may subscribe at a hub. A hub over plain HTTP gets no secret, so its deliveries are unsigned, and
/// the operator must allow that.
pub(crate) fn may_subscribe(source: &SourceSpec, hub: &str) -> bool {
    match source.push {
        Push::Auto => keeps_a_secret(hub),
        Push::Unsigned => true,
        Push::Off => false,
    }
}

#[cfg(test)]
mod tests {
    use control::Spec;

    use super::*;

    #[test]
    fn a_secret_goes_over_tls_or_stays_within_the_machine() {
        for good in
            ["https://hub.example/", "http://127.0.0.1:8080/", "http://[::1]/", "http://localhost/hub"]
        {
            assert!(keeps_a_secret(good), "{good}");
        }
        for bad in ["http://hub.example/", "http://10.0.0.1/", "http://localhost.example/"] {
            assert!(!keeps_a_secret(bad), "{bad}");
        }
    }

    #[test]
    fn a_hub_over_plain_http_is_asked_only_where_the_operator_admits_it() {
        let source =
            |push| SourceSpec::from(Spec { push, ..Spec::new("https://example.org/".parse().unwrap()) });
        let may = |push, hub| may_subscribe(&source(push), hub);
        assert!(may(Push::Auto, "https://hub.example/") && !may(Push::Auto, "http://hub.example/"));
        assert!(may(Push::Unsigned, "http://hub.example/"));
        assert!(!may(Push::Off, "https://hub.example/"));
    }
}
