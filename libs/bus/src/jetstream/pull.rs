//! Pulling: takes the available messages at once, or waits in line for the next message.
//!
//! A request is always awaited to its end. If a client dropped it while the server may still respond, the server could
//! deliver messages to it. These would be stuck until `ack_wait` is over, although other workers wait for them. So a
//! request ends when it is complete, or when the server says so. The server does that within milliseconds for a request
//! for available messages. Only requests for a single message wait in line.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::{StatusCode, Subscriber};
use futures::StreamExt;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Shared;
use super::names::{self, Stage};
use super::receipt::JetStreamReceipt;
use crate::dead;
use crate::{BusError, ConsumerSpec, DeadLetter, Delivery, Filter, Message, MessageId, Queue, Receipt};

/// The longest wait of one request at the server. It bounds the delay if the request is lost there.
const LONGEST_REQUEST: Duration = Duration::from_secs(20);
/// How late the server's own timeout may arrive, because it uses its own clock.
const SLACK: Duration = Duration::from_secs(1);
/// How long the server may collect available messages. If there are no more, it says so at once. If the limit holds
/// some back, it says so at the end of this time.
const AT_HAND: Duration = Duration::from_millis(5);
/// How long a pull that has messages waits for the end of the request.
const LATE: Duration = Duration::from_millis(100);
/// The time limit for ending a request early.
const FAREWELL: Duration = Duration::from_secs(1);
/// The wait before the next request, when the server has no room for one more.
const NO_ROOM: Duration = Duration::from_millis(500);

/// The wait before a lost request is repeated.
const AGAIN: Duration = Duration::from_millis(50);

/// A pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PullRequest {
    /// The available messages, up to `max`.
    AtHand { max: usize },
    /// The next message, behind the requests that wait already.
    InLine,
}

/// The result of a request.
#[derive(Debug)]
enum PullReply {
    Messages(Vec<async_nats::Message>),
    /// It ended without a message.
    Nothing,
    /// Other requests wait for all available messages. Wait behind them.
    Queued,
    /// Too many requests wait.
    NoRoom,
    /// The consumer does not answer.
    Gone,
    /// The request was lost with its server, or the server wants it to be repeated.
    Lost,
}

impl Shared {
    pub(super) async fn pull(
        &self,
        filter: &Filter,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        let end = Instant::now() + wait.min(Duration::from_secs(365 * 24 * 3600));
        let mut spec = self.spec(filter).await?;
        if max == 0 {
            return Ok(Vec::new());
        }
        let at_hand = PullRequest::AtHand { max };
        let mut ask = at_hand;
        loop {
            let heard = self.request(filter, ask, end).await?;
            ask = at_hand;
            match heard {
                PullReply::Messages(messages) => {
                    let deliveries = self.hand_out(filter, &mut spec, messages).await?;
                    if !deliveries.is_empty() {
                        return Ok(deliveries);
                    }
                }
                PullReply::NoRoom => sleep(NO_ROOM.min(end.saturating_duration_since(Instant::now()))).await,
                PullReply::Gone => spec = self.reopen(filter).await?,
                PullReply::Lost => sleep(AGAIN).await,
                PullReply::Nothing | PullReply::Queued => ask = PullRequest::InLine,
            }
            if Instant::now() >= end {
                if !self.link.health.borrow().up {
                    let action = format!("pull from {filter}");
                    let source = "the connection is down".into();
                    return Err(BusError::Unavailable { action, source });
                }
                return Ok(Vec::new());
            }
        }
    }

    async fn request(&self, filter: &Filter, ask: PullRequest, end: Instant) -> Result<PullReply, BusError> {
        let connections = self.link.connections();
        let (max, longest) = match ask {
            PullRequest::AtHand { max } => (max, AT_HAND),
            PullRequest::InLine => (1, LONGEST_REQUEST),
        };
        // With a time of zero, the server would treat the request as one without an end.
        let expires = end.saturating_duration_since(Instant::now()).clamp(AT_HAND, longest);
        let until = Instant::now() + expires;
        let stream = self.names.stream(Stage::of(filter));
        let consumer = names::consumer(filter);
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
        let request =
            json!({ "batch": max, "expires": nanos(expires), "no_wait": ask != PullRequest::InLine });

        let unavailable = |source| BusError::Unavailable { action: format!("pull from {filter}"), source };
        let client = &self.link.client;
        let inbox = client.new_inbox();
        let mut inlet = client.subscribe(inbox.clone()).await.map_err(|error| unavailable(error.into()))?;
        let sent = client.publish_with_reply(subject, inbox, request.to_string().into()).await;
        sent.map_err(|error| unavailable(error.into()))?;

        let mut messages = Vec::new();
        loop {
            let patience = until + if messages.is_empty() { SLACK } else { LATE };
            let heard = tokio::select! {
                biased;
                heard = inlet.next() => heard,
                () = self.link.reconnected(connections), if messages.is_empty() => {
                    // It may have been sent just now, over the new connection.
                    farewell(&mut inlet, &mut messages).await;
                    return Ok(if messages.is_empty() { PullReply::Lost } else { PullReply::Messages(messages) });
                }
                () = sleep_until(patience) => {
                    farewell(&mut inlet, &mut messages).await;
                    break;
                }
            };
            let Some(message) = heard else { return Ok(PullReply::Lost) };
            match judge(&message) {
                None => messages.push(message),
                Some(_) if !messages.is_empty() => break,
                Some(heard) => return Ok(heard),
            }
            if messages.len() >= max {
                break;
            }
        }
        Ok(if messages.is_empty() { PullReply::Nothing } else { PullReply::Messages(messages) })
    }

