//! Which of a few HTTP/2 connections to an origin a request takes: the first one that has a stream free.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, Scheme};
use tokio::time::Instant;

/// The most HTTP/2 connections to an origin.
pub(crate) const MOST_CONNECTIONS: usize = 4;
/// Origins that are known before idle ones are forgotten.
const MOST_ORIGINS: usize = 1_024;
/// For how long requests take the first connection after a further one could not be opened: a firewall may admit no more.
const SINGLE_FOR: Duration = Duration::from_secs(600);

/// The HTTP/2 connections of one pool to each origin. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct H2Connections(Arc<Mutex<HashMap<Authority, Streams>>>);

/// The streams of an origin.
#[derive(Debug, Default)]
struct Streams {
    /// Open requests on each connection.
    open: [u32; MOST_CONNECTIONS],
    /// How many a connection takes, if its server has stated that.
    limit: Option<u32>,
    /// Until when all requests take the first connection.
    single_until: Option<Instant>,
}

/// A stream of one of the connections. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    connections: H2Connections,
    origin: Authority,
    number: usize,
}

impl H2Connections {
    /// Takes a stream for a request. None for one without TLS, where HTTP/2 is not spoken.
    pub(crate) fn enter(&self, uri: &Uri) -> Option<StreamSlot> {
        let origin = uri.authority().filter(|_| uri.scheme() == Some(&Scheme::HTTPS))?;
        let mut origins = self.origins();
        if origins.len() >= MOST_ORIGINS && !origins.contains_key(origin) {
            origins.retain(|_, streams| streams.open != [0; MOST_CONNECTIONS]);
        }
        let streams = origins.entry(origin.clone()).or_default();
        let number = streams.next();
        streams.open[number] += 1;
        Some(StreamSlot { connections: self.clone(), origin: origin.clone(), number })
    }

    fn origins(&self) -> MutexGuard<'_, HashMap<Authority, Streams>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    /// The first connection that has a stream free. If none has, the one with the fewest requests: there they wait.
    fn next(&self) -> usize {
        let Some(limit) = self.limit else { return 0 };
        if self.single_until.is_some_and(|until| Instant::now() < until) {
            return 0;
        }
        let free = (0..MOST_CONNECTIONS).find(|number| self.open[*number] < limit);
        free.or_else(|| (0..MOST_CONNECTIONS).min_by_key(|number| self.open[*number])).unwrap_or(0)
    }
}

impl StreamSlot {
    /// Which of the connections it belongs to, from 0.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Notes an answer, and what the server has stated. If it states nothing, all requests take the first connection.
    pub(crate) fn note_answer(&self, limit: Option<u32>) {
        if let Some(streams) = self.connections.origins().get_mut(&self.origin) {
            streams.limit = limit;
        }
    }
}

impl StreamSlot {
    /// Notes that its connection, a further one, could not be opened.
    pub(crate) fn note_refused(&self) {
        if let Some(streams) = self.connections.origins().get_mut(&self.origin) {
            streams.single_until = Some(Instant::now() + SINGLE_FOR);
        }
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        if let Some(streams) = self.connections.origins().get_mut(&self.origin) {
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

    fn numbers(slots: &[StreamSlot]) -> Vec<usize> {
        slots.iter().map(StreamSlot::number).collect()
    }

    #[test]
    fn a_server_without_a_stated_limit_gets_one_connection() {
        let connections = H2Connections::default();
        let open: Vec<StreamSlot> = (0..1_000).map(|_| connections.enter(&uri("h")).unwrap()).collect();
        assert!(open.iter().all(|slot| slot.number() == 0));
    }

    #[test]
    fn a_further_connection_is_taken_when_those_before_are_full_and_all_wait_alike_at_last() {
        let connections = H2Connections::default();
        connections.enter(&uri("h")).unwrap().note_answer(Some(2));
        let mut open: Vec<StreamSlot> = (0..12).map(|_| connections.enter(&uri("h")).unwrap()).collect();
        assert_eq!(numbers(&open), [0, 0, 1, 1, 2, 2, 3, 3, 0, 1, 2, 3]);
        assert_eq!(connections.enter(&uri("other")).unwrap().number(), 0);
        open.iter().for_each(|slot| slot.note_answer(Some(2)));
        // A stream that is free again on an earlier connection is taken first.
        open.retain(|slot| slot.number() > 1);
        assert_eq!(connections.enter(&uri("h")).unwrap().number(), 0);
        open[0].note_answer(None);
        assert_eq!(connections.enter(&uri("h")).unwrap().number(), 0);
    }

    #[test]
    fn a_limit_of_none_at_all_is_no_reason_for_more_connections_than_there_may_be() {
        let connections = H2Connections::default();
        connections.enter(&uri("h")).unwrap().note_answer(Some(0));
        let open: Vec<StreamSlot> = (0..9).map(|_| connections.enter(&uri("h")).unwrap()).collect();
        assert!(open.iter().all(|slot| slot.number() < MOST_CONNECTIONS));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_further_connection_was_refused_all_wait_for_the_first_one_for_a_while() {
        let connections = H2Connections::default();
        connections.enter(&uri("h")).unwrap().note_answer(Some(1));
        let first = connections.enter(&uri("h")).unwrap();
        let further = connections.enter(&uri("h")).unwrap();
        assert_eq!((first.number(), further.number()), (0, 1));
        drop(further);
        let further = connections.enter(&uri("h")).unwrap();
        assert_eq!(
            further.number(),
            1,
            "a request that fails or takes too long says nothing of its connection"
        );
        further.note_refused();
        drop(further);
        first.note_answer(Some(1));
        assert_eq!(connections.enter(&uri("h")).unwrap().number(), 0);
        tokio::time::advance(SINGLE_FOR).await;
        assert_eq!(connections.enter(&uri("h")).unwrap().number(), 1);
    }

    #[test]
    fn without_tls_there_is_nothing_to_choose() {
        assert!(H2Connections::default().enter(&"http://h/a".parse().unwrap()).is_none());
    }

    #[test]
    fn idle_origins_are_forgotten_and_those_with_requests_are_not() {
        let connections = H2Connections::default();
        let open = connections.enter(&uri("busy")).unwrap();
        open.note_answer(Some(1));
        for n in 0..5_000 {
            let _ = connections.enter(&uri(&format!("h{n}")));
        }
        assert!(connections.origins().len() <= MOST_ORIGINS);
        assert_eq!(connections.enter(&uri("busy")).unwrap().number(), 1);
    }
}
