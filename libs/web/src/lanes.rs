//! Which of a few HTTP/2 connections to an origin a request takes: the first one that has a stream free.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Uri;
use http::uri::{Authority, Scheme};

/// The most HTTP/2 connections to an origin.
pub(crate) const LANES: usize = 4;
/// Origins that are known before idle ones are forgotten.
const MOST_ORIGINS: usize = 1_024;

/// The HTTP/2 connections of one pool to each origin. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lanes(Arc<Mutex<HashMap<Authority, Streams>>>);

/// The streams of an origin.
#[derive(Debug, Default)]
struct Streams {
    /// Open requests on each connection.
    open: [u32; LANES],
    /// How many a connection takes, if its server has stated that.
    limit: Option<u32>,
}

/// A place on one of the connections. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Lane {
    lanes: Lanes,
    origin: Authority,
    number: usize,
}

impl Lanes {
    /// Takes a place for a request. None for one without TLS, where HTTP/2 is not spoken.
    pub(crate) fn enter(&self, uri: &Uri) -> Option<Lane> {
        let origin = uri.authority().filter(|_| uri.scheme() == Some(&Scheme::HTTPS))?;
        let mut origins = self.origins();
        if origins.len() >= MOST_ORIGINS && !origins.contains_key(origin) {
            origins.retain(|_, streams| streams.open != [0; LANES]);
        }
        let streams = origins.entry(origin.clone()).or_default();
        let number = streams.next();
        streams.open[number] += 1;
        Some(Lane { lanes: self.clone(), origin: origin.clone(), number })
    }

    fn origins(&self) -> MutexGuard<'_, HashMap<Authority, Streams>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    /// The first connection that has a stream free. If none has, the one with the fewest requests: there they wait.
    fn next(&self) -> usize {
        let Some(limit) = self.limit else { return 0 };
        let free = (0..LANES).find(|lane| self.open[*lane] < limit);
        free.or_else(|| (0..LANES).min_by_key(|lane| self.open[*lane])).unwrap_or(0)
    }
}

impl Lane {
    /// Which of the connections it is, from 0.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Notes what the server has stated, or that it states nothing: then all requests take the first connection.
    pub(crate) fn note_limit(&self, limit: Option<u32>) {
        if let Some(streams) = self.lanes.origins().get_mut(&self.origin) {
            streams.limit = limit;
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(streams) = self.lanes.origins().get_mut(&self.origin) {
            streams.open[self.number] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(host: &str) -> Uri {
        format!("https://{host}/a").parse().unwrap()
    }

    fn numbers(lanes: &[Lane]) -> Vec<usize> {
        lanes.iter().map(Lane::number).collect()
    }

    #[test]
    fn a_server_without_a_stated_limit_gets_one_connection() {
        let lanes = Lanes::default();
        let open: Vec<Lane> = (0..1_000).map(|_| lanes.enter(&uri("h")).unwrap()).collect();
        assert!(open.iter().all(|lane| lane.number() == 0));
    }

    #[test]
    fn a_further_connection_is_taken_when_those_before_are_full_and_all_wait_alike_at_last() {
        let lanes = Lanes::default();
        lanes.enter(&uri("h")).unwrap().note_limit(Some(2));
        let mut open: Vec<Lane> = (0..12).map(|_| lanes.enter(&uri("h")).unwrap()).collect();
        assert_eq!(numbers(&open), [0, 0, 1, 1, 2, 2, 3, 3, 0, 1, 2, 3]);
        assert_eq!(lanes.enter(&uri("other")).unwrap().number(), 0);
        // A place that is free again on an earlier connection is taken first.
        open.retain(|lane| lane.number() > 1);
        assert_eq!(lanes.enter(&uri("h")).unwrap().number(), 0);
        open[0].note_limit(None);
        assert_eq!(lanes.enter(&uri("h")).unwrap().number(), 0);
    }

    #[test]
    fn a_limit_of_none_at_all_is_no_reason_for_more_connections_than_there_may_be() {
        let lanes = Lanes::default();
        lanes.enter(&uri("h")).unwrap().note_limit(Some(0));
        let open: Vec<Lane> = (0..9).map(|_| lanes.enter(&uri("h")).unwrap()).collect();
        assert!(open.iter().all(|lane| lane.number() < LANES));
    }

    #[test]
    fn without_tls_there_is_nothing_to_choose() {
        assert!(Lanes::default().enter(&"http://h/a".parse().unwrap()).is_none());
    }

    #[test]
    fn idle_origins_are_forgotten_and_those_with_requests_are_not() {
        let lanes = Lanes::default();
        let open = lanes.enter(&uri("busy")).unwrap();
        open.note_limit(Some(1));
        for n in 0..5_000 {
            let _ = lanes.enter(&uri(&format!("h{n}")));
        }
        assert!(lanes.origins().len() <= MOST_ORIGINS);
        assert_eq!(lanes.enter(&uri("busy")).unwrap().number(), 1);
    }
}
