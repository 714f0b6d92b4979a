//! Login forms that a redirect leads to.

use url::Url;

/// Path segments of login forms, without anything behind a dot or a semicolon.
const SEGMENTS: [&str; 14] = [
    "login",
    "log-in",
    "logon",
    "signin",
    "sign-in",
    "sign_in",
    "sso",
    "saml",
    "saml2",
    "shibboleth",
    "idp",
    "wayf",
    "password-login",
    "user-login",
];

/// Whether a page, in lower case, is a login form and not the requested page.
pub(super) fn is_one(asked: &Url, at: &Url, page: &str) -> bool {
    if asked == at || leads_to_form(asked) {
        return false;
    }
    let has_password = || page.contains("type=\"password\"") || page.contains("type='password'");
    leads_to_form(at) || (asked.origin() != at.origin() && has_password())
}

fn leads_to_form(url: &Url) -> bool {
    let mut segments = url.path_segments().into_iter().flatten();
    segments.any(|segment| {
        let name = segment.split(['.', ';']).next().unwrap_or_default();
        SEGMENTS.iter().any(|known| name.eq_ignore_ascii_case(known))
    })
}
