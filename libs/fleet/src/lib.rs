#![doc = include_str!("../README.md")]

mod bus;
mod control;
mod http;
mod patience;
mod rests;
mod store;

pub use self::bus::{NatsConfig, open_bus, open_consumer};
pub use self::control::open_control;
pub use http::HttpConfig;
<<<<<<< HEAD
pub use patience::{Stopped, connect};
pub use rests::{SharedRests, share_rests};
=======
pub use patience::{Stopped, connect, unless_stopped};
>>>>>>> 420e356 (Take a stop while waiting for a stop, not for a failure)
pub use store::{StoreConfig, open_store, watch_store};
