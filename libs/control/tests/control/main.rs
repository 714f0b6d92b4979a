//! The control store on a real server.
#![allow(missing_docs)]

mod connection;
mod cooldowns;
mod hints;
mod inboxes;
mod leases;
mod members;
mod names;
mod outbox;
mod plans;
mod problem_actions;
mod runs;
mod samples;
mod sessions;
mod sources;
mod submissions;
mod subscriptions;
mod support;
