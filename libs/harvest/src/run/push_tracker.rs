//! What hubs report to a run: its channels, the push lag of reported changes, and missed changes.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use model::{Listing, SetId, SetRecord};
use resourcesync::Capability;

use crate::run::push_lag::PushLag;

/// The channels of a run, and the changes that came by them.
#[derive(Debug)]
pub(crate) struct PushTracker {
    /// Channels that the sets offered at the start, without fragments.
    topics: HashSet<String>,
    /// Number of missed changes of each set: a hub should have reported them, and did not.
    pub(crate) missed: HashMap<SetId, u64>,
    /// Times of reported changes that the next batch settles.
    settling: Vec<Timestamp>,
    lag: PushLag,
}

impl PushTracker {
    /// The channels that these sets offer.
    pub(crate) fn of<'a>(sets: impl Iterator<Item = &'a SetRecord>, lag: PushLag) -> Self {
        let topics = sets.flat_map(|set| set.documents(&Capability::ChangeNotification));
        let topics = topics.map(|topic| topic_of(topic).to_owned()).collect();
        Self { topics, missed: HashMap::new(), settling: Vec::new(), lag }
    }

    /// Whether the document with this URI came by a channel.
    pub(crate) fn has_delivered(&self, document: &str) -> bool {
        document.split_once('#').is_some_and(|(topic, _)| self.topics.contains(topic))
    }

    /// Records a change that the next batch settles, if a notification reported it.
    pub(crate) fn note_settled(&mut self, listing: &Listing) {
        if let Some(change) = listing.change_time
            && self.has_delivered(&listing.document)
        {
            self.settling.push(change);
        }
    }

    /// Counts the recorded changes: they are durable.
    pub(crate) fn count_lags(&mut self, now: Timestamp) {
        for change in self.settling.drain(..) {
            self.lag.observe(change, now);
        }
    }
}

/// A channel's URI without its fragment.
pub(crate) fn topic_of(uri: &str) -> &str {
    uri.split('#').next().unwrap_or_default()
}
