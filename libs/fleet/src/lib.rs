#![doc = include_str!("../README.md")]

mod bus;
mod control;
mod http;
mod patience;
mod rate;
mod rests;
mod store;

pub use self::bus::{NatsConfig, open_bus, open_consumer};
pub use self::control::open_control;
pub use http::HttpConfig;
pub use patience::{Stopped, connect, unless_stopped};
pub use rate::{SharedRate, share_rate};
pub use rests::{SharedRests, share_rests};
pub use store::{StoreConfig, open_store, watch_store};
