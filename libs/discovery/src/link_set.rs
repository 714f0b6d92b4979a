//! Requests link sets (RFC 9264).

use links::linkset::{self, Format};
use links::{Fault, Limits, Links};
use url::Url;
use web::{Client, GetRequest, RequestPurpose, Response, WebError};

use crate::link_set_memory::{HeldMemory, SMALL};

/// The forms of a link set, the best one first.
const ACCEPT: &str = "application/linkset+json, application/linkset;q=0.9, application/json;q=0.5";

/// Why a link set was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetError {
    /// It is large, and another page holds the memory for large ones.
    #[error("another page holds the memory for large link sets")]
    NoMemory,
    /// It was not received.
    #[error(transparent)]
    Web(#[from] WebError),
    /// As the text says.
    #[error("{0}")]
    Unreadable(String),
}

/// Requests a link set. A server that refuses the media types is asked once more for any.
pub(crate) async fn request_set(
    client: &Client,
    set: &Url,
    declared: Option<&str>,
    errand: RequestPurpose,
    memory: &mut HeldMemory,
) -> (u64, Result<(Url, Links), SetError>) {
    let request = |accept: &'static str| GetRequest {
        accept: Some(accept.into()),
        errand,
        largest: Some(Limits::BODY.bytes as u64),
        ..GetRequest::new(set.clone())
    };
    let mut requests = 0;
    let mut accept = ACCEPT;
    loop {
        let mut response = match client.get_with_retries(request(accept)).await {
            Ok(response) => response,
            Err(error) => {
                requests += u64::from(error.requests());
                if error.status() == Some(406) && accept == ACCEPT {
                    accept = "*/*";
                    continue;
                }
                return (requests, Err(error.into()));
            }
        };
        requests += u64::from(response.requests());
        let at = response.final_url().clone();
        let read = read_set(&mut response, declared, memory).await;
        drop(response);
        let mut links = match read {
            Ok(links) => links,
            // At most once: the page then has the memory.
            Err(SetError::NoMemory) => {
                memory.grow().await;
                continue;
            }
            Err(error) => return (requests, Err(error)),
        };
        if accept != ACCEPT {
            links.faults.add(Fault::NotAcceptable);
        }
        return (requests, Ok((at, links)));
    }
}

/// Reads a response as a link set. `declared` is the media type that the page says it has.
pub(crate) async fn read_set(
    response: &mut Response,
    declared: Option<&str>,
    memory: &mut HeldMemory,
) -> Result<Links, SetError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let bytes = body.len() + chunk.len();
        if bytes > Limits::BODY.bytes {
            let why = format!("it has more than {} bytes", Limits::BODY.bytes);
            return Err(SetError::Unreadable(why));
        }
        if bytes > SMALL && !memory.try_grow() {
            return Err(SetError::NoMemory);
        }
        body.extend_from_slice(&chunk);
    }
    let sent = response.media_type().and_then(|said| Format::of(&said));
    parse_set(&body, sent, declared).map_err(SetError::Unreadable)
}

/// `sent` is the format by the response's media type, and whether that is a registered one.
fn parse_set(body: &[u8], sent: Option<(Format, bool)>, declared: Option<&str>) -> Result<Links, String> {
    // A wrong media type is no reason to lose the links, if the shape fits.
    let format = match (sent, declared.and_then(Format::of)) {
        (Some((format, _)), _) => format,
        (None, Some((format, _))) => format,
        (None, None) if body.trim_ascii_start().starts_with(b"{") => Format::Json,
        (None, None) => return Err("it is of no media type of link sets".to_owned()),
    };
    let mut links = linkset::read(body, format, &Limits::BODY).map_err(|error| error.to_string())?;
    if !sent.is_some_and(|(_, is_registered)| is_registered) {
        links.faults.add(Fault::OddMediaType);
    }
    Ok(links)
}
