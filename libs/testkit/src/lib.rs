#![doc = include_str!("../README.md")]

pub mod callbacks;
pub mod files;
pub mod gated;
pub mod hub;
pub mod relay;
pub mod scripted;
pub mod servers;
pub mod waiting;
