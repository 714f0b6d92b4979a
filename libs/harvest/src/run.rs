//! What all stages of a run share.

pub(crate) mod context;
pub(crate) mod document_queue;
mod held_back;
mod incoming;
pub(crate) mod job_events;
mod natural_order;
pub(crate) mod origin_queues;
mod pending_bound;
pub(crate) mod problems;
pub(crate) mod progress;
pub(crate) mod push_lag;
pub(crate) mod push_tracker;
mod store_health;
mod stored_bound;
mod uri_filter;
pub(crate) mod writer;

pub(crate) use context::RunContext;
