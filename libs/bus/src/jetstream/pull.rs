//! Pulling: what is there is taken at once, and who finds nothing stands in line for the next message.
//!
//! A request is heard to its end. One that is let go of while the server may still answer it takes along what the server hands out at that moment: it would
//! lie with nobody until its `ack_wait` is over, though somebody waits for it. So a request is over when it has what it asked for, or when the server says so, which it
//! does in milliseconds where it was asked for what is there, and nobody stands in line for more than one message.

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

/// The longest one request waits at the server. Should it be lost there, no pull waits longer for nothing.
const LONGEST_REQUEST: Duration = Duration::from_secs(20);
/// The server tells of the end of a request by its own clock: it may come this much late.
const SLACK: Duration = Duration::from_secs(1);
/// How long the server may collect what is there. It says at once that there is no more; where it holds some back, since enough are out, it says so at the end of this time.
const AT_HAND: Duration = Duration::from_millis(5);
/// Who has messages waits this much longer for the word that there are no more.
const LATE: Duration = Duration::from_millis(100);
/// How long it may take to end a request early.
const FAREWELL: Duration = Duration::from_secs(1);
/// The wait before the server is asked again where it has no room for one more request.
const NO_ROOM: Duration = Duration::from_millis(500);

/// The wait before a request that was lost is sent again.
const AGAIN: Duration = Duration::from_millis(50);

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// What is there, up to so many.
    AtHand { max: usize },
    /// The next one, behind those who ask for it already.
    InLine,
}

/// What came of a request.
#[derive(Debug)]
enum Heard {
    Messages(Vec<async_nats::Message>),
    /// It is over, and nothing came.
    Nothing,
    /// Others wait for all that there is: wait behind them.
    Queued,
    /// Too many wait.
    NoRoom,
    /// The consumer does not answer.
    Gone,
    /// The request was lost with its server, or the server wants it to be sent again.
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
        let at_hand = Ask::AtHand { max };
        let mut ask = at_hand;
        loop {
            let heard = self.request(filter, ask, end).await?;
            ask = at_hand;
            match heard {
                Heard::Messages(messages) => {
                    let deliveries = self.hand_out(filter, &mut spec, messages).await?;
                    if !deliveries.is_empty() {
                        return Ok(deliveries);
                    }
                }
                Heard::NoRoom => sleep(NO_ROOM.min(end.saturating_duration_since(Instant::now()))).await,
                Heard::Gone => spec = self.reopen(filter).await?,
                Heard::Lost => sleep(AGAIN).await,
                Heard::Nothing | Heard::Queued => ask = Ask::InLine,
            }
            if Instant::now() >= end {
                if !self.link.health.borrow().up {
                    let (action, source) = (format!("pull from {filter}"), "the connection is down".into());
                    return Err(BusError::Unavailable { action, source });
                }
                return Ok(Vec::new());
            }
        }
    }

    async fn request(&self, filter: &Filter, ask: Ask, end: Instant) -> Result<Heard, BusError> {
        let connections = self.link.connections();
        let (max, longest) = match ask {
            Ask::AtHand { max } => (max, AT_HAND),
            Ask::InLine => (1, LONGEST_REQUEST),
        };
        // Nothing but an open request would be sent for no time at all.
        let expires = end.saturating_duration_since(Instant::now()).clamp(AT_HAND, longest);
        let until = Instant::now() + expires;
        let (stream, consumer) = (self.names.stream(Stage::of(filter)), names::consumer(filter));
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
        let request = json!({ "batch": max, "expires": nanos(expires), "no_wait": ask != Ask::InLine });

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
                    // It may have been sent only now, over the new connection.
                    farewell(&mut inlet, &mut messages).await;
                    return Ok(if messages.is_empty() { Heard::Lost } else { Heard::Messages(messages) });
                }
                () = sleep_until(patience) => {
                    farewell(&mut inlet, &mut messages).await;
                    break;
                }
            };
            let Some(message) = heard else { return Ok(Heard::Lost) };
            match judge(&message) {
                None => messages.push(message),
                Some(_) if !messages.is_empty() => break,
                Some(heard) => return Ok(heard),
            }
            if messages.len() >= max {
                break;
            }
        }
        Ok(if messages.is_empty() { Heard::Nothing } else { Heard::Messages(messages) })
    }

    /// Makes deliveries of messages, and dead letters of those that were handed out too often.
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
            let (attempt, number) = (u32::try_from(info.delivered).unwrap_or(u32::MAX), info.stream_sequence);
            let raw = raw.message;
            let receipt = JetStreamReceipt::new(self.link.clone(), reply, spec.ack_wait());
            let Some(queue) = self.names.queue(&raw.subject) else {
                // Nobody but a stranger writes to such a subject.
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
        // What is known here may be older than what the consumer's owner has said since.
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

    /// Moves a message that was handed out too often to the dead letters.
    async fn bury(&self, message: Message, receipt: &JetStreamReceipt) -> Result<(), BusError> {
        let message = Message { attempt: message.attempt - 1, ..message };
        let (letter, why) = DeadLetter::worn(&message);
        let (queue, id, payload): (Queue, _, _) = letter.addressed(message.queue.source());
        self.publish(queue, id, payload.to_bytes()).await?;
        dead::log(&message, &why);
        receipt.term().await
    }
}

/// What a status says; nothing where it is a message.
fn judge(message: &async_nats::Message) -> Option<Heard> {
    let said = message.description.as_deref().unwrap_or_default();
    Some(match message.status? {
        StatusCode::OK => return None,
        StatusCode::NO_RESPONDERS => Heard::Gone,
        StatusCode::TIMEOUT if said == "Requests Pending" => Heard::Queued,
        StatusCode::TIMEOUT | StatusCode::NOT_FOUND => Heard::Nothing,
        _ if said == "Consumer Deleted" => Heard::Gone,
        _ if said.starts_with("Exceeded MaxWaiting") => Heard::NoRoom,
        status => {
            tracing::debug!(%status, said, "a pull request ended early");
            Heard::Lost
        }
    })
}

/// Gives up a request whose end the server has not told in time, and takes along what was on its way. What it hands out at this very moment comes again when its
/// `ack_wait` is over: the client forgets the request before the server does.
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
    // Cut off together with the connection, what was on its way is handed out again.
    let _ = timeout(FAREWELL, last).await;
}

fn id_of(raw: &async_nats::Message, number: u64) -> MessageId {
    let named = raw.headers.as_ref().and_then(|headers| headers.get(async_nats::header::NATS_MESSAGE_ID));
    named.map_or_else(|| MessageId::new(format!("unnamed-{number}")), |name| MessageId::new(name.as_str()))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
