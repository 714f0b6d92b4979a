//! Prints how fast one connection publishes, pulls and acknowledges messages of 1 KB. For orientation only: client and
//! server share this machine.
//!
//! ```sh
//! cargo run --release -p bus --example rates
//! ```
#![allow(missing_docs, clippy::print_stdout)]

use std::time::Duration;

use bus::{Bus, BusError, ConsumerSpec, Filter, JetStreamBus, JetStreamConfig, MessageId, Queue};
use futures::{StreamExt, TryStreamExt, stream};
use secrets::Vars;
use testkit::servers::NatsFixture;
use tokio::time::Instant;

const MESSAGES: usize = 20_000;
/// Concurrent calls.
const SIDE_BY_SIDE: usize = 256;
const BATCH: usize = 256;

#[tokio::main]
async fn main() -> Result<(), BusError> {
    let server = NatsFixture::get().await;
    let namespace = format!("rates-{}", std::process::id());
    let servers = vec![server.url];
    let config = JetStreamConfig { servers, namespace, messages_per_queue: MESSAGES, ..Default::default() };
    let bus = JetStreamBus::connect(config, &Vars::default()).await?;
    let spec = ConsumerSpec::new(Filter::Verify, 2 * BATCH, Duration::from_secs(60), 5);
    bus.open(spec).await?;
    let queue = Queue::Verify { source: "s".parse().expect("a source id") };
    let payload = bytes::Bytes::from(vec![b'x'; 1024]);

    let begin = Instant::now();
    stream::iter(0..MESSAGES)
        .map(|n| bus.publish(queue.clone(), MessageId::new(format!("m{n}")), payload.clone().into()))
        .buffer_unordered(SIDE_BY_SIDE)
        .try_for_each(|_| std::future::ready(Ok(())))
        .await?;
    report("published", begin);

    let begin = Instant::now();
    let mut done = 0;
    while done < MESSAGES {
        let pulled = bus.pull(&Filter::Verify, BATCH, Duration::from_secs(5)).await?;
        done += pulled.len();
        stream::iter(&pulled)
            .map(|delivery| delivery.ack())
            .buffer_unordered(SIDE_BY_SIDE)
            .try_for_each(|()| std::future::ready(Ok(())))
            .await?;
    }
    report("pulled and acknowledged", begin);
    Ok(())
}

fn report(what: &str, begin: Instant) {
    let seconds = begin.elapsed().as_secs_f64();
    println!("{what}: {MESSAGES} in {seconds:.2} s, {:.0}/s", MESSAGES as f64 / seconds);
}
