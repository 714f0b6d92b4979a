//! The JetStream bus keeps the promises of every bus, on a real server.

use std::sync::Arc;
use std::time::Duration;

use service::Vars;
use testkit::servers::NatsFixture;

use super::{JetStreamBus, JetStreamConfig};
use crate::Bus;
use crate::conformance::Pace;

const CAPACITY: usize = 16;

/// A configuration with a namespace that nobody else has.
pub(super) fn config(url: &str, test: &str) -> JetStreamConfig {
    JetStreamConfig {
        servers: vec![url.to_owned()],
        namespace: format!("t-{}-{:x}", &test[..test.len().min(40)], std::process::id()),
        messages_per_queue: CAPACITY,
        megabytes_per_stage: 64,
        ..JetStreamConfig::default()
    }
}

async fn setup(test: &str) -> (Arc<dyn Bus>, Pace) {
    let server = NatsFixture::get().await;
    let bus = JetStreamBus::connect(config(&server.url, test), &Vars::default()).await.unwrap();
    let pace = Pace {
        tag: "jetstream".to_owned(),
        soon: Duration::from_secs(5),
        quiet: Duration::from_millis(500),
        ack_wait: Duration::from_secs(2),
        capacity: CAPACITY,
    };
    (Arc::new(bus), pace)
}

crate::conformance! { #[tokio::test] setup }
