//! The marks of bot defences: the one table of them.
//!
//! Marks are those of stand-alone pages. Defences also put scripts into ordinary pages, which must not be
//! mistaken for challenges.

use http::HeaderMap;

use super::Wall;

/// The marks of a defence's response.
struct Rule {
    wall: Wall,
    /// Headers that decide alone: a name, and a lower-case part of its value.
    headers: &'static [(&'static str, &'static str)],
    /// Lower-case texts of a page: all of one row decide.
    page: &'static [&'static [&'static str]],
    /// The same for a page that ends within the examined bytes: ordinary pages may hold these texts too.
    short_page: &'static [&'static [&'static str]],
}

const fn challenge(name: &'static str) -> Rule {
    Rule { wall: Wall::Challenge(name), headers: &[], page: &[], short_page: &[] }
}

const fn refusal(name: &'static str) -> Rule {
    Rule { wall: Wall::Refusal(name), headers: &[], page: &[], short_page: &[] }
}

/// The first matching rule wins.
const RULES: &[Rule] = &[
    Rule {
        headers: &[("cf-mitigated", "challenge")],
        page: &[
            &["_cf_chl_opt"],
            &["/cdn-cgi/challenge-platform/h/", "just a moment"],
            &["cf-browser-verification"],
        ],
        ..challenge("Cloudflare")
    },
    Rule {
        page: &[&["cf-error-details", "you have been blocked"], &["attention required! | cloudflare"]],
        ..refusal("Cloudflare")
    },
    Rule {
        headers: &[("x-amzn-waf-action", "challenge"), ("x-amzn-waf-action", "captcha")],
        page: &[&["gokuprops", "awswaf"], &["awswafcookiedomainlist", "challenge-container"]],
        ..challenge("AWS WAF")
    },
    Rule { page: &[&["/.within.website/x/cmd/anubis/"], &["anubis_challenge"]], ..challenge("Anubis") },
    Rule {
        page: &[&["sec-if-cpt-container"], &["/_sec/cp_challenge/"]],
        short_page: &[&["bm-verify", "http-equiv=\"refresh\""], &["triggerinterstitialchallenge"]],
        ..challenge("Akamai")
    },
    Rule {
        short_page: &[&["access denied", "errors.edgesuite.net"], &["access denied", "edgesuite&#46;net"]],
        ..refusal("Akamai")
    },
    Rule {
        page: &[&["incapsula incident id"], &["/_incapsula_resource?", "main-iframe"]],
        short_page: &[&["/_incapsula_resource?swjiylwa", "noindex"], &["pardon our interruption"]],
        ..challenge("Imperva")
    },
    Rule {
        page: &[&["/.well-known/ddos-guard/js-challenge"], &["<title>ddos-guard</title>"]],
        ..challenge("DDoS-Guard")
    },
    Rule {
        page: &[&["bobcmn", "/tspd/"]],
        short_page: &[&["/tspd/", "please enable javascript"]],
        ..challenge("F5")
    },
    Rule { short_page: &[&["the requested url was rejected", "support id"]], ..refusal("F5") },
    Rule { short_page: &[&["hcaptcha.com/1/api.js", "h-captcha", "human"]], ..challenge("hCaptcha") },
    Rule { short_page: &[&["hcaptcha.com/1/api.js", "h-captcha", "robot"]], ..challenge("hCaptcha") },
    Rule {
        short_page: &[
            &["challenges.cloudflare.com/turnstile/", "human"],
            &["challenges.cloudflare.com/turnstile/", "robot"],
            &["challenges.cloudflare.com/turnstile/", "verifying"],
        ],
        ..challenge("Turnstile")
    },
    Rule {
        short_page: &[
            &["/recaptcha/", "g-recaptcha", "not a robot"],
            &["/recaptcha/", "g-recaptcha", "unusual traffic"],
            &["/recaptcha/", "g-recaptcha", "you are human"],
        ],
        ..challenge("reCAPTCHA")
    },
];

/// The result of the headers alone.
pub(super) fn by_headers(headers: &HeaderMap) -> Option<Wall> {
    let holds = |(name, mark): &(&str, &str)| {
        let mut values = headers.get_all(*name).iter();
        values.any(|value| value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains(mark)))
    };
    RULES.iter().find(|rule| rule.headers.iter().any(holds)).map(|rule| rule.wall)
}

/// The result of a page's lower-case first bytes; `is_whole` if nothing follows.
pub(super) fn by_page(page: &str, is_whole: bool) -> Option<Wall> {
    let holds = |rows: &[&[&str]]| rows.iter().any(|row| row.iter().all(|mark| page.contains(mark)));
    let fits = |rule: &&Rule| holds(rule.page) || (is_whole && holds(rule.short_page));
    RULES.iter().find(fits).map(|rule| rule.wall)
}
