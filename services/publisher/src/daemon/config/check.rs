//! Refuses settings that make no sense, by their name.

use anyhow::{bail, ensure};
use url::Url;

use super::DaemonSettings;
use crate::settings::is_mail;

/// How long a URL of a bucket is valid, at least and at most, in seconds. Buckets take none for longer than seven days.
const LEAST_REDIRECT: u64 = 60;
const LONGEST_REDIRECT: u64 = 7 * 24 * 3_600;

impl DaemonSettings {
    /// Refuses what no publisher can do.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        check_hubs("hubs", &self.hubs)?;
        check_hubs("ping_hubs", &self.ping_hubs)?;
        if let Some(both) = self.ping_hubs.iter().find(|hub| self.hubs.contains(hub)) {
            bail!("publisher.ping_hubs: {both} is in publisher.hubs too; name it in one of them");
        }
        let lasts = self.redirect_seconds.unwrap_or(LEAST_REDIRECT);
        ensure!(
            (LEAST_REDIRECT..=LONGEST_REDIRECT).contains(&lasts),
            "publisher.redirect_seconds is {LEAST_REDIRECT} to {LONGEST_REDIRECT}, not {lasts}: buckets take no URL \
             for longer"
        );
        if let Some(own_hub) = &self.own_hub {
            own_hub.check()?;
        }
        if let Some(contact) = &self.contact {
            ensure!(is_mail(contact), "publisher.contact is a mail address, such as archive@example.org");
        }
        let ranges = [
            ("connections", self.connections as u64, 8, 65_536),
            ("connections_per_client", self.connections_per_client as u64, 0, 65_536),
            ("header_timeout_seconds", self.header_timeout_seconds, 1, 3_600),
            ("stall_timeout_seconds", self.stall_timeout_seconds, 1, 3_600),
            ("max_concurrent_publications", self.max_concurrent_publications as u64, 1, 256),
            ("turn_seconds", self.turn_seconds, 1, 3_600),
            ("max_open_catalogs", self.max_open_catalogs as u64, 1, 10_000),
        ];
        for (field, value, least, most) in ranges {
            ensure!((least..=most).contains(&value), "publisher.{field} is {least} to {most}, not {value}");
        }
        Ok(())
    }

    /// Refuses to lead readers to a bucket that there is not.
    pub(crate) fn check_redirect(&self, store: &str) -> anyhow::Result<()> {
        let has_bucket = store.starts_with("s3://");
        ensure!(
            self.redirect_seconds.is_none() || has_bucket,
            "publisher.redirect_seconds leads readers to a bucket, and store.url is {store}; leave it out"
        );
        Ok(())
    }
}

/// Refuses hubs that cannot be posted to, or whose URL has a secret.
fn check_hubs(field: &str, hubs: &[Url]) -> anyhow::Result<()> {
    for hub in hubs {
        let is_plain = hub.username().is_empty() && hub.password().is_none();
        ensure!(is_plain, "publisher.{field}: a URL cannot have a user or a password, since readers see it");
        let is_hub = matches!(hub.scheme(), "http" | "https") && hub.has_host();
        ensure!(is_hub, "publisher.{field}: {hub} cannot be a hub; name an http or https URL");
    }
    Ok(())
}
