//! When records were withdrawn. The change log does not know it, and harvesters ask for what changed since a time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::ResourceUri;
use oaipmh::BaseUrl;
use serde::{Deserialize, Serialize};

use crate::place::{OWN, lasting};
use crate::takedown::Takedown;
use crate::work::micros;
use crate::{Publication, PublishError};

/// The most resources: withdrawn ones, of which a takedown has at most half as many, and those of earlier takedowns.
const MOST: usize = 20_000;

/// When resources were withdrawn, and when withdrawn ones were published again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawals {
    #[serde(default)]
    by_uri: BTreeMap<ResourceUri, Withdrawal>,
}

/// What became of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Withdrawal {
    /// Since when.
    pub(super) at: Timestamp,
    /// Whether it is published again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_over: bool,
}

impl Withdrawals {
    /// With what is withdrawn by now of the repository with this base URL. None if nothing is new.
    #[must_use]
    pub fn updated(&self, base: &BaseUrl, takedown: &Takedown, now: Timestamp) -> Option<Self> {
        let is_record = |uri: &ResourceUri| base.record_of(uri.as_str()).is_some();
        let mut by_uri = self.by_uri.clone();
        // An earlier version noted those of all Sources of a server.
        by_uri.retain(|uri, _| is_record(uri));
        let now = micros(now);
        let takedown = takedown.now();
        for uri in takedown.uris().iter().filter(|uri| is_record(uri)) {
            let known = by_uri.get(uri).is_some_and(|known| !known.is_over);
            if !known {
                by_uri.insert(uri.clone(), Withdrawal { at: now, is_over: false });
            }
        }
        for (uri, known) in &mut by_uri {
            if !known.is_over && !takedown.contains(uri) {
                *known = Withdrawal { at: now, is_over: true };
            }
        }
        if by_uri == self.by_uri {
            return None;
        }
        while by_uri.len() > MOST {
            // Those that are published again have waited longest to be asked for.
            let over = by_uri.iter().filter(|(_, known)| known.is_over);
            let Some(oldest) = over.min_by_key(|(_, known)| known.at).map(|(uri, _)| uri.clone()) else {
                break;
            };
            by_uri.remove(&oldest);
        }
        Some(Self { by_uri })
    }

    /// What became of a resource.
    pub(super) fn of(&self, uri: &ResourceUri) -> Option<Withdrawal> {
        self.by_uri.get(uri).copied()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ResourceUri, Withdrawal)> {
        self.by_uri.iter().map(|(uri, known)| (uri, *known))
    }
}

impl Publication {
    /// When resources were withdrawn, as it was saved last.
    ///
    /// # Errors
    /// When the place fails, or its file cannot be read.
    pub async fn withdrawals(&self) -> Result<Withdrawals, PublishError> {
        let path = path();
        let Some(bytes) = self.place.read(&path).await? else { return Ok(Withdrawals::default()) };
        serde_json::from_slice(&bytes).map_err(|error| PublishError::changed(&path, error))
    }

    /// Saves when resources were withdrawn.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn save_withdrawals(&self, withdrawals: &Withdrawals) -> Result<(), PublishError> {
        let path = path();
        let json = serde_json::to_vec(withdrawals).map_err(|error| PublishError::place(&path, error))?;
        self.place.put(&path, json.into(), &lasting()).await
    }
}

fn path() -> String {
    format!("{OWN}/withdrawals.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_the_time_at_which_it_was_withdrawn_or_came_back() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let base = BaseUrl::new("http://e.org/oai".parse().unwrap()).unwrap();
        let name = |name: &str| base.record_uri(name, "oai_dc");
        let list = |names: &[&str]| {
            // Those of other Sources do not count.
            let own = names.iter().map(|own| name(own)).chain(["http://e.org/other".to_owned()]);
            Takedown::parse(&own.collect::<Vec<_>>().join("\n")).unwrap()
        };
        let updated = |known: &Withdrawals, list: &Takedown, second| known.updated(&base, list, at(second));
        let (one, two): (ResourceUri, ResourceUri) = (name("1").parse().unwrap(), name("2").parse().unwrap());
        let empty = Withdrawals::default();
        assert_eq!(updated(&empty, &list(&[]), 1), None);
        let first = updated(&empty, &list(&["1"]), 1).unwrap();
        assert_eq!(first.iter().count(), 1);
        let both = list(&["1", "2"]);
        let second = updated(&first, &both, 2).unwrap();
        assert_eq!(updated(&second, &both, 3), None);
        assert_eq!(second.of(&one), Some(Withdrawal { at: at(1), is_over: false }));
        let third = updated(&second, &list(&["2"]), 4).unwrap();
        assert_eq!(third.of(&one), Some(Withdrawal { at: at(4), is_over: true }));
        assert_eq!(third.of(&two), Some(Withdrawal { at: at(2), is_over: false }));
        let again = updated(&third, &both, 5).unwrap();
        assert_eq!(again.of(&one), Some(Withdrawal { at: at(5), is_over: false }));
    }
}
