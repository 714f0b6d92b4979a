#![doc = include_str!("../README.md")]

mod body;
mod checkpoint;
mod columns;
mod dump;
mod error;
mod export;
mod parts;
mod request;
mod row;
mod selection;
mod table;
mod tar;
mod tree;
mod work;

pub use error::ExportError;
pub use export::Export;
pub use request::{Destination, Format, Observer, Seen, Sizes, Summary};
pub use selection::Selection;