    /// Converts messages to deliveries. Those that were delivered too often become dead letters.
    async fn hand_out(
        &self,
        filter: &Filter,
        spec: &mut ConsumerSpec,
        messages: Vec<async_nats::Message>,
    ) -> Result<Vec<Delivery>, BusError> {
        let mut deliveries = Vec::with_capacity(messages.len());
        let mut worn = Vec::new();
        for raw in messages {
            let raw = jetstream::Message { message: raw, context: self.link.context.clone() };
            let (Ok(info), Some(reply)) = (raw.info(), raw.reply.clone()) else {
                tracing::error!(subject = %raw.subject, "a message came that cannot be answered");
                continue;
            };
            let attempt = u32::try_from(info.delivered).unwrap_or(u32::MAX);
            let number = info.stream_sequence;
            let raw = raw.message;
            let receipt = JetStreamReceipt::new(self.link.clone(), reply, spec.ack_wait());
            let Some(queue) = self.names.queue(&raw.subject) else {
                // Only another application writes to such a subject.
                tracing::error!(subject = %raw.subject, "dropped a message that is none of Thresher's");
                receipt.term().await?;
                continue;
            };
            let message = Message { id: id_of(&raw, number), queue, payload: raw.payload.into(), attempt };
            if attempt > spec.max_deliver() {
                worn.push((message, receipt));
            } else {
                deliveries.push(Delivery::new(message, Box::new(receipt)));
            }
        }
        if worn.is_empty() {
            return Ok(deliveries);
        }
        // The owner of the consumer may have raised the limit since this process learned it.
        if let Ok(Some(now)) = self.ask_spec(filter).await {
            *spec = now;
        }
        for (message, receipt) in worn {
            if message.attempt > spec.max_deliver() {
                if let Err(error) = self.bury(message, &receipt).await {
                    tracing::warn!(%error, "cannot bury a message that was handed out too often: it will come again");
                }
            } else {
                deliveries.push(Delivery::new(message, Box::new(receipt)));
            }
        }
        Ok(deliveries)
    }

    /// Moves a message that was delivered too often to the dead letters.
    async fn bury(&self, message: Message, receipt: &JetStreamReceipt) -> Result<(), BusError> {
        let message = Message { attempt: message.attempt - 1, ..message };
        let (letter, why) = DeadLetter::worn(&message);
        let (queue, id, payload): (Queue, _, _) = letter.addressed(message.queue.source());
        self.publish(queue, id, payload.to_bytes()).await?;
        dead::log(&message, &why);
        receipt.term().await
    }
}

/// The meaning of a status; none if it is a message.
fn judge(message: &async_nats::Message) -> Option<PullReply> {
    let said = message.description.as_deref().unwrap_or_default();
    Some(match message.status? {
        StatusCode::OK => return None,
        StatusCode::NO_RESPONDERS => PullReply::Gone,
        StatusCode::TIMEOUT if said == "Requests Pending" => PullReply::Queued,
        StatusCode::TIMEOUT | StatusCode::NOT_FOUND => PullReply::Nothing,
        _ if said == "Consumer Deleted" => PullReply::Gone,
        _ if said.starts_with("Exceeded MaxWaiting") => PullReply::NoRoom,
        status => {
            tracing::debug!(%status, said, "a pull request ended early");
            PullReply::Lost
        }
    })
}

/// Ends a request whose end the server has not reported in time, and takes the messages on their way. A message that
/// the server delivers at this very moment is redelivered after `ack_wait`, because the client forgets the request
/// before the server does.
async fn farewell(inlet: &mut Subscriber, messages: &mut Vec<async_nats::Message>) {
    if inlet.drain().await.is_err() {
        return;
    }
    let last = async {
        while let Some(message) = inlet.next().await {
            if judge(&message).is_none() {
                messages.push(message);
            }
        }
    };
    // If the connection breaks, the messages on their way are redelivered.
    let _ = timeout(FAREWELL, last).await;
}

fn id_of(raw: &async_nats::Message, number: u64) -> MessageId {
    let named = raw.headers.as_ref().and_then(|headers| headers.get(async_nats::header::NATS_MESSAGE_ID));
    named.map_or_else(|| MessageId::new(format!("unnamed-{number}")), |name| MessageId::new(name.as_str()))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
