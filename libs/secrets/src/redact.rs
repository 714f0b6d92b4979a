//! URLs without their secrets.

use url::Url;

/// Words in names of query parameters whose values are secret.
const SECRET_WORDS: [&str; 9] =
    ["token", "secret", "password", "passwd", "signature", "credential", "apikey", "api_key", "api-key"];

/// The URL without its secrets: without user and password, and without the values of query parameters that
/// carry tokens, keys or signatures. Every URL in a log, message or record goes through here.
pub fn redacted(url: &Url) -> String {
    let mut shown = url.clone();
    // Both fail only for URLs that cannot have a user at all.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    if let Some(query) = url.query()
        && query.split('&').any(is_secret)
    {
        let pairs: Vec<_> = query
            .split('&')
            .map(|pair| if is_secret(pair) { hidden(pair) } else { pair.to_owned() })
            .collect();
        shown.set_query(Some(&pairs.join("&")));
    }
    shown.into()
}

fn is_secret(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default().to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word)) || matches!(name.as_str(), "key" | "sig" | "auth")
}

fn hidden(pair: &str) -> String {
    format!("{}=***", pair.split('=').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        redacted(&url.parse().unwrap())
    }

    #[test]
    fn user_and_password_are_left_out() {
        assert_eq!(shown("https://me:word@example.org/a"), "https://example.org/a");
    }

    #[test]
    fn secrets_in_the_query_are_hidden_and_the_rest_is_kept() {
        assert_eq!(
            shown("https://s3/a?X-Amz-Signature=abc&id=7&access_token=a=b&key=c&monkey=d"),
            "https://s3/a?X-Amz-Signature=***&id=7&access_token=***&key=***&monkey=d"
        );
    }

    #[test]
    fn urls_without_secrets_are_unchanged() {
        for url in ["http://example.org/a?b=c%20d&e#f", "http://[::1]:8080/", "mailto:a@b"] {
            assert_eq!(shown(url), url);
        }
    }
}
