//! Sites: whether two hosts have one owner, judged by their names.

use std::net::Ipv4Addr;

use url::Url;

/// The registrable domain of a host: its public suffix and the label before it (`example.co.uk` of
/// `a.b.example.co.uk`).
///
/// None for an address, for a name of one label such as `localhost`, and for a public suffix itself. Suffixes
/// under which providers give names to others (`github.io`) count as public. `host` is written as in a parsed
/// URL.
pub fn registrable_domain(host: &str) -> Option<&str> {
    let host = without_last_dot(host);
    if is_address(host) {
        return None;
    }
    psl::domain_str(host)
}

/// Whether both URLs belong to the same site: to the same host, or to hosts with the same registrable domain.
///
/// Scheme and port do not matter. URLs without a host belong to no site.
pub fn same_site(one: &Url, other: &Url) -> bool {
    match (one.host_str(), other.host_str()) {
        (Some(one), Some(other)) => same_site_hosts(one, other),
        _ => false,
    }
}

/// [`same_site`] of two hosts, each written as in a parsed URL.
pub fn same_site_hosts(one: &str, other: &str) -> bool {
    let one = without_last_dot(one);
    let other = without_last_dot(other);
    one == other || registrable_domain(one).is_some_and(|domain| registrable_domain(other) == Some(domain))
}

/// A full name's final dot is no part of it.
fn without_last_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &str, other: &str) -> bool {
        let (one, other): (Url, Url) = (one.parse().unwrap(), other.parse().unwrap());
        assert_eq!(same_site(&one, &other), same_site(&other, &one), "{one} {other}");
        same_site(&one, &other)
    }

    #[test]
    fn a_registrable_domain_is_the_public_suffix_and_one_label() {
        for (host, domain) in [
            ("example.org", Some("example.org")),
            ("www.example.org", Some("example.org")),
            ("a.b.example.co.uk", Some("example.co.uk")),
            ("a.example.org.", Some("example.org")),
            ("me.github.io", Some("me.github.io")),
            ("www.xn--bcher-kva.example", Some("xn--bcher-kva.example")),
            ("a.b.xn--55qx5d.cn", Some("b.xn--55qx5d.cn")),
            ("repository.intern", Some("repository.intern")),
            ("co.uk", None),
            ("org", None),
            ("localhost", None),
            ("127.0.0.1", None),
            ("[::1]", None),
            ("", None),
        ] {
            assert_eq!(registrable_domain(host), domain, "{host}");
        }
    }

    #[test]
    fn hosts_of_one_registrable_domain_are_one_site() {
        assert!(same("https://example.org/a", "http://www.example.org:8080/b"));
        assert!(same("https://a.example.co.uk/", "https://b.c.example.co.uk/"));
        assert!(same("https://EXAMPLE.org./", "https://example.org/"));
        assert!(same("https://www.bücher.example/", "https://xn--bcher-kva.example/"));
    }

    #[test]
    fn hosts_of_different_owners_are_different_sites() {
        for (one, other) in [
            ("https://example.org/", "https://example.com/"),
            ("https://one.co.uk/", "https://other.co.uk/"),
            ("https://one.github.io/", "https://other.github.io/"),
            ("https://co.uk/", "https://one.co.uk/"),
            ("https://example.org/", "https://badexample.org/"),
            ("https://example.org.evil.test/", "https://example.org/"),
            ("http://localhost/", "http://example.localhost/"),
            ("mailto:a@example.org", "mailto:a@example.org"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn an_address_or_a_single_label_is_a_site_by_itself_at_every_port() {
        for host in ["127.0.0.1", "[::1]", "localhost", "co.uk"] {
            assert!(same(&format!("http://{host}/"), &format!("https://{host}:8443/a")), "{host}");
        }
        for (one, other) in [
            ("http://127.0.0.1/", "http://127.0.0.2/"),
            ("http://10.1.0.1/", "http://10.2.0.1/"),
            ("http://[::1]/", "http://[::2]/"),
            ("http://127.0.0.1/", "http://localhost/"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }
}
