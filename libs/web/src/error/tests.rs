use super::*;
use crate::error_kind::{ConnectFault, Phase};

fn error(kind: ErrorKind) -> WebError {
    let url = "https://me:word@example.org:8443/a?id=1&token=t".parse().unwrap();
    WebError::new(kind).on(&way(url, &[]))
}

fn way(url: Url, redirects: &[Url]) -> Way {
    Way { url, moved: None, redirects: redirects.to_vec(), requests: 1 }
}

fn again(kind: ErrorKind) -> bool {
    error(kind).disposition() != Disposition::Refuse
}

#[test]
fn passing_troubles_are_tried_again() {
    use ErrorKind::{Connect, CoolingDown, Dns, Interrupted, Timeout, TooSlow};
    for kind in [
        Dns,
        Connect(ConnectFault::Refused),
        Connect(ConnectFault::Unreachable),
        Timeout(Phase::Connect),
        Timeout(Phase::FirstByte),
        Timeout(Phase::Body),
        Interrupted,
        TooSlow,
        CoolingDown,
    ] {
        assert!(again(kind), "{kind:?}");
    }
    for status in [408, 425, 429, 500, 502, 503, 504, 507, 522] {
        assert!(again(ErrorKind::Status(status)), "{status}");
    }
}

#[test]
fn what_would_end_the_same_way_is_refused() {
    use ErrorKind::{
        BadRedirect, BadUrl, Builder, Disallowed, RedirectLoop, RefusedAddress, RefusedPort,
        RobotsUnreachable, Tls, TooLarge, TooManyRedirects, Unasked,
    };
    let certificate = Tls { certificate: true };
    for kind in [
        certificate,
        Tls { certificate: false },
        Unasked(304),
        TooLarge,
        TooManyRedirects,
        RedirectLoop,
        BadRedirect,
        BadUrl,
        RefusedAddress,
        RefusedPort,
        Disallowed,
        RobotsUnreachable,
        Builder,
    ] {
        assert!(!again(kind), "{kind:?}");
    }
    for status in [300, 305, 400, 401, 403, 404, 410, 416, 418, 451, 501, 505] {
        assert!(!again(ErrorKind::Status(status)), "{status}");
    }
}

#[test]
fn reasons_follow_the_kind_and_the_servers_wish() {
    let reason = |kind| error(kind).reason();
    for (status, expected) in [
        (404, ProblemReason::HttpClientError),
        (429, ProblemReason::Throttled),
        (500, ProblemReason::HttpServerError),
        (503, ProblemReason::HttpServerError),
        (300, ProblemReason::HttpUnexpected),
    ] {
        assert_eq!(reason(ErrorKind::Status(status)), expected, "{status}");
    }
    let busy = error(ErrorKind::Status(503)).retry_after(Some(Duration::from_secs(7)));
    assert_eq!(busy.reason(), ProblemReason::Throttled);
    assert_eq!(busy.disposition(), Disposition::Retry { after: Some(SignedDuration::from_secs(7)) });
    assert_eq!(reason(ErrorKind::BadUrl), ProblemReason::BadUri);
    assert_eq!(reason(ErrorKind::RedirectLoop), ProblemReason::Redirect);
}

#[test]
fn only_a_challenge_is_tried_again_when_the_origin_has_had_its_rest() {
    let walled = |wall| error(ErrorKind::Walled(wall)).retry_after(Some(Duration::from_secs(3_600)));
    let challenge = walled(Wall::Challenge("Anubis")).sent_as("thresher/1").to_failure();
    assert_eq!(challenge.reason, ProblemReason::Challenged);
    let hour = Some(SignedDuration::from_secs(3_600));
    assert_eq!(challenge.disposition, Disposition::Retry { after: hour });
    assert_eq!(challenge.evidence.user_agent.as_deref(), Some("thresher/1"));
    for (wall, reason) in
        [(Wall::Refusal("F5"), ProblemReason::Challenged), (Wall::Login, ProblemReason::LoginPage)]
    {
        let failure = walled(wall).to_failure();
        assert_eq!((failure.reason, failure.disposition), (reason, Disposition::Refuse), "{wall:?}");
    }
}

#[test]
fn the_text_says_what_where_and_what_to_do_without_secrets() {
    assert_eq!(
        error(ErrorKind::Status(404)).to_string(),
        "example.org:8443 answered 404 Not Found; asked for https://example.org:8443/a?id=1&token=***; \
         check the URL; if a list names it, the list is out of date: tell the Source's operator"
    );
    let dns = error(ErrorKind::Dns).detail("Name or service not known").to_string();
    assert!(
        dns.starts_with("the host name example.org has no address (Name or service not known); "),
        "{dns}"
    );
    let refused = error(ErrorKind::Connect(ConnectFault::Refused)).to_string();
    assert!(refused.starts_with("example.org:8443 refuses connections; "), "{refused}");
    let unreachable = error(ErrorKind::Connect(ConnectFault::Unreachable)).to_string();
    assert!(unreachable.starts_with("no way leads to example.org:8443 from here; "), "{unreachable}");
}

#[test]
fn a_redirected_failure_names_both_urls_and_keeps_the_evidence() {
    let url: Url = "http://example.org/a?token=t".parse().unwrap();
    let at = "http://other.org/b?sig=1".parse().unwrap();
    let way = Way { moved: Some(at), ..way(url.clone(), &[url]) };
    let failure = WebError::new(ErrorKind::Status(410)).on(&way).into_failure();
    assert!(
        failure
            .message
            .contains("asked for http://other.org/b?sig=***, where http://example.org/a?token=*** had led"),
        "{}",
        failure.message
    );
    assert_eq!(failure.evidence.final_url.as_deref(), Some("http://other.org/b?sig=***"));
    assert_eq!(failure.evidence.redirects, ["http://example.org/a?token=***"]);
    assert_eq!(failure.evidence.status, Some(410));
    assert_eq!(failure.disposition, Disposition::Refuse);
}

#[test]
fn who_is_not_let_in_is_told_what_to_give_and_who_was_sent_away_with_it_to_check_it() {
    for status in [401, 403, 407] {
        let text = error(ErrorKind::Status(status)).to_string();
        assert!(text.contains(&status.to_string()) && text.contains("in a --credentials file"), "{text}");
        assert!(!text.contains("was sent"), "{text}");
        let text = error(ErrorKind::Status(status)).authorized(true).to_string();
        assert!(text.contains("though the credential for it was sent"), "{text}");
        assert!(text.contains("check what the --credentials file gives"), "{text}");
    }
    let odd = error(ErrorKind::Status(500)).authorized(true);
    let text = odd.to_string();
    assert!(
        text.contains("answered 500 Internal Server Error, though the credential for it was sent"),
        "{text}"
    );
    assert!(text.contains("check the credential"), "{text}");
    assert_eq!(odd.status(), Some(500));
    let text = error(ErrorKind::Status(404)).authorized(true).to_string();
    assert!(!text.contains("credential"), "{text}");
}
