//! The tests of the HTTP client against scripted servers.
#![allow(missing_docs)]

mod addresses;
mod answers;
mod bodies;
mod budget;
mod connections;
mod credentials;
mod faults;
mod http2;
mod https;
mod observer;
mod post;
mod robots;
mod support;
mod terms;
