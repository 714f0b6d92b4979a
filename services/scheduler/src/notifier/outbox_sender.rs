//! Sends notifications of changes (LDN-3): finds the inboxes of receivers, and sends the outbox until it is accepted.
//!
//! A message is recorded as in progress before it is sent. So if two schedulers believe that they own a Source, only
//! one sends it. If the sender is killed meanwhile, the next owner of the Source sends the message after its pause.
//! It may arrive twice, under the same name.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use control::{
    Control, ControlError, Member, MemberId, OutboxMessage, OutboxState, SourceSpec, Versioned, WatchCache,
};
use jiff::Timestamp;
use ldn::Announcement;
use model::{Clock, SourceId};
use tokio::time::sleep;
use url::Url;
use web::{Client, PostRequest, Terms};

use super::inbox::{self, InboxError};
use super::periodic::{Feed, Key, Periodic};
use crate::context::SchedulerContext;
use crate::metrics::SchedulerMetrics;
use crate::origin_permits::CappedPermits;

/// Requests open at one origin at a time, of the whole fleet, unless a Source's jobs have another limit.
const PER_ORIGIN: NonZeroUsize = const { NonZeroUsize::new(2).unwrap() };
/// Wait after the control store could not be written.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Dependencies of sending. Cheap to clone.
#[derive(Clone)]
pub(crate) struct OutboxSender {
    pub(crate) me: MemberId,
    pub(crate) control: Control,
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) outbox: WatchCache<OutboxMessage>,
    pub(crate) members: WatchCache<Member>,
    /// HTTP client for others, with permits of their origins.
    pub(crate) client: Client,
    /// Identity of the fleet.
    pub(crate) identity: Option<Url>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: SchedulerMetrics,
}

/// Task for an outbox message.
pub(crate) enum Errand {
    Send(Versioned<OutboxMessage>),
    Forget(Versioned<OutboxMessage>),
}

/// The client for inboxes, with permits of their origins and the credentials configured for them.
///
/// # Errors
/// When a credential does not exist.
pub(crate) fn client(context: &SchedulerContext) -> anyhow::Result<Client> {
    let places = CappedPermits { places: Arc::clone(&context.permits), limit: PER_ORIGIN };
    let credentials = context.credentials.named(&context.settings.inbox_credentials)?;
    Ok(context.client.on(Terms { places: Some(Arc::new(places)), credentials, ..Terms::default() })?)
}

impl OutboxSender {
    /// # Errors
    /// When its configuration is wrong.
    pub(crate) fn of(
        context: &SchedulerContext,
        outbox: WatchCache<OutboxMessage>,
        members: WatchCache<Member>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            me: context.me.clone(),
            control: context.control.clone(),
            sources: context.sources.clone(),
            outbox,
            members,
            client: client(context)?,
            identity: context.settings.identity.clone(),
            clock: Arc::clone(&context.clock),
            metrics: context.metrics.clone(),
        })
    }

    async fn send(&self, outgoing: &Versioned<OutboxMessage>) -> Result<(), ControlError> {
        let outbox = self.control.outbox();
        let Some(taken) = outbox.take(outgoing, self.clock.now()).await? else { return Ok(()) };
        let source = &taken.source;
        let target = taken.target.as_str();
        let trouble = match self.deliver(&taken).await {
            Ok(inbox) => {
                tracing::info!(source.id = %source, target, %inbox, notification = taken.name(), "a change is told");
                self.metrics.told("accepted");
                return outbox.forget(&taken).await;
            }
            Err(trouble) => trouble,
        };
        let now = self.clock.now();
        let why = trouble.to_string();
        let next = if trouble.is_refusal() {
            taken.refused(&why)
        } else {
            let not_before = trouble.patience().and_then(|wait| now.checked_add(wait).ok());
            taken.failed(&why, not_before, now)
        };
        match next.state {
            OutboxState::Waiting => {
                let again = next.next_at;
                tracing::warn!(source.id = %source, target, why, %again, "a change cannot be told yet");
                self.metrics.told("failed");
            }
            OutboxState::Refused => {
                tracing::error!(source.id = %source, target, why, "a change is not told: that is refused");
                self.metrics.told("refused");
            }
            OutboxState::DeadLetterSummary => {
                tracing::error!(source.id = %source, target, why, tries = next.tries, since = %next.since, "a change is not told: it is given up");
                self.metrics.told("given-up");
            }
        }
        outbox.failed(&taken, next).await.map(drop)
    }

    /// Finds the inbox, and sends the notification.
    async fn deliver(&self, outgoing: &OutboxMessage) -> Result<Url, InboxError> {
        let inbox = inbox::find(&self.client, &outgoing.target).await?;
        let said = self.announcement(outgoing).to_json().to_string();
        self.client.post(PostRequest::new(inbox.clone(), ldn::JSON_LD, said)).await?;
        Ok(inbox)
    }

    fn announcement(&self, outgoing: &OutboxMessage) -> Announcement {
        let change = outgoing.change();
        let source = self.sources.get(&outgoing.source);
        Announcement {
            id: outgoing.name(),
            actor: self.identity.clone(),
            // A message that is no longer wanted is not sent.
            object: source.map_or_else(|| outgoing.target.clone(), |source| source.entry.clone()),
            target: outgoing.target.clone(),
            stored: change.stored,
            deleted: change.deleted,
            from: change.from,
            until: change.until,
        }
    }

    /// Whether a message is still wanted. If that is unknown, it is.
    fn is_wanted(&self, outgoing: &OutboxMessage) -> bool {
        let source = self.sources.get(&outgoing.source);
        !self.sources.is_live() || source.is_some_and(|source| source.notify.contains(&outgoing.target))
    }
}

impl Periodic for OutboxSender {
    type Errand = Errand;

    fn feed(&self) -> Feed {
        Feed::new(&self.sources, self.outbox.changed_keys(), &self.me, &self.members)
    }

    fn rows(&self) -> Vec<Key> {
        self.outbox.keys()
    }

    fn source_of(&self, row: &str) -> Option<SourceId> {
        self.outbox.row(row).map(|outgoing| outgoing.source.clone())
    }

    fn due(&self, row: &str, _now: Timestamp) -> Option<(Timestamp, Errand)> {
        let outgoing = self.outbox.row(row)?;
        if !self.is_wanted(&outgoing) {
            return Some((Timestamp::MIN, Errand::Forget(outgoing)));
        }
        outgoing.is_waiting().then(|| (outgoing.next_at, Errand::Send(outgoing)))
    }

    fn count(&self, is_ours: &dyn Fn(&SourceId) -> bool, _now: Timestamp) {
        let mut states = Vec::new();
        self.outbox.for_each(|outgoing| {
            if is_ours(&outgoing.source) {
                states.push(outgoing.state);
            }
        });
        self.metrics.outbox(states.into_iter());
    }

    async fn run(&self, errand: Errand) {
        let done = match &errand {
            Errand::Send(outgoing) => self.send(outgoing).await,
            Errand::Forget(outgoing) => self.control.outbox().forget(outgoing).await,
        };
        if let Err(error) = done {
            tracing::warn!(%error, "what is to be told of changes cannot be kept now");
            sleep(AFTER_TROUBLE).await;
        }
    }
}

#[cfg(test)]
#[path = "outbox_sender_tests.rs"]
mod tests;
