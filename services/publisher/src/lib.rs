#![doc = include_str!("../README.md")]

mod answers;
mod conditions;
mod documents;
mod follow;
mod resources;
mod routes;
mod serve;
mod shared;

pub use serve::{Settings, serve};
