#![doc = include_str!("../README.md")]

mod answers;
mod conditions;
mod documents;
mod files;
mod follow;
mod harvest;
mod resources;
mod routes;
mod serve;
mod shared;

pub use serve::{Settings, serve};
pub use shared::Held;
