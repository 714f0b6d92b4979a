//! The typed links of a landing page (Signposting): of its `Link` headers, its HTML, and its link sets.

use std::collections::BTreeMap;

use documents::BodyPrefix;
use links::landing::{Finding, Place, TypedLink, Union};
use links::linkset::{self, Format};
use links::{Fault, Faults, Limits, Links, header, html};
use url::Url;
use web::{Client, GetRequest, RequestPurpose, Response, WebError};

/// Maximum link sets of a page that are read.
const MOST_SETS: usize = 8;
/// Maximum bytes of a page that are examined.
const MOST_OF_A_PAGE: usize = 256 * 1024;
/// The forms of a link set, the best one first.
const ACCEPT: &str = "application/linkset+json, application/linkset;q=0.9, application/json;q=0.5";

/// What a landing page, or a link set, says.
#[derive(Debug, Clone)]
pub struct Landing {
    /// Its final URL.
    pub url: Url,
    /// The links about it and about what it names, in the order in which they were found.
    pub links: Vec<TypedLink>,
    /// Links about other resources, or beyond the limits.
    pub others: u64,
    /// Link sets that could not be read, and why.
    pub unread: Vec<(Url, String)>,
    /// Tolerated faults, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// What is wrong or missing.
    pub findings: Vec<Finding>,
    /// Requests made.
    pub requests: u64,
}

/// Reads the typed links of a page, and of the link sets that it names. A link set may be given as well; then all of
/// its links count.
///
/// # Errors
/// When the page cannot be requested. A link set that cannot be read is named in the result.
pub async fn landing(client: &Client, page: &Url) -> Result<Landing, WebError> {
    let mut response = client.get_with_retries(GetRequest::new(page.clone())).await?;
    let mut requests = u64::from(response.requests());
    let url = response.final_url().clone();
    let mut union = Union::new(url.clone());
    let mut faults = Faults::default();
    let mut unread = Vec::new();
    let headers = header::read(response.header_values("link"), &Limits::HEADER);
    faults.merge(&headers.faults);
    union.add(Place::Header, &url, &headers);
    let is_set = response.media_type().and_then(|said| Format::of(&said)).is_some();
    if is_set {
        match read_set(&mut response, None).await {
            Ok(links) => {
                faults.merge(&links.faults);
                union.add(Place::LinkSet, &url, &links);
            }
            Err(why) => unread.push((url.clone(), why)),
        }
    } else if response.is_html() {
        let head = html::scan(&beginning(&mut response).await?);
        faults.merge(&head.links.faults);
        let base = head.base.and_then(|base| url.join(&base).ok());
        union.add(Place::Head, base.as_ref().unwrap_or(&url), &head.links);
    }
    // An open response takes a permit of its origin.
    drop(response);
    let mut sets = union.link_sets();
    for (set, _) in sets.split_off(sets.len().min(MOST_SETS)) {
        unread.push((set, format!("at most {MOST_SETS} link sets of a page are read")));
    }
    for (set, declared) in sets {
        let (made, read) = request_set(client, &set, declared.as_deref()).await;
        requests += made;
        match read {
            Ok((at, links)) => {
                faults.merge(&links.faults);
                union.add(Place::LinkSet, &at, &links);
            }
            Err(why) => unread.push((set, why)),
        }
    }
    let links: Vec<_> = if is_set { union.links().to_vec() } else { union.counting().cloned().collect() };
    Ok(Landing {
        others: union.left_out() + (union.links().len() - links.len()) as u64,
        links,
        unread,
        faults: faults.iter().map(|(fault, times)| (fault.as_str(), times)).collect(),
        findings: if is_set { Vec::new() } else { union.findings().into_iter().collect() },
        requests,
        url,
    })
}

/// Requests a link set. A server that refuses the media types is asked once more for any.
async fn request_set(
    client: &Client,
    set: &Url,
    declared: Option<&str>,
) -> (u64, Result<(Url, Links), String>) {
    let request = |accept| GetRequest {
        accept: Some(accept),
        errand: RequestPurpose::Crawling,
        largest: Some(Limits::BODY.bytes as u64),
        ..GetRequest::new(set.clone())
    };
    let mut requests = 0;
    let mut found = client.get_with_retries(request(ACCEPT)).await;
    if let Err(error) = &found
        && error.status() == Some(406)
    {
        requests += u64::from(error.requests());
        found = client.get_with_retries(request("*/*")).await;
    }
    match found {
        Ok(mut response) => {
            requests += u64::from(response.requests());
            let at = response.final_url().clone();
            (requests, read_set(&mut response, declared).await.map(|links| (at, links)))
        }
        Err(error) => (requests + u64::from(error.requests()), Err(error.to_string())),
    }
}

/// Reads a response as a link set. `declared` is the media type that the page says it has.
async fn read_set(response: &mut Response, declared: Option<&str>) -> Result<Links, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        if body.len() + chunk.len() > Limits::BODY.bytes {
            return Err(format!("it has more than {} bytes", Limits::BODY.bytes));
        }
        body.extend_from_slice(&chunk);
    }
    let sent = response.media_type().and_then(|said| Format::of(&said));
    // A wrong media type is no reason to lose the links, if the shape fits.
    let format = match (sent, declared.and_then(Format::of)) {
        (Some((format, _)), _) => format,
        (None, Some((format, _))) => format,
        (None, None) if body.trim_ascii_start().starts_with(b"{") => Format::Json,
        (None, None) => return Err("it is of no media type of link sets".to_owned()),
    };
    let mut links = linkset::read(&body, format, &Limits::BODY).map_err(|error| error.to_string())?;
    if !sent.is_some_and(|(_, is_registered)| is_registered) {
        links.faults.add(Fault::OddMediaType);
    }
    Ok(links)
}

/// The beginning of a page.
async fn beginning(response: &mut Response) -> Result<String, WebError> {
    let mut prefix = BodyPrefix::default();
    while prefix.kept_bytes() < MOST_OF_A_PAGE {
        let Some(chunk) = response.chunk().await? else { break };
        prefix.add(&chunk);
    }
    Ok(prefix.text(MOST_OF_A_PAGE))
}
