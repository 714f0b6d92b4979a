//! Polls inboxes of others (LDN-4): a notification there about a Source is a hint, as if it were in the fleet's own
//! inbox.
//!
//! It requests the inbox that the Source's operator names, or that of the page that the operator names, and what it
//! lists at its own origin. It never requests a URL from a notification. The position is recorded when the hint is
//! given, so a second reading causes only one more hint.

use std::sync::Arc;
use std::time::Duration;

use control::{
    Control, ControlError, Hint, InboxCursor, MOST_SEEN, Member, MemberId, SourceSpec, Versioned, WatchCache,
};
use jiff::Timestamp;
use ldn::{Limits, NoInbox, Notification};
use model::{Clock, SourceId, Validators};
use serde_json::Value;
use tokio::time::sleep;
use url::Url;
use web::{Client, GetRequest, Response};

use super::inbox::{self, InboxError, PAGE};
use super::outbox_sender::client;
use super::periodic::{Feed, Key, Periodic};
use crate::context::SchedulerContext;
use crate::metrics::SchedulerMetrics;

/// Notifications read per poll. The rest is read at the next poll.
const AT_A_LOOK: usize = 50;
/// Consecutive failures after which a poll ends.
const MOST_FAILED: usize = 3;
/// Maximum pages of an inbox per poll.
const MOST_PAGES: usize = 50;
/// Wait after the control store could not be written.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Dependencies of polling. Cheap to clone.
#[derive(Clone)]
pub(crate) struct InboxPoller {
    pub(crate) me: MemberId,
    pub(crate) control: Control,
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) readings: WatchCache<InboxCursor>,
    pub(crate) members: WatchCache<Member>,
    /// HTTP client for others, with permits of their origins.
    pub(crate) client: Client,
    /// Time between two polls of an inbox.
    pub(crate) every: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: SchedulerMetrics,
}

/// Task for an inbox.
pub(crate) enum Errand {
    Look { source: Arc<SourceSpec>, page: Url },
    Forget(Versioned<InboxCursor>),
}

/// Content of an inbox.
struct Listing {
    inbox: Url,
    notifications: Vec<Url>,
    /// Its validators, if it is one page.
    validators: Validators,
}

