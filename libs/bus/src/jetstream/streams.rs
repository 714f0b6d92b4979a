//! The streams of the stages. A process with the right to do so creates or updates them when it starts.

use async_nats::jetstream::kv;
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType};

use super::config::JetStreamConfig;
use super::connection::{Failure, Link};
use super::keys::TRACE;
use super::names::{Names, Stage};
use crate::{BusError, MAX_PAYLOAD};

/// Room for the headers of a message, in bytes.
const HEADERS: usize = 4096;
/// NATS reads -1 as unlimited.
const UNLIMITED: i64 = -1;
/// The consumer limit of a stream. The server's default of 1,000 would also limit the number of origins.
const MAX_CONSUMERS: i32 = 100_000;

/// Creates all streams, or updates them where the configuration has changed.
pub(super) async fn ensure(link: &Link, names: &Names, config: &JetStreamConfig) -> Result<(), BusError> {
    for stage in Stage::ALL {
        let wanted = stream_config(names, config, stage);
        let action = || format!("create stream {}", wanted.name);
        link.with_retries(action, || async {
            use async_nats::jetstream::context::CreateStreamErrorKind::JetStream;
            match link.context.create_or_update_stream(wanted.clone()).await {
                Ok(_) => Ok(()),
                Err(error) => Err(match error.kind() {
                    JetStream(answer) => Failure::answered(&answer),
                    _ => Failure::temporary(error),
                }),
            }
        })
        .await?;
    }
    Ok(())
}

/// Creates the bucket that lists the open origin queues.
pub(super) async fn ensure_origins(
    link: &Link,
    names: &Names,
    config: &JetStreamConfig,
) -> Result<kv::Store, BusError> {
    let description = "Open lanes, each with its limit".to_owned();
    ensure_bucket(link, config, kv::Config { bucket: names.origins(), description, ..Default::default() })
        .await
}

/// Creates the bucket of the acquired permits and of the locks of origin queues.
pub(super) async fn ensure_permits(
    link: &Link,
    names: &Names,
    config: &JetStreamConfig,
) -> Result<kv::Store, BusError> {
    let description = "Places of requests that no job asks for".to_owned();
    let limit_markers = Some(TRACE);
    let wanted = kv::Config { bucket: names.permits(), description, limit_markers, ..Default::default() };
    ensure_bucket(link, config, wanted).await
}

async fn ensure_bucket(
    link: &Link,
    config: &JetStreamConfig,
    wanted: kv::Config,
) -> Result<kv::Store, BusError> {
    if !config.make_streams {
        let action = || format!("find bucket {}, which the scheduler makes", wanted.bucket);
        let find = || async { link.context.get_key_value(&wanted.bucket).await.map_err(Failure::temporary) };
        return link.with_retries(action, find).await;
    }
    let history = 1;
    let storage = StorageType::File;
    let num_replicas = config.replicas;
    let wanted = kv::Config { history, storage, num_replicas, ..wanted };
    let action = || format!("create bucket {}", wanted.bucket);
    link.with_retries(action, || async {
        link.context.create_or_update_key_value(wanted.clone()).await.map_err(Failure::temporary)
    })
    .await
}

fn stream_config(names: &Names, config: &JetStreamConfig, stage: Stage) -> stream::Config {
    // Dead letters may never be read, so the oldest makes room. In all other stages the publisher waits.
    let dead = stage == Stage::Dead;
    let megabytes =
        i64::try_from(config.max_megabytes_per_stream).unwrap_or(i64::MAX).saturating_mul(1 << 20);
    stream::Config {
        name: names.stream(stage),
        subjects: vec![names.subjects(stage)],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        num_replicas: config.replicas,
        discard: if dead { DiscardPolicy::Old } else { DiscardPolicy::New },
        discard_new_per_subject: !dead,
        max_messages_per_subject: i64::try_from(config.messages_per_queue).unwrap_or(i64::MAX),
        max_messages: UNLIMITED,
        max_bytes: if megabytes == 0 { UNLIMITED } else { megabytes },
        max_message_size: i32::try_from(MAX_PAYLOAD + HEADERS).unwrap_or(i32::MAX),
        max_consumers: MAX_CONSUMERS,
        duplicate_window: config.duplicate_window(),
        ..Default::default()
    }
}
