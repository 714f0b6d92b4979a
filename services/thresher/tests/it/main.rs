//! The tests of the product from the outside: the command line, a fleet, the gateway, real servers.
//!
//! One binary, because each one links the whole product. A module is a subject; `cargo nextest run -p thresher gc::`
//! runs one.
#![allow(missing_docs)]

mod common;

mod abandon;
mod absent;
mod apply;
mod audit;
mod audit_dumps;
mod bad_input;
mod baseline;
mod changed_again;
mod chaos;
mod confused;
mod console;
mod console_browser;
mod console_fleet;
mod demo;
mod deploy;
mod discover;
mod door;
mod dumps;
mod export;
mod fleet;
mod gaps;
mod gateway;
mod gateway_schema;
mod gc;
mod hostile;
mod http_options;
mod idle;
mod ignored;
mod incremental;
mod inspect;
mod kills;
mod ldn;
mod ldn_consumer;
mod ldn_receiver;
mod ldn_sender;
mod limited;
mod links;
mod manual;
mod memento_peer;
mod metrics;
mod moves;
mod named;
mod oai;
mod oai_content;
mod oai_fleet;
mod oai_peers;
mod oai_windows;
mod oddities;
mod operator;
mod origins;
mod peers;
mod plans;
mod problems;
mod proof;
mod publish;
mod push;
mod push_hostile;
mod push_kills;
mod rediscover;
mod repair;
mod report;
mod restore;
mod resume;
mod s3;
mod scrub;
mod signposting;
mod stories;
mod versions;
mod waiting;
mod websub_hub;
