//! Media types that an inbox accepts as JSON-LD.

/// The media type of JSON-LD (LDN-2).
pub const JSON_LD: &str = "application/ld+json";

/// The `Accept` of a request for a page that may name its inbox: JSON-LD first, and Turtle.
pub const PAGE_ACCEPT: &str = "application/ld+json, text/turtle;q=0.5";

/// An inbox's `Accept-Post`: JSON-LD first, and its other media types.
pub const ACCEPT_POST: &str = "application/ld+json, application/activity+json, application/json";

/// Whether a body of this `Content-Type` is parsed as JSON-LD. Parameters (`profile`, `charset`) are ignored
/// (LDN-2).
pub fn is_json_ld(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    ACCEPT_POST.split(", ").any(|known| known.eq_ignore_ascii_case(essence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_ld_is_known_by_any_of_its_names_and_with_any_profile() {
        for known in [
            "application/ld+json",
            "Application/LD+JSON",
            "application/ld+json; profile=\"https://www.w3.org/ns/activitystreams\"",
            "application/ld+json;charset=utf-8",
            "application/activity+json",
            "application/json",
        ] {
            assert!(is_json_ld(known), "{known}");
        }
        for other in
            ["", "text/turtle", "text/html", "application/ld", "application/ld+jsonx", "; application/json"]
        {
            assert!(!is_json_ld(other), "{other}");
        }
    }
}
