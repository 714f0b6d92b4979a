//! Texts of errors: what happened, and what to do.

use std::time::Duration;

use url::{Position, Url};

use crate::error_kind::{ConnectFault, ErrorKind, Phase};
use crate::wall::Wall;

/// What happened at `place`.
pub(crate) fn what(kind: ErrorKind, place: Option<&Url>, retry_after: Option<Duration>) -> String {
    let host = place.and_then(Url::host_str).unwrap_or("the host");
    let server = place.and_then(authority).unwrap_or_else(|| host.to_owned());
    match kind {
        ErrorKind::Dns => format!("the host name {host} has no address"),
        ErrorKind::Connect(ConnectFault::Refused) => format!("{server} refuses connections"),
        ErrorKind::Connect(ConnectFault::Unreachable) => format!("no way leads to {server} from here"),
        ErrorKind::Connect(ConnectFault::Other) => format!("no connection to {server}"),
        ErrorKind::Tls { certificate: true } => format!("the certificate of {server} is not accepted"),
        ErrorKind::Tls { certificate: false } => format!("no secure connection to {server}"),
        ErrorKind::Timeout(Phase::Connect) => format!("{server} did not take the connection in time"),
        ErrorKind::Timeout(Phase::FirstByte) => format!("{server} did not answer in time"),
        ErrorKind::Timeout(Phase::Body) => format!("the answer of {server} came to a standstill"),
        ErrorKind::Status(status) => {
            let wait = retry_after.map(|wait| format!(", asking for {} s of patience", wait.as_secs()));
            format!("{server} answered {}{}", status_line(status), wait.unwrap_or_default())
        }
        ErrorKind::Unasked(304) => {
            format!("{server} answered 304 Not Modified to a request without a condition")
        }
        ErrorKind::Unasked(status) => {
            format!("{server} answered {} with a part that was not asked for", status_line(status))
        }
        ErrorKind::Walled(Wall::Challenge(defence)) => {
            format!(
                "{server} answered with a challenge of its bot defence ({defence}) instead of the content"
            )
        }
        ErrorKind::Walled(Wall::Refusal(defence)) => {
            format!("the bot defence of {server} ({defence}) refused the request")
        }
        ErrorKind::Walled(Wall::Login) => {
            format!("{server} answered with a form to log in instead of the content")
        }
        ErrorKind::Interrupted => format!("the answer of {server} broke off"),
        ErrorKind::TooLarge => format!("the answer of {server} is larger than allowed"),
        ErrorKind::TooSlow => format!("the answer of {server} comes too slowly"),
        ErrorKind::TooManyRedirects => "the request was sent on too often".to_owned(),
        ErrorKind::RedirectLoop => "the request was sent round in a circle".to_owned(),
        ErrorKind::BadRedirect => format!("{server} sends the request on to nowhere"),
        ErrorKind::BadUrl => "the URL cannot be requested".to_owned(),
        ErrorKind::CoolingDown => {
            let left = retry_after.unwrap_or_default().as_secs();
            format!("{server} requested a cooldown that lasts another {left} s; no request was made")
        }
        ErrorKind::RefusedAddress => {
            format!("{server} resolves to a private or reserved address, which is blocked")
        }
        ErrorKind::RefusedPort => {
            format!("the port of {server} is one of another service, which browsers refuse too")
        }
        ErrorKind::Disallowed => format!("the robots.txt of {server} disallows it"),
        ErrorKind::RobotsUnreachable => {
            format!("the robots.txt of {server} cannot be read, so what it allows is unknown")
        }
        ErrorKind::Builder => "the HTTP client cannot be set up".to_owned(),
    }
}

