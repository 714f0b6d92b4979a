#![doc = include_str!("../README.md")]

mod card;
mod claims;
mod collections;
pub mod copies;
mod documents;
mod error;
mod finding;
mod gather;
pub mod history;
mod intervals;
mod link_ends;
mod problems;
mod resources;
mod rules;
mod shown;
mod text;
mod unlisted;
pub mod works;

pub use card::{
    Capability, ChangeCoverage, Collection, Coverage, Document, Fixity, Interval, LastRun, Looked, Problem,
    ProblemGroup, Protocol, ReportCard, Set, Source, ToLetIn,
};
pub use claims::SpoolError;
pub use error::ReportError;
pub use finding::Finding;
pub use gather::gather;
pub use link_ends::{LinkEnd, link_ends};
pub use rules::{Remarked, remarked};