impl InboxPoller {
    /// # Errors
    /// When its configuration is wrong.
    pub(crate) fn of(
        context: &SchedulerContext,
        readings: WatchCache<InboxCursor>,
        members: WatchCache<Member>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            me: context.me.clone(),
            control: context.control.clone(),
            sources: context.sources.clone(),
            readings,
            members,
            client: client(context)?,
            every: context.settings.inbox_poll(),
            clock: Arc::clone(&context.clock),
            metrics: context.metrics.clone(),
        })
    }

    async fn look_at(&self, source: &SourceSpec, page: Url) -> Result<(), ControlError> {
        let readings = self.control.inbox_cursors();
        let now = self.clock.now();
        let (known, revision) = readings.get(&source.id).await?;
        let known = match known.filter(|known| known.page == page) {
            Some(known) if known.next_at > now => return Ok(()),
            Some(known) => (*known.value).clone(),
            None => InboxCursor::new(source.id.clone(), page, now),
        };
        let taken = known.taken(self.every, now);
        let Some(revision) = readings.note(&taken, revision).await? else { return Ok(()) };
        let next = match self.read(source, &taken).await? {
            Ok(next) => next,
            Err(trouble) => {
                let now = self.clock.now();
                let why = trouble.to_string();
                let not_before = trouble.patience().and_then(|wait| now.checked_add(wait).ok());
                tracing::warn!(source.id = %source.id, page = %taken.page, why, "the inbox cannot be read now");
                self.metrics.looked("failed");
                taken.failed(&why, not_before, self.every, now)
            }
        };
        readings.note(&next, revision).await.map(drop)
    }

    /// Polls an inbox, and gives a hint if there is a new notification about the Source.
    async fn read(
        &self,
        source: &SourceSpec,
        known: &InboxCursor,
    ) -> Result<Result<InboxCursor, InboxError>, ControlError> {
        let listing = match self.listing(known).await {
            Ok(Some(listing)) => listing,
            Ok(None) => {
                self.metrics.looked("not-modified");
                return Ok(Ok(known.unchanged(self.every, self.clock.now())));
            }
            Err(trouble) => return Ok(Err(trouble)),
        };
        self.metrics.looked("read");
        let Listing { inbox, notifications, validators } = listing;
        let mut left = known.unseen(&notifications);
        let mut failed = Vec::new();
        let mut in_a_row = 0;
        for _ in 0..AT_A_LOOK {
            if left.is_empty() || in_a_row >= MOST_FAILED {
                break;
            }
            let url = left.remove(0);
            match self.notification(url).await {
                Ok(notification) if notification.is_about(&source.entry) => {
                    let (source, given_at, by) =
                        (source.id.clone(), self.clock.now(), format!("inbox {inbox}"));
                    tracing::info!(source.id = %source, notification.url = %url, "a notification is about the Source");
                    self.control.hints().give(&Hint { source, given_at, by, unproved: false }).await?;
                    self.metrics.noticed("hint");
                    // Everything else in the list was there before the hint.
                    (left, failed) = (Vec::new(), Vec::new());
                    break;
                }
                Ok(_) => self.metrics.noticed("other"),
                Err(trouble) if trouble.is_lasting() => {
                    tracing::info!(notification.url = %url, why = %trouble, "a notification is left unread");
                    self.metrics.noticed("unreadable");
                }
                Err(trouble) => {
                    tracing::debug!(notification.url = %url, why = %trouble, "a notification cannot be read now");
                    self.metrics.noticed("failed");
                    failed.push(url);
                    in_a_row += 1;
                    continue;
                }
            }
            in_a_row = 0;
        }
        left.extend(failed);
        Ok(Ok(known.read(inbox, &notifications, &left, validators, self.every, self.clock.now())))
    }

    /// The URLs that the inbox lists at its own origin; none if unmodified.
    async fn listing(&self, known: &InboxCursor) -> Result<Option<Listing>, InboxError> {
        let (inbox, mut response, mut body) = match &known.inbox {
            Some(inbox) => {
                let validators = known.validators.clone();
                let response = self.get(GetRequest { validators, ..GetRequest::new(inbox.clone()) }).await?;
                if response.status() == 304 {
                    return Ok(None);
                }
                (inbox.clone(), response, None)
            }
            None => self.find(&known.page).await?,
        };
        let mut validators = response.validators();
        let mut notifications = Vec::new();
        for page in 0..MOST_PAGES {
            let body = match body.take() {
                Some(body) => body,
                None => inbox::json(&mut response, &PAGE).await?,
            };
            let listed = ldn::contained(&body, &inbox, response.final_url()).into_iter();
            notifications.extend(listed.filter(|url| url.origin() == inbox.origin() && *url != inbox));
            let Some(next) = next_page(&response, &inbox) else { break };
            // A new notification may be on any page.
            validators = Validators::default();
            if notifications.len() >= MOST_SEEN || page + 1 == MOST_PAGES {
                tracing::warn!(%inbox, "the inbox lists more than is looked at");
                break;
            }
            response = self.get(GetRequest::new(next)).await?;
        }
        Ok(Some(Listing { inbox, notifications, validators }))
    }

    /// The inbox of a page, which may be the page itself, with its first response, and its body if that was read.
    async fn find(&self, page: &Url) -> Result<(Url, Response, Option<Value>), InboxError> {
        let asked = GetRequest { accept: Some(ldn::PAGE_ACCEPT.into()), ..GetRequest::new(page.clone()) };
        let mut response = self.client.get(asked).await?;
        let at = response.final_url().clone();
        let mut body = None;
        let found = match inbox::linked(&response, page) {
            Err(NoInbox::None) if inbox::is_json_ld(&response) => {
                let read = inbox::json(&mut response, &PAGE).await?;
                let found = ldn::inbox_in_body(&read, page, &at);
                body = Some(read);
                // A JSON-LD page that names no inbox is one itself.
                if found == Err(NoInbox::None) { Ok(at.clone()) } else { found }
            }
            Err(NoInbox::None) if inbox::is_turtle(&response) => {
                inbox::in_turtle(&mut response, page).await?
            }
            found => found,
        };
        let inbox = found.map_err(|why| InboxError::NoInbox(page.clone(), why))?;
        if inbox == at {
            return Ok((inbox, response, body));
        }
        drop(response);
        let response = self.get(GetRequest::new(inbox.clone())).await?;
        Ok((inbox, response, None))
    }

    async fn notification(&self, url: &Url) -> Result<Notification, InboxError> {
        let mut response = self.get(GetRequest::new(url.clone())).await?;
        let limits = Limits::default();
        let body = inbox::body(&mut response, &limits).await?;
        Notification::read(&body, &limits).map_err(|why| InboxError::Unreadable(url.clone(), why))
    }

    /// Requests a URL of an inbox, and never one at another origin.
    async fn get(&self, request: GetRequest) -> Result<Response, InboxError> {
        let request = GetRequest { accept: Some(ldn::JSON_LD.into()), within_origin: true, ..request };
        Ok(self.client.get(request).await?)
    }
}

