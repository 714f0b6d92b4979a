#![doc = include_str!("../README.md")]

mod failure;
mod judge;

pub use judge::Verifier;
