//! Fetches robots.txt, and applies it to a request.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use model::{Disposition, Origin};
use url::Url;

use crate::robots::{MOST_READ, Robots, RobotsFetch};
use crate::{Client, CrawlDelay, ErrorKind, GetRequest, Phase, RequestPurpose, Response, Wall, WebError};

/// A file that was read is requested again after a day, as RFC 9309, 2.4, says.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// One that could not be fetched is requested again sooner.
const KEPT_UNREACHABLE: Duration = Duration::from_secs(600);
/// The longest time for its body: all other requests to the origin wait for it.
const LONGEST: Duration = Duration::from_secs(60);

impl Client {
    /// The rules of an origin's robots.txt for this client, whatever the policy makes of them, and the number
    /// of requests that this call sent. It is fetched once for all, with one attempt, and cached for a day
    /// (ten minutes where it could not be fetched). It never fails: a failed fetch is reported in its
    /// [result](Robots::fetch).
    pub async fn robots(&self, origin: &Origin) -> (Arc<Robots>, u32) {
        let mut requests = 0;
        let fetch = async {
            let fetched = self.fetch_robots(origin).await;
            requests = fetched.requests;
            self.discount(requests);
            (fetched.robots, fetched.keep)
        };
        let robots = self.known_robots().get_or(origin, fetch).await;
        (robots, requests)
    }

    /// The minimum interval before a request, as the policy reads the origin's robots.txt. Requests sent to
    /// learn it are added to `requests`.
    ///
    /// # Errors
    /// When the policy obeys robots.txt: [`ErrorKind::Disallowed`] when the URL is disallowed,
    /// [`ErrorKind::RobotsUnreachable`] when the rules are unknown.
    pub(crate) async fn spacing(
        &self,
        origin: &Origin,
        url: &Url,
        errand: RequestPurpose,
        requests: &mut u32,
    ) -> Result<Duration, WebError> {
        let policy = &self.1.robots;
        let is_foreign = self.1.is_foreign(origin);
        if !policy.asks(errand, is_foreign) {
            return Ok(Duration::ZERO);
        }
        let binds = policy.disallow.binds(errand, is_foreign);
        // A single request, such as one for an unchanged list, needs no delay: a delay only concerns the next
        // request.
        if !binds && self.known_robots().is_first(origin) {
            return Ok(Duration::ZERO);
        }
        let (robots, made) = self.robots(origin).await;
        *requests += made;
        if binds {
            // If another site's server does not answer at all, the request's own error says so better.
            let is_asked_in_vain = robots.is_silent() && !policy.disallow.binds(errand, false);
            if let RobotsFetch::Unreachable(why) = robots.fetch()
                && !is_asked_in_vain
            {
                return Err(WebError::new(ErrorKind::RobotsUnreachable).detail(why));
            }
            if !robots.allows(url) {
                return Err(WebError::new(ErrorKind::Disallowed));
            }
        }
        Ok(self.kept_delay(origin, &robots, made))
    }

    /// The interval between two of our requests to an origin: its crawl-delay, or that of the Source's or the
    /// configuration's rate, whichever is longer. Also returns the number of requests that this call sent.
    pub async fn space_between(&self, origin: &Origin) -> (Duration, u32) {
        let (delay, requests) = if self.1.robots.crawl_delay {
            let (robots, requests) = self.robots(origin).await;
            (self.kept_delay(origin, &robots, requests), requests)
        } else {
            (Duration::ZERO, 0)
        };
        (self.0.politeness.share(delay.max(self.1.pace)), requests)
    }

    /// The applied part of a crawl-delay. It is reported if `made` requests have just found it.
    fn kept_delay(&self, origin: &Origin, robots: &Robots, made: u32) -> Duration {
        let policy = &self.1.robots;
        let asked = robots.crawl_delay().filter(|_| policy.crawl_delay).unwrap_or_default();
        let kept = asked.min(policy.crawl_delay_max);
        if made > 0 && !kept.is_zero() {
            tracing::info!(origin = origin.as_str(), ?asked, ?kept, "robots.txt asks for a crawl-delay");
            self.tell(CrawlDelay { origin: origin.clone(), asked, kept });
        }
        kept
    }

    /// Boxed, since a request calls this, which is a request itself.
    fn fetch_robots<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, Fetched> {
        async move {
            let url: Url = match format!("{origin}/robots.txt").parse() {
                Ok(url) => url,
                Err(error) => return Fetched::absent(error.to_string(), 0),
            };
            // Only its beginning is read, whatever its length.
            let request = GetRequest { largest: Some(u64::MAX), ..GetRequest::new(url) };
            let error = match self.travel(request, None).await {
                Ok(response) => {
                    let mut response = response.within(LONGEST);
                    match read(&mut response).await {
                        Ok(text) => return Fetched::read(&text, &response, &self.config().user_agent),
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            let requests = error.requests();
            let is_final = error.disposition() == Disposition::Refuse;
            let is_absent = match error.kind() {
                ErrorKind::Status(400..=499) => is_final,
                // RFC 9309, 2.3.1.2, counts too many redirects as no robots.txt. A refused address is also
                // refused to the request itself, which then reports it.
                ErrorKind::TooManyRedirects
                | ErrorKind::RedirectLoop
                | ErrorKind::BadRedirect
                | ErrorKind::RefusedAddress
                | ErrorKind::RefusedPort
                | ErrorKind::Walled(Wall::Refusal(_) | Wall::Login) => true,
                _ => false,
            };
            if is_absent {
                let absent = Fetched::absent(error.to_string(), requests);
                // Other Sources may be allowed to reach that address.
                let is_refused = error.kind() == ErrorKind::RefusedAddress;
                return if is_refused { Fetched { keep: Duration::ZERO, ..absent } } else { absent };
            }
            tracing::warn!(
                origin = origin.as_str(), %error,
                "robots.txt cannot be had; only what a publication invites to is fetched"
            );
            // The origin was in cooldown and got no request, so nothing is known yet.
            let keep = match error.kind() {
                ErrorKind::CoolingDown | ErrorKind::Walled(Wall::Challenge(_)) => Duration::ZERO,
                _ => KEPT_UNREACHABLE,
            };
            let fetch = RobotsFetch::Unreachable(error.to_string());
            let is_silent = matches!(
                error.kind(),
                ErrorKind::Dns
                    | ErrorKind::Connect(_)
                    | ErrorKind::Tls { .. }
                    | ErrorKind::Timeout(Phase::Connect | Phase::FirstByte)
                    | ErrorKind::CoolingDown
            );
            let robots = Robots::unread(fetch, !is_silent);
            Fetched { robots, keep, requests }
        }
        .boxed()
    }
}

/// The result of requesting a robots.txt.
struct Fetched {
    robots: Robots,
    /// How long it is not requested again.
    keep: Duration,
    requests: u32,
}

impl Fetched {
    fn read(text: &[u8], response: &Response, agent: &str) -> Self {
        let robots = Robots::parse(text, agent).read_at(response.final_url().clone());
        Self { robots, keep: KEPT, requests: response.requests() }
    }

    fn absent(why: String, requests: u32) -> Self {
        Self { robots: Robots::unread(RobotsFetch::Absent(why), true), keep: KEPT, requests }
    }
}

/// The bytes that are parsed, and a piece more, which shows that there is more.
async fn read(response: &mut Response) -> Result<Vec<u8>, WebError> {
    let mut text = Vec::new();
    while text.len() <= MOST_READ
        && let Some(piece) = response.chunk().await?
    {
        text.extend_from_slice(&piece);
    }
    Ok(text)
}
