//! Counts the requests that a fetcher with many idle origin queues sends to the server. For orientation only.
//!
//! ```sh
//! cargo run --release -p bus --example idle_origins -- 1000
//! ```
#![allow(missing_docs, clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bus::{
    Bus, BusError, ConsumerSpec, Filter, HandlerResult, JetStreamBus, JetStreamConfig, MessageId, Queue,
};
use futures::{StreamExt, TryStreamExt, stream};
use model::Origin;
use secrets::Vars;
use testkit::servers::NatsFixture;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The duration of the count.
const COUNTED: Duration = Duration::from_secs(30);

fn origin(n: usize) -> Origin {
    format!("https://h{n}.example.org").parse().expect("an origin")
}

fn spec(n: usize) -> ConsumerSpec {
    ConsumerSpec::new(Filter::Fetch(origin(n)), 4, Duration::from_secs(60), 5)
}

#[tokio::main]
async fn main() -> Result<(), BusError> {
    let origins: usize =
        std::env::args().nth(1).map_or(1000, |text| text.parse().expect("a number of origins"));
    let server = NatsFixture::get().await;
    let namespace = format!("idle-{}", std::process::id());
    let config = JetStreamConfig { servers: vec![server.url], namespace, ..Default::default() };
    let owner = JetStreamBus::connect(config.clone(), &Vars::default()).await?;
    let fetcher = JetStreamBus::connect(config, &Vars::default()).await?;
    let begin = Instant::now();
    let open = stream::iter(0..origins).map(|n| owner.open(spec(n))).buffer_unordered(16);
    open.try_for_each(|()| std::future::ready(Ok(()))).await?;
    println!("{origins} origins opened in {:.1} s", begin.elapsed().as_secs_f64());

    let stop = CancellationToken::new();
    let done = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&done);
    let bus: Arc<dyn Bus> = Arc::new(fetcher.clone());
    let worker = tokio::spawn(bus::worker::run_origins(bus, stop.clone(), move |_| {
        noted.fetch_add(1, Ordering::SeqCst);
        async { HandlerResult::Done }
    }));
    sleep(COUNTED / 2).await;

    let statistics = fetcher.context().client().statistics();
    let count =
        || [&statistics.out_messages, &statistics.in_messages].map(|count| count.load(Ordering::Relaxed));
    let before = count();
    sleep(COUNTED).await;
    let [sent, received] = count();
    let rate = |now: u64, before: u64| (now - before) as f64 / COUNTED.as_secs_f64();
    println!(
        "idle: {:.0} messages/s sent, {:.0}/s received",
        rate(sent, before[0]),
        rate(received, before[1])
    );

    let begin = Instant::now();
    let source: model::SourceId = "s".parse().expect("a source id");
    let publish = |n| {
        let queue = Queue::Fetch { origin: origin(n), source: source.clone() };
        owner.publish(queue, MessageId::new(format!("m{n}")), "a job".into())
    };
    let published = stream::iter(0..origins).map(publish).buffer_unordered(64);
    published.try_for_each(|_| std::future::ready(Ok(()))).await?;
    while done.load(Ordering::SeqCst) < origins {
        sleep(Duration::from_millis(10)).await;
    }
    println!("one job in each queue: all worked on within {:.2} s", begin.elapsed().as_secs_f64());
    stop.cancel();
    worker.await.expect("the worker did not panic")
}
