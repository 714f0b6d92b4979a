//! The JetStream bus keeps the promises of every bus, on a real server.

mod faults;
mod fleet;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::{Origin, SourceId};
use secrets::Vars;
use testkit::servers::NatsFixture;
use tokio_util::sync::CancellationToken;

use super::{JetStreamBus, JetStreamConfig};
use crate::conformance_tests::Pace;
use crate::{Bus, ConsumerSpec, Delivery, Depth, Filter, MessageId, OriginQueues, Queue};

const CAPACITY: usize = 16;
const ACK_WAIT: Duration = Duration::from_secs(2);

/// A configuration with a unique namespace.
fn config(url: &str, test: &str) -> JetStreamConfig {
    JetStreamConfig {
        servers: vec![url.to_owned()],
        namespace: format!("t-{}-{:x}", &test[..test.len().min(40)], std::process::id()),
        messages_per_queue: CAPACITY,
        // The server reserves the space, and all tests share its disk.
        max_megabytes_per_stream: 0,
        ..JetStreamConfig::default()
    }
}

async fn setup(test: &str) -> (Arc<dyn Bus>, Pace) {
    let server = NatsFixture::get().await;
    let bus = JetStreamBus::connect(config(&server.url, test), &Vars::default()).await.unwrap();
    let pace = Pace {
        tag: "jetstream".to_owned(),
        soon: Duration::from_secs(20),
        quiet: Duration::from_millis(500),
        ack_wait: ACK_WAIT,
        capacity: CAPACITY,
    };
    (Arc::new(bus), pace)
}

pub(super) async fn connect(url: &str, test: &str) -> JetStreamBus {
    JetStreamBus::connect(config(url, test), &Vars::default()).await.unwrap()
}

fn source() -> SourceId {
    "s".parse().unwrap()
}

fn verify() -> Queue {
    Queue::Verify { source: source() }
}

fn verify_spec(max_in_flight: usize) -> ConsumerSpec {
    ConsumerSpec::new(Filter::Verify, max_in_flight, ACK_WAIT, 5)
}

fn origin(n: usize) -> Origin {
    format!("http://h{n}.example.org").parse().unwrap()
}

fn fetch(n: usize) -> Queue {
    Queue::Fetch { origin: origin(n), source: source() }
}

fn origin_spec(n: usize, max_in_flight: usize) -> ConsumerSpec {
    ConsumerSpec::new(Filter::Fetch(origin(n)), max_in_flight, ACK_WAIT, 5)
}

async fn publish(bus: &JetStreamBus, queue: Queue, id: &str) {
    bus.publish(queue, MessageId::new(id), id.to_owned().into()).await.unwrap();
}

crate::conformance_tests::conformance! { #[tokio::test] setup }