/// What to do about it; `authorized` if a credential was sent.
pub(crate) fn advice(kind: ErrorKind, authorized: bool) -> &'static str {
    match kind {
        ErrorKind::Dns => "check the spelling of the host, and that this machine resolves names",
        ErrorKind::Connect(ConnectFault::Refused) => {
            "check the port; if it is right, the server is down: try again later"
        }
        ErrorKind::Connect(ConnectFault::Unreachable) => {
            "check this machine's network, its routes and any firewall"
        }
        ErrorKind::Connect(ConnectFault::Other) => "try again later; if it stays so, check the network",
        ErrorKind::Tls { certificate: true } => {
            "check this machine's clock and trusted roots; else the Source's operator must renew it"
        }
        ErrorKind::Tls { certificate: false } => {
            "check that the port speaks TLS 1.2 or later, and not plain HTTP"
        }
        ErrorKind::Timeout(_) => {
            "try again later, or allow more time (--connect-timeout, --timeout, --stall-timeout)"
        }
        ErrorKind::Status(401 | 403 | 407) if authorized => {
            "check what the --credentials file gives for this origin, and ask the Source's operator what it lets you in to"
        }
        ErrorKind::Status(401 | 403 | 407) | ErrorKind::Walled(Wall::Login) => {
            "ask the Source's operator for access, and name what you get for this origin in a --credentials file"
        }
        // Some Sources answer a bad token with 500.
        ErrorKind::Status(500) if authorized => {
            "check the credential, which some Sources answer so when it is wrong; else try again later"
        }
        ErrorKind::Status(404 | 410) => {
            "check the URL; if a list names it, the list is out of date: tell the Source's operator"
        }
        ErrorKind::Status(429) | ErrorKind::CoolingDown => {
            "try again after that time, with fewer requests at once (--concurrency) or in a second (--max-rate)"
        }
        ErrorKind::Status(500) => {
            "try again later; if it stays so, check the credential for this origin, since some servers answer so to one they \
             do not accept; else tell the Source's operator"
        }
        ErrorKind::Status(408 | 425 | 502..=504) => {
            "try again later; if it stays so, tell the Source's operator"
        }
        ErrorKind::Status(_) | ErrorKind::Unasked(_) => {
            "open the URL in another client; tell the Source's operator what it answers"
        }
        ErrorKind::Walled(Wall::Challenge(_)) => {
            "the origin has a cooldown; send the Source's operator what `thresher report` drafts, and run again \
             when they let this harvester in"
        }
        ErrorKind::Walled(Wall::Refusal(_)) => {
            "send the Source's operator what `thresher report` drafts, and run again when they let this harvester in"
        }
        ErrorKind::Interrupted => "try again; if it always breaks off there, tell the Source's operator",
        ErrorKind::TooLarge => {
            "if that much is wanted, raise the limit (--max-size; in a fleet also fetcher.jobs.max_body_bytes)"
        }
        ErrorKind::TooSlow => {
            "try again later, or be content with less (--min-speed) or a longer time (--body-timeout)"
        }
        ErrorKind::TooManyRedirects | ErrorKind::RedirectLoop | ErrorKind::BadRedirect => {
            "check the URL; if a list names it, tell the Source's operator"
        }
        ErrorKind::BadUrl => "give an absolute http or https URL with a host",
        ErrorKind::RefusedAddress => {
            "if that host is meant, give it as the Source's entry URL, or allow its address with --allow-address (all \
             private ones with --allow-private; in a fleet, name it in allow_networks); else tell the Source's operator \
             what the Source points to"
        }
        ErrorKind::RefusedPort => {
            "if that server is meant, give its URL as the Source's entry; else tell the Source's operator what the Source \
             points to"
        }
        ErrorKind::Disallowed => {
            "ask the Source's operator to allow it, or, if you were invited to it, give its URL itself or --robots ignore"
        }
        ErrorKind::RobotsUnreachable => {
            "run again later, when it may be there; or, if you were invited, give --robots ignore"
        }
        ErrorKind::Builder => "correct the configuration",
    }
}

fn status_line(status: u16) -> String {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    match reason {
        Some(reason) => format!("{status} {reason}"),
        None => format!("status {status}"),
    }
}

/// Host and port, the port only where it is not the scheme's own.
fn authority(url: &Url) -> Option<String> {
    url.host_str()?;
    Some(url[Position::BeforeHost..Position::AfterPort].to_owned())
}
