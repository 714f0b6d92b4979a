//! Removes secrets from URIs before they are shown to others.

use url::Url;

/// A URI as it is written, without credentials.
pub(crate) fn uri(written: &str) -> String {
    match Url::parse(written) {
        Ok(url) => {
            let redacted = secrets::redacted(&url);
            if redacted == url.as_str() { written.to_owned() } else { redacted }
        }
        Err(_) => written.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn credentials_are_left_out_and_nothing_else_is_changed() {
        assert_eq!(uri("https://me:word@example.org/a"), "https://example.org/a");
        assert_eq!(uri("https://example.org/a?token=abc#3:7"), "https://example.org/a?token=***#3:7");
        assert_eq!(uri("HTTP://example.org/é b"), "HTTP://example.org/é b");
        assert_eq!(uri("no uri"), "no uri");
    }
}
