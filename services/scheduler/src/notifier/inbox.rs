//! Finds the inbox of a page (LDN-1), and reads responses of strangers.

use jiff::SignedDuration;
use ldn::{Limits, NoInbox, Unreadable};
use model::Disposition;
use serde_json::Value;
use url::Url;
use web::{Client, ErrorKind, GetRequest, Response, WebError};

/// Limits on reading a page that may name its inbox.
pub(crate) const PAGE: Limits = Limits { bytes: 1024 * 1024, depth: 40, members: 50_000 };

/// Why a notification could not be sent, or an inbox read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InboxError {
    #[error(transparent)]
    Web(#[from] WebError),
    #[error(
        "{0}: {1}; LDN asks for a Link header, JSON-LD or Turtle with the property http://www.w3.org/ns/ldp#inbox"
    )]
    NoInbox(Url, NoInbox),
    #[error("{0} cannot be read: {1}")]
    Unreadable(Url, Unreadable),
}

impl InboxError {
    /// Whether the other side understood and refused, or may not be requested: a retry would be useless.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Web(error) => {
                error.is_denial()
                    || matches!(
                        error.kind(),
                        ErrorKind::RefusedAddress | ErrorKind::RefusedPort | ErrorKind::BadUrl
                    )
            }
            Self::NoInbox(..) => true,
            // A page may be broken only today.
            Self::Unreadable(..) => false,
        }
    }

    /// Whether a later retry would fail too.
    pub(crate) fn is_lasting(&self) -> bool {
        let leads_away = matches!(self, Self::Web(error) if error.kind() == ErrorKind::BadRedirect);
        self.is_refusal() || leads_away || matches!(self, Self::Unreadable(..))
    }

    /// Cooldown that the other side requested, if any.
    pub(crate) fn patience(&self) -> Option<SignedDuration> {
        match self {
            Self::Web(error) => match error.disposition() {
                Disposition::Retry { after } => after,
                _ => None,
            },
            _ => None,
        }
    }
}

/// The inbox of a page. For a part of a page, named by a fragment, only the inbox in the body counts: a `Link` header
/// is about the whole page (LDN, 3.1).
///
/// # Errors
/// When it names none, or cannot be requested.
pub(crate) async fn find(client: &Client, page: &Url) -> Result<Url, InboxError> {
    if page.fragment().is_none()
        && let Some(inbox) = find_by_head(client, page).await?
    {
        return Ok(inbox);
    }
    let mut response = client
        .get(GetRequest { accept: Some(ldn::PAGE_ACCEPT.into()), ..GetRequest::new(page.clone()) })
        .await?;
    let found = match linked(&response, page) {
        Err(NoInbox::None) if is_json_ld(&response) => {
            let body = json(&mut response, &PAGE).await?;
            ldn::inbox_in_body(&body, page, response.final_url())
        }
        Err(NoInbox::None) if is_turtle(&response) => in_turtle(&mut response, page).await?,
        found => found,
    };
    found.map_err(|why| InboxError::NoInbox(page.clone(), why))
}

/// The inbox in the headers of a page's HEAD response; none if there is no inbox or no such response.
async fn find_by_head(client: &Client, page: &Url) -> Result<Option<Url>, InboxError> {
    match client
        .get(GetRequest { head: true, accept: Some(ldn::JSON_LD.into()), ..GetRequest::new(page.clone()) })
        .await
    {
        Ok(head) => match linked(&head, page) {
            Ok(inbox) => Ok(Some(inbox)),
            Err(NoInbox::None) => Ok(None),
            Err(several) => Err(InboxError::NoInbox(page.clone(), several)),
        },
        // Not every server knows HEAD.
        Err(error) if matches!(error.kind(), ErrorKind::Status(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The inbox that a response links to, for a page that was requested as a whole.
pub(crate) fn linked(response: &Response, page: &Url) -> Result<Url, NoInbox> {
    if page.fragment().is_some() {
        return Err(NoInbox::None);
    }
    ldn::inbox_in_links(response.header_values("link"), response.final_url())
}

/// Whether a response is JSON-LD.
pub(crate) fn is_json_ld(response: &Response) -> bool {
    response.media_type().is_some_and(|media_type| ldn::is_json_ld(&media_type))
}

/// Whether a response is Turtle.
pub(crate) fn is_turtle(response: &Response) -> bool {
    response.media_type().is_some_and(|media_type| ldn::is_turtle(&media_type))
}

/// The inbox of a page by its body of Turtle.
///
/// # Errors
/// When the body breaks off, or is no Turtle within the limits.
pub(crate) async fn in_turtle(
    response: &mut Response,
    page: &Url,
) -> Result<Result<Url, NoInbox>, InboxError> {
    let bytes = body(response, &PAGE).await?;
    let at = response.final_url();
    ldn::inbox_in_turtle(&bytes, page, at, &PAGE).map_err(|why| InboxError::Unreadable(at.clone(), why))
}

/// The body of a response as JSON, within the limits.
///
/// # Errors
/// When it breaks off, or is no JSON within the limits.
pub(crate) async fn json(response: &mut Response, limits: &Limits) -> Result<Value, InboxError> {
    let bytes = body(response, limits).await?;
    ldn::parse(&bytes, limits).map_err(|why| InboxError::Unreadable(response.final_url().clone(), why))
}

/// The same, as bytes.
pub(crate) async fn body(response: &mut Response, limits: &Limits) -> Result<Vec<u8>, InboxError> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if bytes.len() + piece.len() > limits.bytes {
            let too_large = Unreadable::TooLarge { bytes: bytes.len() + piece.len(), limit: limits.bytes };
            return Err(InboxError::Unreadable(response.final_url().clone(), too_large));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}
