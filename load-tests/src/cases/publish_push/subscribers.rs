//! Subscribers of the hub: the testkit's callbacks, in the runner's own process.

use std::time::{Duration, Instant};

use anyhow::ensure;
use testkit::callbacks::{Callbacks, Delivery};
use url::form_urlencoded::Serializer;

use crate::publish_server::PublishServer;

/// How long the hub may take to verify a subscription.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Callbacks that subscribe.
pub(super) struct Subscribers {
    callbacks: Callbacks,
    paths: Vec<String>,
    most: String,
}

impl Subscribers {
    pub(super) fn start(count: u64) -> anyhow::Result<Self> {
        let paths = (0..count).map(|number| format!("/{number}")).collect();
        Ok(Self { callbacks: Callbacks::start()?, paths, most: count.to_string() })
    }

    pub(super) fn count(&self) -> usize {
        self.paths.len()
    }

    /// The options of a publisher that takes all of them, and makes no Resource List meanwhile.
    pub(super) fn options(&self) -> [&str; 9] {
        [
            "--list-pause",
            "24h",
            "--own-hub",
            "--allow-address",
            "127.0.0.0/8",
            "--hub-subscribers",
            &self.most,
            "--hub-subscribers-per-host",
            &self.most,
        ]
    }

    /// Subscribes each, and waits until the hub counts all.
    pub(super) async fn subscribe(&self, server: &PublishServer) -> anyhow::Result<()> {
        let base = server.base();
        let (hub, topic) = (format!("{base}hub"), format!("{base}notifications.xml"));
        let client = reqwest::Client::builder().no_proxy().build()?;
        for path in &self.paths {
            let callback = self.callbacks.url(path);
            let form = [("hub.mode", "subscribe"), ("hub.topic", &*topic), ("hub.callback", &*callback)];
            let body = Serializer::new(String::new()).extend_pairs(form).finish();
            let begun = Instant::now();
            loop {
                let request = client.post(&hub).header("content-type", "application/x-www-form-urlencoded");
                let status = request.body(body.clone()).send().await?.status();
                if status == 202 {
                    break;
                }
                // It verifies a few at a time, and says so to others.
                let waits = status == 503 && begun.elapsed() < PATIENCE;
                ensure!(waits, "the hub answers {status} to {callback}");
                tokio::time::sleep(LOOK).await;
            }
        }
        let begun = Instant::now();
        let all = format!("subscribers {}", self.count());
        while !server.get("hub")?.lines().any(|line| line == all) {
            ensure!(begun.elapsed() < PATIENCE, "the hub has not verified all subscribers");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// What a subscriber took behind its first `count` deliveries, and how many came by now.
    pub(super) fn taken_after(&self, number: usize, count: usize) -> (Vec<Delivery>, usize) {
        let path = &self.paths[number];
        let by_now = self.callbacks.count(path);
        let mut taken = self.callbacks.taken_after(path, count);
        // One that comes between the two looks is for the next time.
        taken.truncate(by_now - count);
        (taken, by_now)
    }
}
