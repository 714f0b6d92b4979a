//! Consumers: opened, changed, closed. There is one for each filter, and the fleet shares it.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::datetime::DateTime;
use async_nats::jetstream::consumer::{self, AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::stream::{ConsumerErrorKind, ConsumerUpdateErrorKind};
use futures::TryStreamExt;
use model::SourceId;
use tokio::time::sleep;

use super::Shared;
use super::connection::Failure;
use super::names::{self, Stage};
use crate::{BusError, ConsumerSpec, Depth, Filter};

/// Metadata key of a consumer for its delivery limit. The server's own limit would leave the message in the stream for
/// ever, and advise only clients that listen at that moment. Here the worker whose pull exceeds the limit dead-letters
/// it.
const MAX_DELIVER: &str = "thresher-max-deliver";
/// Metadata key of a consumer for the limit of its origin. Permits lower the limit that the server enforces.
const MAX_IN_FLIGHT: &str = "thresher-max-in-flight";
/// Pull requests that may wait on one consumer: as many as there are workers for it in the fleet.
const MAX_WAITING: i64 = 4096;
/// The wait before asking again, when an existing consumer does not answer.
const AGAIN: Duration = Duration::from_millis(100);

impl Shared {
    pub(super) async fn open(&self, spec: ConsumerSpec) -> Result<(), BusError> {
        let filter = spec.filter();
        let listed = match filter {
            Filter::Fetch(origin) => self.origins.get(origin).as_ref() == Some(&spec),
            _ => true,
        };
        if listed && self.opened_spec(filter).as_ref() == Some(&spec) {
            return Ok(());
        }
        self.make(&spec).await?;
        if let Filter::Fetch(origin) = filter {
            self.origins.put(&self.link, origin, &spec).await?;
        }
        self.opened().insert(filter.clone(), spec);
        Ok(())
    }

    /// Closes a consumer that has no messages. Messages that are published meanwhile are found afterwards.
    pub(super) async fn close(&self, filter: &Filter) -> Result<bool, BusError> {
        if !self.is_empty(filter).await? {
            return Ok(false);
        }
        let known = self.opened().remove(filter);
        let spec = match known {
            Some(spec) => Some(spec),
            None => self.ask_spec(filter).await?,
        };
        // Remove it from the list first, or a worker that misses the consumer would open it again.
        if let Filter::Fetch(origin) = filter {
            self.origins.remove(&self.link, origin).await?;
        }
        self.delete(filter).await?;
        if let Some(spec) = spec
            && self.waiting(filter).await? > 0
        {
            self.open(spec).await?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Reopens origin queues that another process closed while this process was publishing to them.
    pub(super) async fn reopen_origins(&self) {
        let listed = self.origins.subscribe().borrow().clone();
        let is_closed =
            |filter: &Filter| matches!(filter, Filter::Fetch(origin) if !listed.contains_key(origin));
        let closed: Vec<ConsumerSpec> = {
            let mut opened = self.opened();
            let closed: Vec<Filter> = opened.keys().filter(|filter| is_closed(filter)).cloned().collect();
            closed.iter().filter_map(|filter| opened.remove(filter)).collect()
        };
        for spec in closed {
            let filter = spec.filter().clone();
            let reopened = match self.waiting(&filter).await {
                Ok(0) => Ok(()),
                Ok(_) => self.open(spec).await,
                Err(error) => Err(error),
            };
            if let Err(error) = reopened {
                tracing::error!(%error, %filter, "an origin queue was closed with messages in it, and cannot be opened again");
            }
        }
    }

    pub(super) async fn depth(&self, filter: &Filter) -> Result<Depth, BusError> {
        Ok(match self.info(filter).await? {
            Some(info) => Depth {
                waiting: usize::try_from(info.num_pending).unwrap_or(usize::MAX),
                in_flight: info.num_ack_pending,
            },
            None => Depth { waiting: self.waiting(filter).await?, in_flight: 0 },
        })
    }

    /// The spec of a filter's consumer: as known to this process, or from the list of origin queues, or from the
    /// server.
    pub(super) async fn spec(&self, filter: &Filter) -> Result<ConsumerSpec, BusError> {
        let known = match filter {
            Filter::Fetch(origin) => self.origins.get(origin),
            _ => self.opened_spec(filter),
        };
        if let Some(spec) = known {
            return Ok(spec);
        }
        match self.ask_spec(filter).await? {
            Some(spec) => Ok(spec),
            None => self.reopen(filter).await,
        }
    }

    /// The spec of a consumer, as the server knows it.
    pub(super) async fn ask_spec(&self, filter: &Filter) -> Result<Option<ConsumerSpec>, BusError> {
        Ok(self.info(filter).await?.map(|info| spec_of(filter, &info.config)))
    }

    /// Recreates a consumer that does not answer but should exist, because the server drops consumers that were idle
    /// for long.
    pub(super) async fn reopen(&self, filter: &Filter) -> Result<ConsumerSpec, BusError> {
        if let Some(spec) = self.ask_spec(filter).await? {
            sleep(AGAIN).await;
            return Ok(spec);
        }
        let wanted = match filter {
            Filter::Fetch(origin) => self.origins.ask(&self.link, origin).await?,
            _ => self.opened_spec(filter),
        };
        let spec = wanted.ok_or_else(|| BusError::NotOpen { filter: filter.clone() })?;
        self.make(&spec).await?;
        Ok(spec)
    }

    /// Recreates all that this process needs, after a server has lost its store.
    pub(super) async fn restore(&self) {
        // Concurrent callers retry anyway.
        let Ok(_alone) = self.restoring.try_lock() else { return };
        let restored = async {
            if self.config.make_streams {
                super::streams::ensure(&self.link, &self.names, &self.config).await?;
            }
            super::streams::ensure_origins(&self.link, &self.names, &self.config).await?;
            super::streams::ensure_permits(&self.link, &self.names, &self.config).await?;
            let opened: Vec<ConsumerSpec> = self.opened().values().cloned().collect();
            for spec in opened {
                self.make(&spec).await?;
                if let Filter::Fetch(origin) = spec.filter() {
                    self.origins.put(&self.link, origin, &spec).await?;
                }
            }
            Ok::<(), BusError>(())
        };
        if let Err(error) = restored.await {
            tracing::warn!(%error, "cannot make the streams of the message bus anew");
        }
    }

    /// Creates or changes a consumer.
    async fn make(&self, spec: &ConsumerSpec) -> Result<(), BusError> {
        match spec.filter() {
            Filter::Fetch(origin) => self.settle(origin, Some(spec)).await,
            filter => self.create(&self.consumer_config(spec), filter).await,
        }
    }

    pub(super) async fn create(&self, config: &pull::Config, filter: &Filter) -> Result<(), BusError> {
        let stream = self.names.stream(Stage::of(filter));
        self.about_consumer("open", filter, || async {
            let created = self.link.context.create_consumer_on_stream(config.clone(), stream.as_str()).await;
            created.map(drop).map_err(|error| match error.kind() {
                ConsumerErrorKind::JetStream(answer) if answer.code() != 404 => Failure::answered(&answer),
                _ => Failure::temporary(error),
            })
        })
        .await
    }

    /// Changes a consumer, unless it is gone by now.
    pub(super) async fn update(&self, config: &pull::Config, filter: &Filter) -> Result<(), BusError> {
        let stream = self.stream(Stage::of(filter));
        self.about_consumer("change", filter, || async {
            let Err(error) = stream.update_consumer(config.clone()).await else { return Ok(()) };
            match error.kind() {
                ConsumerUpdateErrorKind::DoesNotExist => Ok(()),
                ConsumerUpdateErrorKind::JetStream(answer) if answer.code() != 404 => {
                    Err(Failure::answered(&answer))
                }
                _ => Err(Failure::temporary(error)),
            }
        })
        .await
    }

    /// Pauses a consumer until a time of the server's clock. Returns whether that time is still to come. A consumer
    /// that is gone returns true.
    pub(super) async fn let_rest(&self, until: DateTime, filter: &Filter) -> Result<bool, BusError> {
        let stream = self.stream(Stage::of(filter));
        let consumer = names::consumer(filter);
        let action = || format!("let the consumer of {filter} rest");
        let pause = || async {
            let error = match stream.pause_consumer(&consumer, until).await {
                Ok(answer) => return Ok(answer.paused),
                Err(error) => error,
            };
            match error.kind() {
                ConsumerErrorKind::JetStream(answer) if answer.code() == 404 => Ok(true),
                ConsumerErrorKind::JetStream(answer) => Err(Failure::answered(&answer)),
                _ => Err(Failure::temporary(error)),
            }
        };
        self.link.with_retries(action, pause).await
    }

    async fn delete(&self, filter: &Filter) -> Result<(), BusError> {
        let stream = self.stream(Stage::of(filter));
        let consumer = names::consumer(filter);
        self.about_consumer("close", filter, || async {
            let Err(error) = stream.delete_consumer(&consumer).await else { return Ok(()) };
            match error.kind() {
                ConsumerErrorKind::JetStream(answer) if answer.code() == 404 => Ok(()),
                _ => Err(Failure::temporary(error)),
            }
        })
        .await
    }

    pub(super) async fn info(&self, filter: &Filter) -> Result<Option<consumer::Info>, BusError> {
        let stream = self.stream(Stage::of(filter));
        let consumer = names::consumer(filter);
        self.about_consumer("look up", filter, || async {
            match stream.consumer_info(&consumer).await {
                Ok(info) => Ok(Some(info)),
                Err(error) if matches!(error.kind(), ConsumerInfoErrorKind::NotFound) => Ok(None),
                Err(error) => Err(Failure::temporary(error)),
            }
        })
        .await
    }

    /// Retries a request about a consumer.
    async fn about_consumer<T, F>(
        &self,
        verb: &str,
        filter: &Filter,
        attempt: impl FnMut() -> F,
    ) -> Result<T, BusError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        self.link.with_retries(|| format!("{verb} the consumer of {filter}"), attempt).await
    }

    /// Whether a filter has no messages, neither queued nor in flight.
    async fn is_empty(&self, filter: &Filter) -> Result<bool, BusError> {
        let out = self.info(filter).await?.map_or(0, |info| info.num_ack_pending);
        Ok(out == 0 && self.waiting(filter).await? == 0)
    }

    /// Messages in the queues of a filter, delivered or not.
    async fn waiting(&self, filter: &Filter) -> Result<usize, BusError> {
        self.count(Stage::of(filter), &filter.subject()).await
    }

    /// Messages of a Source in the queues of all stages except Change Notifications and dead letters.
    pub(super) async fn under_way(&self, source: &SourceId) -> Result<usize, BusError> {
        let mut sum = 0;
        // In the order of the pipeline, so that a message that leaves a stage is counted in a later one.
        for (stage, subject) in [
            (Stage::Fetch, format!("fetch.*.{source}")),
            (Stage::Open, format!("open.{source}")),
            (Stage::Unpack, format!("unpack.{source}")),
            (Stage::Verify, format!("verify.{source}")),
            (Stage::Outcomes, format!("outcomes.{source}")),
        ] {
            sum += self.count(stage, &subject).await?;
        }
        Ok(sum)
    }

    async fn count(&self, stage: Stage, subject: &str) -> Result<usize, BusError> {
        let stream = self.stream(stage);
        let subject = self.names.subject(subject);
        let action = || format!("count the messages of {subject}");
        self.link
            .with_retries(action, || async {
                let subjects = stream.info_with_subjects(&subject).await.map_err(Failure::temporary)?;
                let count = |sum, (_, count)| std::future::ready(Ok(sum + count));
                subjects.try_fold(0, count).await.map_err(Failure::temporary)
            })
            .await
    }

    pub(super) fn consumer_config(&self, spec: &ConsumerSpec) -> pull::Config {
        let filter = spec.filter();
        let idle = match filter {
            // These stages always have workers, or will have some soon.
            Filter::Verify | Filter::Open | Filter::Unpack => Duration::ZERO,
            Filter::Fetch(_) | Filter::Outcomes(_) | Filter::Notices(_) | Filter::Dead(_) => {
                self.config.idle_consumer()
            }
        };
        pull::Config {
            durable_name: Some(names::consumer(filter)),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: spec.ack_wait(),
            max_deliver: -1,
            filter_subject: self.names.subject(&filter.subject()),
            max_ack_pending: i64::try_from(spec.max_in_flight()).unwrap_or(i64::MAX),
            max_waiting: MAX_WAITING,
            inactive_threshold: idle,
            metadata: HashMap::from([
                (MAX_DELIVER.to_owned(), spec.max_deliver().to_string()),
                (MAX_IN_FLIGHT.to_owned(), spec.max_in_flight().to_string()),
            ]),
            ..Default::default()
        }
    }
}

pub(super) fn spec_of(filter: &Filter, config: &consumer::Config) -> ConsumerSpec {
    let kept = |name| config.metadata.get(name);
    let handed_out = usize::try_from(config.max_ack_pending).unwrap_or(usize::MAX);
    let max_in_flight = kept(MAX_IN_FLIGHT).and_then(|text| text.parse().ok()).unwrap_or(handed_out);
    let max_deliver = kept(MAX_DELIVER).and_then(|text| text.parse().ok()).unwrap_or(u32::MAX);
    ConsumerSpec::new(filter.clone(), max_in_flight, config.ack_wait, max_deliver)
}
