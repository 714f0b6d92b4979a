#![doc = include_str!("../README.md")]

mod bus;
mod control;
mod cooldowns;
mod counted_bus;
mod counted_http;
mod counted_store;
mod http;
mod join;
mod origin_groups;
mod push;
mod queue;
mod rate;
mod startup;
mod store;
mod terms;

pub use self::bus::NatsConfig;
pub use self::control::{become_member, open_control, watch_control};
pub use cooldowns::{SharedRests, share_cooldowns};
pub use counted_http::count_requests;
pub use http::HttpConfig;
pub use join::{Connections, join, join_bus};
pub use origin_groups::OriginGroups;
pub use push::{Push, PushConfig};
pub use queue::work_queue;
pub use rate::{SharedRate, share_rate};
pub use startup::{Stopped, connect, serve};
pub use store::{StoreConfig, open_for_reading};
pub use terms::{BasicConfig, CredentialConfig, Credentials, HeaderConfig, UnknownCredential};
