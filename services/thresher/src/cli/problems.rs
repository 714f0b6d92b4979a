//! `problems`, `retry` and `ignore`.

use clap::{Args, ValueEnum};
use control::Selector;
use model::{ProblemReason, Subject};

use crate::client::LocationArgs;

/// Filters by reason and kind.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KindArgs {
    /// Only this reason, such as digest-mismatch or http-client-error. Repeatable.
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Vec<ProblemReason>,
    /// Only problems with this kind of thing. Repeatable.
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Vec<KindArg>,
}

/// `problems`.
#[derive(Debug, Args)]
pub(crate) struct ProblemsArgs {
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Only this Source: its URL or its ID; at a gateway also its name.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// At a gateway: only Sources whose labels match: country=jp, country!=jp, country, !country; commas join them.
    #[arg(long = "match", value_name = "SELECTOR", conflicts_with = "source")]
    pub(crate) matching: Option<Selector>,
    /// Only URIs that begin with this.
    pub(crate) prefix: Option<String>,
    #[command(flatten)]
    pub(crate) filter: KindArgs,
    /// List ignored problems instead of open ones.
    #[arg(long)]
    pub(crate) ignored: bool,
    /// Count problems by reason instead of listing them.
    #[arg(long)]
    pub(crate) group: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The problems that an action is for. At least one selector is required.
#[derive(Debug, Args)]
pub(crate) struct SelectArgs {
    /// URIs of resources, documents or packages, or names, as `thresher problems` prints them.
    pub(crate) uris: Vec<String>,
    /// All problems with URIs that begin with this.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    #[command(flatten)]
    pub(crate) filter: KindArgs,
    /// All problems.
    #[arg(long, conflicts_with_all = ["uris", "prefix", "reason", "kind"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Only this Source: its URL or its ID; at a gateway also its name.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// In s3://: required. Stop the fleet and all other syncs into this store first.
    #[arg(long)]
    pub(crate) exclusive: bool,
}

/// `retry`.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Include ignored problems. A problem given by its URI is retried in any case.
    #[arg(long)]
    pub(crate) ignored: bool,
}

/// `ignore`.
#[derive(Debug, Args)]
pub(crate) struct IgnoreArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Why these problems are ignored.
    #[arg(long, value_name = "TEXT", required_unless_present = "undo")]
    pub(crate) note: Option<String>,
    /// Stop ignoring these problems.
    #[arg(long, conflicts_with = "note")]
    pub(crate) undo: bool,
}

/// What a problem is about: one for each of [`Subject::KINDS`], in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// A resource.
    Resource,
    /// A document or package.
    Document,
    /// An entry of a document.
    Entry,
    /// A dead letter: a message that no service could process.
    Message,
}

impl KindArg {
    /// The same as [`Subject::kind`] says it.
    pub(crate) fn name(self) -> &'static str {
        Subject::KINDS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_thing_can_be_asked_for_by_its_name() {
        let names = KindArg::value_variants().iter().map(|kind| kind.to_possible_value().unwrap());
        assert_eq!(names.map(|name| name.get_name().to_owned()).collect::<Vec<_>>(), Subject::KINDS);
        assert_eq!(
            KindArg::value_variants().iter().map(|kind| kind.name()).collect::<Vec<_>>(),
            Subject::KINDS
        );
    }
}
