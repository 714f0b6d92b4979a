#![doc = include_str!("../README.md")]

mod body;
mod columns;
mod dump;
mod error;
mod note;
mod parts;
mod row;
mod selection;
mod table;
mod tar;
mod tree;
mod work;

pub use error::ExportError;
pub use selection::Selection;
pub use work::{Destination, Export, Format, Seen, Sizes, Summary};
