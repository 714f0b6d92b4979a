//! The promises of every [`Bus`], one function for each promise.
//!
//! Each function uses an origin and a Source of its own, named after itself and the [`Pace`]'s tag. So all of them may
//! run against one server at once. [`conformance!`] makes a test of each.

mod deliver;
mod flow;
mod origins;
mod permits;

use std::sync::Arc;
use std::time::Duration;

use model::{Origin, SourceId};
use serde::{Deserialize, Serialize};

pub(crate) use deliver::*;
pub(crate) use flow::*;
pub(crate) use origins::*;
pub(crate) use permits::*;

use crate::{Bus, ConsumerSpec, Delivery, Filter, MessageId, Payload, Queue};

/// The expected speed of the bus under test, and the size of its queues.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    /// Separates the names of this run from those of other runs on the same server; of `a-z`, `0-9` and `-`.
    pub(crate) tag: String,
    /// The time limit for expected events.
    pub(crate) soon: Duration,
    /// An event that does not come within this time does not come at all. Shorter than `ack_wait`.
    pub(crate) quiet: Duration,
    /// The silence after which a worker counts as dead. Delays of the tests are of this size too.
    pub(crate) ack_wait: Duration,
    /// Messages that one queue holds.
    pub(crate) capacity: usize,
}

/// Makes a test of every promise.
///
/// `$setup` names an async function from the test's name to `(Arc<dyn Bus>, Pace)`; the attribute makes a test of an
/// async function.
macro_rules! conformance {
    (#[$test:meta] $setup:path) => {
        $crate::conformance_tests::conformance! { @all #[$test] $setup;
            published_message_is_pulled_once_and_gone_after_its_ack
            message_published_before_the_consumer_opens_is_not_lost
            pull_waits_for_a_message_to_come
            pull_without_a_consumer_is_refused
            message_is_read_as_it_was_sent_at_every_delivery
            second_message_of_one_name_is_left_out
            refused_message_comes_back_after_its_delay_and_not_before
            dropped_message_comes_back_as_the_next_attempt
            message_of_a_silent_worker_goes_to_another
            late_ack_is_honoured
            progress_keeps_the_message
            terminated_message_never_comes_back
            message_handed_out_too_often_becomes_a_dead_letter
            too_large_a_message_is_refused
            every_queue_reaches_its_own_consumer
            limit_holds_over_several_pullers
            delayed_message_keeps_its_slot
            raised_limit_takes_effect
            full_queue_makes_its_publisher_wait_and_no_other
            purge_drops_the_jobs_of_one_source_in_all_origins
            job_held_during_a_purge_is_not_handed_out_again
            depth_tells_waiting_and_in_flight
            under_way_counts_the_messages_of_one_source_in_all_stages
            origins_are_announced_changed_and_withdrawn
            origin_with_messages_stays_open
            closed_origin_is_opened_and_used_again
            permits_and_jobs_together_keep_to_the_limit
            permit_and_job_take_turns_where_one_is_the_limit
            permit_takes_one_slot_and_no_more
            permit_taken_before_the_origin_opens_counts
            permit_without_a_waiting_caller_is_free
            limit_changed_beside_a_permit_is_the_limit_of_both
            spare_permit_is_given_only_where_no_other_waits
            spare_permits_and_jobs_together_keep_to_the_limit
        }
    };
    (@all #[$test:meta] $setup:path; $($promise:ident)*) => {
        $(
            #[$test]
            async fn $promise() {
                let (bus, pace) = $setup(stringify!($promise)).await;
                $crate::conformance_tests::$promise(&*bus, &pace).await;
            }
        )*
    };
}

pub(crate) use conformance;

/// The names that one function uses.
struct Names {
    tag: String,
    origin: Origin,
    source: SourceId,
    fetch: Queue,
    filter: Filter,
}

