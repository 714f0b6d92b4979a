//! Configuration of the control store.

use std::time::Duration;

use serde::Deserialize;

use crate::error::ControlError;

/// The most revisions a key of NATS KV has.
const MOST_REVISIONS: u8 = 64;

/// Servers and settings of the control store. All processes of a fleet have the same.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The servers, `nats://host:port` or `tls://host:port`. One server of a cluster is enough to connect.
    pub servers: Vec<String>,
    /// The prefix of the bucket names, so that fleets can share servers: letters, digits, `_` and `-`.
    pub namespace: String,
    /// Whether this process creates the buckets, and updates them when `replicas` or `runs_kept` change. Otherwise it
    /// uses the existing ones, and fails temporarily if one does not exist yet.
    pub make_buckets: bool,
    /// Replicas of each value in a cluster, 1 to 5. More than 1 survives the loss of a server.
    pub replicas: usize,
    /// How long a lease lasts without renewal, in seconds, at least 1. After the death of its owner, a Source stays
    /// without one for about that long.
    pub lease_seconds: u64,
    /// How long a process without a heartbeat counts as alive, in seconds, at least 1.
    pub member_seconds: u64,
    /// How many past runs are stored for each Source, 1 to 64.
    pub runs_kept: u8,
    /// The timeout of a request to the server, in seconds, at least 1.
    pub request_seconds: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            servers: vec!["nats://127.0.0.1:4222".to_owned()],
            namespace: "thresher".to_owned(),
            make_buckets: true,
            replicas: 1,
            lease_seconds: 5,
            member_seconds: 5,
            runs_kept: 20,
            request_seconds: 5,
        }
    }
}

impl Config {
    /// Rejects an invalid configuration.
    pub(crate) fn check(&self) -> Result<(), ControlError> {
        let refuse = |why: &str| Err(ControlError::Config(why.to_owned()));
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if self.servers.is_empty() {
            return refuse("servers is empty: name at least one, such as nats://127.0.0.1:4222");
        }
        if self.namespace.is_empty() || !self.namespace.chars().all(named) {
            return refuse("namespace is made of letters, digits, _ and -, and not empty");
        }
        if !(1..=5).contains(&self.replicas) {
            return refuse("replicas is 1 to 5");
        }
        if !(1..=3600).contains(&self.lease_seconds) || !(1..=3600).contains(&self.member_seconds) {
            return refuse("lease_seconds and member_seconds are 1 to 3600");
        }
        if !(1..=MOST_REVISIONS).contains(&self.runs_kept) {
            return refuse("runs_kept is 1 to 64");
        }
        if !(1..=60).contains(&self.request_seconds) {
            return refuse("request_seconds is 1 to 60");
        }
        Ok(())
    }

    pub(crate) fn lease_ttl(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }

    pub(crate) fn member_ttl(&self) -> Duration {
        Duration::from_secs(self.member_seconds)
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_right_and_each_slip_is_named() {
        Config::default().check().unwrap();
        type Slip = fn(&mut Config);
        let slips: [(Slip, &str); 6] = [
            (|c| c.servers.clear(), "servers"),
            (|c| c.namespace = "a.b".to_owned(), "namespace"),
            (|c| c.replicas = 0, "replicas"),
            (|c| c.lease_seconds = 0, "lease_seconds"),
            (|c| c.runs_kept = 65, "runs_kept"),
            (|c| c.request_seconds = 0, "request_seconds"),
        ];
        for (slip, name) in slips {
            let mut config = Config::default();
            slip(&mut config);
            let message = config.check().unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
    }
}
