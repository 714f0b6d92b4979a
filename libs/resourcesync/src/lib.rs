#![doc = include_str!("../README.md")]

mod capability;
mod datetime;
mod display;
mod entry;
mod error;
mod header;
mod interval;
mod limits;
mod link;
mod metadata;
mod position;
mod quirk;
mod quirk_counts;
mod reader;
mod rule;
mod section;
mod writer;

pub use capability::{Capability, Change, Root, UnknownChange};
pub use datetime::{Datetime, DatetimeError, Precision, Zone};
pub use display::steers_display;
pub use entry::{BadEntry, BadReason, Entry, Item};
pub use error::{LimitKind, ReadError};
pub use header::Header;
pub use interval::Interval;
pub use limits::{Limits, Mode, Options};
pub use link::{Link, relation};
pub use metadata::Metadata;
pub use position::Position;
pub use quirk::{Quirk, QuirkSet, Quirks};
pub use quirk_counts::{QuirkCounts, QuirkKind, QuirkSetOf};
pub use reader::{Reader, Summary};
pub use rule::{Force, Rule};
pub use section::{Section, Specification};
pub use writer::{WriteError, Writer, is_xml_text};

/// The XML namespace of Sitemaps, in which `urlset`, `sitemapindex`, `url`, `sitemap`, `loc` and `lastmod` live.
pub const SITEMAP_NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// The XML namespace of ResourceSync, in which `rs:md` and `rs:ln` live.
pub const RESOURCESYNC_NAMESPACE: &str = "http://www.openarchives.org/rs/terms/";
