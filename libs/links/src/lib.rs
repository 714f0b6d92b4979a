#![doc = include_str!("../README.md")]

pub mod catalog;
mod fault;
pub mod header;
pub mod html;
pub mod landing;
mod limits;
mod link;
pub mod linkset;
mod moment;
pub mod timemap;

pub use fault::{Fault, Faults};
pub use limits::{Limits, MOST_ATTRIBUTES};
pub use link::{Link, Links};
pub use moment::{http_date, parse_http_date};