/// The next page of an inbox.
fn next_page(response: &Response, inbox: &Url) -> Option<Url> {
    let mut links = response.header_values("link").flat_map(links::header::parse);
    let next = links.find(|link| link.is("next"))?;
    let next = response.final_url().join(&next.target).ok()?;
    (next.origin() == inbox.origin() && next != *response.final_url()).then_some(next)
}

impl Periodic for InboxPoller {
    type Errand = Errand;

    fn feed(&self) -> Feed {
        Feed::new(&self.sources, self.readings.changed_keys(), &self.me, &self.members)
    }

    fn rows(&self) -> Vec<Key> {
        let mut rows = self.readings.keys();
        self.sources.for_each(|source| {
            if source.inbox.is_some() {
                rows.push(source.id.as_str().into());
            }
        });
        rows
    }

    fn source_of(&self, row: &str) -> Option<SourceId> {
        let has_inbox = self.sources.row(row).is_some_and(|source| source.inbox.is_some());
        (has_inbox || self.readings.row(row).is_some()).then(|| row.parse().ok())?
    }

    fn due(&self, row: &str, _now: Timestamp) -> Option<(Timestamp, Errand)> {
        let source = self.sources.row(row);
        let known = self.readings.row(row);
        let Some((source, page)) =
            source.and_then(|source| Some((source.value.clone(), source.inbox.clone()?)))
        else {
            // Until the live view of the Sources is complete, no reading is removed.
            let unwanted = known.filter(|_| self.sources.is_live())?;
            return Some((Timestamp::MIN, Errand::Forget(unwanted)));
        };
        let known = known.filter(|known| known.page == page);
        let at = known.map_or(Timestamp::MIN, |known| known.next_at);
        source.enabled.then_some((at, Errand::Look { source, page }))
    }

    fn count(&self, _is_ours: &dyn Fn(&SourceId) -> bool, _now: Timestamp) {}

    async fn run(&self, errand: Errand) {
        let done = match errand {
            Errand::Look { source, page } => self.look_at(&source, page).await,
            Errand::Forget(known) => self.control.inbox_cursors().forget(&known).await,
        };
        if let Err(error) = done {
            tracing::warn!(%error, "how far an inbox is read cannot be kept now");
            sleep(AFTER_TROUBLE).await;
        }
    }
}

#[cfg(test)]
#[path = "inbox_poller_tests.rs"]
mod tests;
