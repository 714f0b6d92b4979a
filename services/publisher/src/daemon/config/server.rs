//! What the server makes of the settings.

use std::time::Duration;

use anyhow::Context as _;

use super::{DaemonSettings, OwnHubSettings};
use crate::access::Tokens;
use crate::metrics::PublisherMetrics;
use crate::readers::Readers;
use crate::settings::Settings;
use crate::takedowns::Takedowns;

impl DaemonSettings {
    /// The limits of the server, and the files that it reads.
    pub(crate) fn of_server(&self, metrics: PublisherMetrics) -> anyhow::Result<Settings> {
        let tokens = self.tokens.as_deref().map(Tokens::of_file).transpose().context("publisher.tokens")?;
        let takedowns = self.takedown.as_deref().map(Takedowns::of_file).transpose();
        Ok(Settings {
            connections: self.connections,
            connections_per_client: Some(self.connections_per_client).filter(|most| *most > 0),
            head_time: Duration::from_secs(self.header_timeout_seconds),
            stall_time: Duration::from_secs(self.stall_timeout_seconds),
            turns: self.max_concurrent_publications,
            turn_time: Duration::from_secs(self.turn_seconds),
            // Without a file no token is known: readers of what is published for those with tokens get 401.
            readers: Readers { tokens: Some(tokens.unwrap_or_else(Tokens::none)), networks: None },
            proxies: self.trusted_proxies.clone().into(),
            takedowns: takedowns.context("publisher.takedown")?,
            metrics,
            pinged: self.ping_hubs.clone(),
            redirect: self.redirect_seconds.map(Duration::from_secs),
            contact: self.contact.clone(),
            hub: self.own_hub.as_ref().map(OwnHubSettings::limits),
            topics: self.topics(),
            ..Settings::default()
        })
    }
}
