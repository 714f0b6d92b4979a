#![doc = include_str!("../README.md")]

mod judge;

pub use judge::Verifier;
