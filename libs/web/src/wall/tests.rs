use std::fs;
use std::path::Path;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::*;

/// A recorded response: its status, its headers, and the body behind an empty line.
fn example(name: &str) -> (u16, HeaderMap, Bytes) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/walls").join(name);
    let text = fs::read_to_string(path).unwrap();
    let (head, body) = text.split_once("\n\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
    };
    (status, lines.map(header).collect(), Bytes::from(body.to_owned()))
}

fn look_at(name: &str, asked: &str, at: &str) -> Look {
    let (_, headers, body) = example(name);
    let asked = asked.parse().unwrap();
    let at = at.parse().unwrap();
    let seen = Seen { headers: &headers, asked: &asked, at: &at };
    let prefix = body.slice(..body.len().min(PREFIX));
    judge(&seen, &prefix, prefix.len() == body.len())
}

fn shown(name: &str) -> Look {
    look_at(name, "https://repository.example.org/1.pdf", "https://repository.example.org/1.pdf")
}

#[test]
fn each_example_is_known_for_what_it_is() {
    use Wall::{Challenge, Refusal};
    for (name, wall) in [
        ("cloudflare.http", Challenge("Cloudflare")),
        ("cloudflare-blocked.http", Refusal("Cloudflare")),
        ("aws-waf.http", Challenge("AWS WAF")),
        ("anubis.http", Challenge("Anubis")),
        ("hcaptcha.http", Challenge("hCaptcha")),
        ("turnstile.http", Challenge("Turnstile")),
        ("recaptcha.http", Challenge("reCAPTCHA")),
        ("akamai.http", Challenge("Akamai")),
        ("akamai-denied.http", Refusal("Akamai")),
        ("imperva.http", Challenge("Imperva")),
        ("ddos-guard.http", Challenge("DDoS-Guard")),
        ("f5.http", Challenge("F5")),
        ("f5-rejected.http", Refusal("F5")),
    ] {
        assert_eq!(shown(name).wall, Some(wall), "{name}");
    }
}

#[test]
fn pages_are_known_without_the_headers_of_their_defence_too() {
    for name in ["cloudflare.http", "aws-waf.http"] {
        let (_, _, body) = example(name);
        let page = String::from_utf8(body.to_vec()).unwrap().to_ascii_lowercase();
        assert!(rules::by_page(&page, true).is_some(), "{name}");
    }
}

#[test]
fn ordinary_pages_are_no_walls_whatever_a_defence_puts_into_them() {
    for name in ["ordinary.http", "ordinary-with-scripts.http"] {
        assert_eq!(shown(name), Look { wall: None, is_html: true }, "{name}");
    }
}

#[test]
fn a_form_to_log_in_is_one_where_a_redirect_leads_to_it() {
    let asked = "https://repository.example.org/1.pdf";
    let look = |at: &str| look_at("login.http", asked, at).wall;
    for at in [
        "https://repository.example.org/login?next=/1.pdf",
        "https://repository.example.org/user/Login.aspx",
        "https://idp.example.com/profile/saml2/redirect",
        "https://accounts.example.com/",
    ] {
        assert_eq!(look(at), Some(Wall::Login), "{at}");
    }
    for at in [asked, "https://repository.example.org/2.pdf", "https://repository.example.org/logins/2"] {
        assert_eq!(look(at), None, "{at}");
    }
    let itself = "https://repository.example.org/login";
    assert_eq!(look_at("login.http", itself, "https://repository.example.org/login/").wall, None);
    let landing = look_at("ordinary.http", asked, "https://publisher.example.com/article/1");
    assert_eq!(landing, Look { wall: None, is_html: true });
}

#[test]
fn what_only_is_called_a_page_is_none() {
    for bytes in [&b"%PDF-1.7"[..], b"PK\x03\x04", b"<?xml version=\"1.0\"?><urlset>", b"", b"plain words"] {
        assert!(!begins_as_html(bytes), "{bytes:?}");
    }
    for bytes in
        [&b"\xef\xbb\xbf \n<!DOCTYPE html>"[..], b"<HTML lang=en>", b"<?xml version=\"1.0\"?>\n<html>"]
    {
        assert!(begins_as_html(bytes), "{bytes:?}");
    }
}
