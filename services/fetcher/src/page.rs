//! Detects pages that were served in place of a resource.

use fixity::Computed;
use model::{Disposition, Evidence, Failure, FetchItem, ProblemReason};
use web::{Client, Response};

/// Media types that give no information.
const VAGUE: [&str; 4] = ["application/octet-stream", "binary/octet-stream", "application/x-download", "*/*"];

/// Why a complete body is not the content, if so. Either a bot defence or a login form answered, or an HTML page came
/// although another type was declared or stored before. Bytes that match a declared digest are always the content.
pub(crate) fn in_the_place_of(
    item: &FetchItem,
    response: &Response,
    computed: &Computed,
    accepts_html: bool,
    client: &Client,
) -> Option<Failure> {
    let declared = &item.declaration;
    let is_declared = |digest: &fixity::Digest| computed.get(digest.algorithm()) == Some(digest);
    if declared.digests.iter().any(is_declared) {
        return None;
    }
    if let Some(wall) = response.wall() {
        return Some(response.walled(wall, client).into_failure());
    }
    let expected = declared.media_type.as_deref().or(item.held_type.as_deref())?;
    let has_length = declared.digests.is_empty() && declared.length == Some(computed.length());
    let is_meant = accepts_html || has_length || !says_no_html(expected);
    (response.is_html() && !is_meant).then(|| unexpected(response, expected, client))
}

/// Whether a media type excludes HTML.
pub(crate) fn says_no_html(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_html = matches!(essence.as_str(), "text/html" | "application/xhtml+xml");
    essence.contains('/') && !is_html && !VAGUE.contains(&essence.as_str())
}

/// Failure for an HTML page where `expected` was declared or stored before.
pub(crate) fn unexpected(response: &Response, expected: &str, client: &Client) -> Failure {
    let at = secrets::redacted(response.final_url());
    Failure {
        reason: ProblemReason::UnexpectedHtml,
        message: format!(
            "{at} answered with an HTML page, and {expected} was declared or held before; open it in a browser: if HTML \
             is meant, give --accept-html, else tell the Source's operator"
        ),
        disposition: Disposition::Refuse,
        evidence: Evidence {
            final_url: Some(at),
            user_agent: Some(client.user_agent()),
            expected: Some(expected.to_owned()),
            ..response.evidence()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_certainly_is_another_type_speaks_against_a_page() {
        for (media_type, is_other) in [
            ("application/pdf", true),
            ("Text/Plain; charset=utf-8", true),
            ("text/html; charset=utf-8", false),
            ("application/xhtml+xml", false),
            ("application/octet-stream", false),
            ("pdf", false),
            ("", false),
        ] {
            assert_eq!(says_no_html(media_type), is_other, "{media_type}");
        }
    }
}
