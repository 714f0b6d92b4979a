#![doc = include_str!("../README.md")]

mod catalogs;
pub mod client;
mod clients;
mod conditions;
pub mod connections;
pub mod range;
mod stall;
pub mod token_file;
mod verified_cache;

pub use catalogs::Catalogs;
pub use conditions::etag_matches;
pub use verified_cache::VerifiedCache;
