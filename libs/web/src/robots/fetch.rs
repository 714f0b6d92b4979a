//! How robots.txt is had, and what it means for a request.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use model::{Disposition, Lane};
use url::Url;

use super::{MOST_READ, Robots};
use crate::client::Errand;
use crate::{Client, ErrorKind, GetRequest, Response, WebError};

/// What was read is asked for again after a day, as RFC 9309, 2.4, has it.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// What could not be had is asked for again sooner.
const KEPT_UNREACHABLE: Duration = Duration::from_secs(600);

impl Client {
    /// What the robots.txt of an origin says to us, whatever the policy makes of it. It is fetched once for all, with one
    /// attempt, and kept for a day (ten minutes where it could not be had); [`Client::requests`] counts
    /// that request. It never fails: what could not be had says so in its [standing](Robots::standing).
    pub async fn robots(&self, lane: &Lane) -> Arc<Robots> {
        self.known_robots().get_or(lane, self.fetch_robots(lane)).await
    }

    /// The space to leave before a request, after what the policy makes of the origin's robots.txt.
    ///
    /// # Errors
    /// [`ErrorKind::Disallowed`] when the policy keeps to that and it is.
    pub(crate) async fn spacing(&self, lane: &Lane, url: &Url) -> Result<Duration, WebError> {
        let policy = &self.config().robots;
        if !policy.asks() {
            return Ok(Duration::ZERO);
        }
        let robots = self.robots(lane).await;
        if policy.disallow && !robots.allows(url) {
            return Err(WebError::new(ErrorKind::Disallowed));
        }
        let delay = robots.crawl_delay().filter(|_| policy.crawl_delay);
        Ok(delay.unwrap_or_default().min(policy.crawl_delay_max))
    }

    /// Boxed, since a request asks for this, which is a request.
    fn fetch_robots<'a>(&'a self, lane: &'a Lane) -> BoxFuture<'a, (Robots, Duration)> {
        async move {
            let Ok(url) = format!("{lane}/robots.txt").parse() else { return (Robots::default(), KEPT) };
            let read = match self.travel(GetRequest::new(url), Errand::Robots).await {
                Ok(response) => read(response).await,
                Err(error) => Err(error),
            };
            let error = match read {
                Ok(text) => return (Robots::parse(&text, &self.config().user_agent), KEPT),
                Err(error) => error,
            };
            let is_final = error.disposition() == Disposition::Refuse;
            if matches!(error.status(), Some(400..=499)) && is_final {
                return (Robots::default(), KEPT);
            }
            tracing::warn!(lane = lane.as_str(), %error, "robots.txt cannot be had; everything is taken as allowed");
            // The origin was not asked while it rests, so nothing is known yet.
            let keep = if error.kind() == ErrorKind::Resting { Duration::ZERO } else { KEPT_UNREACHABLE };
            (Robots::unreachable(error.to_string()), keep)
        }
        .boxed()
    }
}

/// As much as is looked at, and a piece more, which tells that there is more.
async fn read(mut response: Response) -> Result<Vec<u8>, WebError> {
    let mut text = Vec::new();
    while text.len() <= MOST_READ
        && let Some(piece) = response.chunk().await?
    {
        text.extend_from_slice(&piece);
    }
    Ok(text)
}