impl Names {
    fn of(function: &str, pace: &Pace) -> Self {
        // Source IDs are short, so they contain the initials of the function's name.
        let letters: String = function.split('_').filter_map(|word| word.chars().next()).collect();
        let tag = format!("{letters}-{}", pace.tag);
        let origin: Origin = format!("https://{tag}.example.org").parse().expect("an origin");
        let source: SourceId = tag.parse().expect("a tag of a-z, 0-9 and -");
        let fetch = Queue::Fetch { origin: origin.clone(), source: source.clone() };
        Self { filter: fetch.filter(), fetch, origin, source, tag }
    }

    /// The names of a function that uses an open consumer.
    async fn opened(function: &str, max_in_flight: usize, bus: &dyn Bus, pace: &Pace) -> Self {
        let names = Self::of(function, pace);
        bus.open(names.spec(max_in_flight, pace)).await.unwrap();
        names
    }

    /// Another Source at the same origin.
    fn other_source(&self) -> (SourceId, Queue) {
        let source: SourceId = format!("{}-other", self.tag).parse().expect("a source id");
        (source.clone(), Queue::Fetch { origin: self.origin.clone(), source })
    }

    fn id(&self, name: &str) -> MessageId {
        MessageId::new(format!("{}-{name}", self.tag))
    }

    fn spec(&self, max_in_flight: usize, pace: &Pace) -> ConsumerSpec {
        ConsumerSpec::new(self.filter.clone(), max_in_flight, pace.ack_wait, 10)
    }
}

/// A message that is not serialized before it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Parcel {
    filling: String,
}

impl Parcel {
    /// A message of so many serialized bytes.
    fn of_length(bytes: usize) -> Self {
        let around = model::length(&Self { filling: String::new() });
        Self { filling: "x".repeat(bytes - around) }
    }

    fn payload(self) -> Payload {
        Payload::of(Arc::new(self))
    }
}

impl model::Message for Parcel {
    const KIND: &'static str = "parcel";
    const VERSION: u16 = 1;

    fn size(&self) -> Option<usize> {
        Some(100 + 6 * self.filling.len())
    }
}

async fn publish(bus: &dyn Bus, queue: &Queue, id: MessageId) {
    let payload = format!("payload of {id}").into();
    let published = bus.publish(queue.clone(), id.clone(), payload).await.expect("published");
    assert!(!published.duplicate, "{id} counts as a duplicate");
}

/// Publishes fetch jobs with these names.
async fn publish_each(bus: &dyn Bus, names: &Names, each: impl IntoIterator<Item = impl ToString>) {
    for name in each {
        publish(bus, &names.fetch, names.id(&name.to_string())).await;
    }
}

/// Pulls the one message that must be available.
async fn one(bus: &dyn Bus, filter: &Filter, pace: &Pace) -> Delivery {
    one_within(bus, filter, pace.soon).await
}

/// Pulls the one message that must come within this time.
async fn one_within(bus: &dyn Bus, filter: &Filter, wait: Duration) -> Delivery {
    let mut pulled = bus.pull(filter, 1, wait).await.expect("pulled");
    assert!(pulled.len() <= 1, "asked {filter} for one, got {}", pulled.len());
    pulled.pop().unwrap_or_else(|| panic!("nothing came from {filter} within {wait:?}"))
}

async fn ack_all(deliveries: impl IntoIterator<Item = Delivery>) {
    for delivery in deliveries {
        delivery.ack().await.unwrap();
    }
}

/// Checks that no message comes.
async fn none(bus: &dyn Bus, filter: &Filter, pace: &Pace) {
    let pulled = bus.pull(filter, 10, pace.quiet).await.expect("pulled");
    let ids: Vec<&MessageId> = pulled.iter().map(|delivery| &delivery.id).collect();
    assert!(ids.is_empty(), "nothing should come from {filter}, but {ids:?} did");
}

/// Pulls until no more message comes. At least one does.
async fn all(bus: &dyn Bus, filter: &Filter, pace: &Pace) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    loop {
        let wait = if deliveries.is_empty() { pace.soon } else { pace.quiet };
        let more = bus.pull(filter, 100, wait).await.expect("pulled");
        if more.is_empty() {
            return deliveries;
        }
        deliveries.extend(more);
    }
}
