#![doc = include_str!("../README.md")]

mod announce;
mod container;
mod context;
mod discovery;
mod json;
mod limits;
mod media;
mod node;
mod notification;
pub mod terms;
mod turtle;

pub use announce::Announcement;
pub use container::{Listing, contained};
pub use discovery::{NoInbox, inbox_in_body, inbox_in_links};
pub use json::{Unreadable, parse};
pub use limits::Limits;
pub use media::{ACCEPT_POST, JSON_LD, PAGE_ACCEPT, is_json_ld};
pub use notification::{Activity, Notification};
pub use turtle::{TURTLE, inbox_in_turtle, is_turtle};
