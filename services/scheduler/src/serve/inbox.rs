//! From a page to its inbox (LDN-1), and what is read of strangers there.

use jiff::SignedDuration;
use ldn::{Limits, NoInbox, Unreadable};
use model::Disposition;
use serde_json::Value;
use url::Url;
use web::{Client, ErrorKind, GetRequest, Response, WebError};

/// How much of a page that may tell of its inbox is read.
pub(super) const PAGE: Limits = Limits { bytes: 1024 * 1024, depth: 40, members: 50_000 };

/// Why others could not be told, or asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error(transparent)]
    Web(#[from] WebError),
    #[error(
        "{0}: {1}; LDN asks for a Link header or JSON-LD with the property http://www.w3.org/ns/ldp#inbox"
    )]
    NoInbox(Url, NoInbox),
    #[error("{0} cannot be read: {1}")]
    Unreadable(Url, Unreadable),
}

impl Trouble {
    /// Whether the other side has understood and said no, or is not to be asked: to do so again would be of no use.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Web(error) => {
                error.is_denial()
                    || matches!(
                        error.kind(),
                        ErrorKind::RefusedAddress | ErrorKind::RefusedPort | ErrorKind::BadUrl
                    )
            }
            Self::NoInbox(..) => true,
            // A page may be broken today.
            Self::Unreadable(..) => false,
        }
    }

    /// Whether it will be no better at another time.
    pub(super) fn is_lasting(&self) -> bool {
        let leads_away = matches!(self, Self::Web(error) if error.kind() == ErrorKind::BadRedirect);
        self.is_refusal() || leads_away || matches!(self, Self::Unreadable(..))
    }

    /// How long the other side asks to be left alone, where it does.
    pub(super) fn patience(&self) -> Option<SignedDuration> {
        match self {
            Self::Web(error) => match error.disposition() {
                Disposition::Retry { after } => after,
                _ => None,
            },
            _ => None,
        }
    }
}

/// The inbox of a page. A part of a page, named by a fragment, has the inbox that the body tells of: a `Link` header speaks of the whole
/// page (LDN, 3.1).
///
/// # Errors
/// When it tells of none, or cannot be asked.
pub(super) async fn find(client: &Client, page: &Url) -> Result<Url, Trouble> {
    if page.fragment().is_none()
        && let Some(inbox) = find_by_head(client, page).await?
    {
        return Ok(inbox);
    }
    let mut response =
        client.get(GetRequest { accept: Some(ldn::JSON_LD), ..GetRequest::new(page.clone()) }).await?;
    let found = match linked(&response, page) {
        Err(NoInbox::None) if is_json_ld(&response) => {
            let body = json(&mut response, &PAGE).await?;
            ldn::inbox_in_body(&body, page, response.final_url())
        }
        found => found,
    };
    found.map_err(|why| Trouble::NoInbox(page.clone(), why))
}

/// The inbox that the head of a page's answer links to; none where it does not, or there is no such answer.
async fn find_by_head(client: &Client, page: &Url) -> Result<Option<Url>, Trouble> {
    match client
        .get(GetRequest { head: true, accept: Some(ldn::JSON_LD), ..GetRequest::new(page.clone()) })
        .await
    {
        Ok(head) => match linked(&head, page) {
            Ok(inbox) => Ok(Some(inbox)),
            Err(NoInbox::None) => Ok(None),
            Err(several) => Err(Trouble::NoInbox(page.clone(), several)),
        },
        // Not every server knows HEAD.
        Err(error) if matches!(error.kind(), ErrorKind::Status(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The inbox that an answer links to, for a page that was asked for as a whole.
pub(super) fn linked(response: &Response, page: &Url) -> Result<Url, NoInbox> {
    if page.fragment().is_some() {
        return Err(NoInbox::None);
    }
    ldn::inbox_in_links(response.header_values("link"), response.final_url())
}

/// Whether an answer is JSON-LD.
pub(super) fn is_json_ld(response: &Response) -> bool {
    response.media_type().is_some_and(|media_type| ldn::is_json_ld(&media_type))
}

/// The body of an answer. No more of it is held than the limits allow.
///
/// # Errors
/// When it breaks off, or is no JSON within the limits.
pub(super) async fn json(response: &mut Response, limits: &Limits) -> Result<Value, Trouble> {
    let bytes = body(response, limits).await?;
    ldn::parse(&bytes, limits).map_err(|why| Trouble::Unreadable(response.final_url().clone(), why))
}

/// The same, as bytes.
pub(super) async fn body(response: &mut Response, limits: &Limits) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if bytes.len() + piece.len() > limits.bytes {
            let too_large = Unreadable::TooLarge { bytes: bytes.len() + piece.len(), limit: limits.bytes };
            return Err(Trouble::Unreadable(response.final_url().clone(), too_large));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}
