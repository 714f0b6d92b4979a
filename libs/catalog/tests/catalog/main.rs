//! The catalog on every kind of store: in memory, in a local directory, and on a real S3 server.

mod allocations;
mod commits;
mod conformance;
mod failing;
mod records;
mod requests;
mod stores;
mod writers;
