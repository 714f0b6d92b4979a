//! The command line of problems: listed, tried again, ignored.

use clap::{Args, ValueEnum};
use model::{ProblemReason, Subject};

use crate::cli_ask::HeldArgs;

/// Which problems.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KindArgs {
    /// Only those of this reason, by its name (digest-mismatch, http-client-error, …). May be given several times.
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Vec<ProblemReason>,
    /// Only those of this kind. May be given several times.
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) about: Vec<AboutArg>,
}

/// `problems`.
#[derive(Debug, Args)]
pub(crate) struct ProblemsArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,
    /// Only of this Source: the URL it was harvested from, or its name.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Only what is about these URIs: those that begin with this.
    pub(crate) prefix: Option<String>,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// Those that are ignored, instead of those that are open.
    #[arg(long)]
    pub(crate) ignored: bool,
    /// Count them by reason instead of listing them.
    #[arg(long)]
    pub(crate) group: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The problems that a word is about. Something must be said of them.
#[derive(Debug, Args)]
pub(crate) struct SelectArgs {
    /// The problems with these: URIs of resources, documents or packages, or names, as `thresher problems` shows them.
    pub(crate) uris: Vec<String>,
    /// Those with URIs that begin with this.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// All of them.
    #[arg(long, conflicts_with_all = ["uris", "prefix", "reason", "about"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) held: HeldArgs,
    /// Only of this Source: the URL it was harvested from, or its name.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// In s3://: to be given while no fleet and nobody else harvests into it. A harvest that is under way is shut out.
    #[arg(long)]
    pub(crate) as_owner: bool,
}

/// `retry`.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Those that are ignored, too. One that is given by its URI is tried again in any case.
    #[arg(long)]
    pub(crate) ignored: bool,
}

/// `ignore`.
#[derive(Debug, Args)]
pub(crate) struct IgnoreArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Why nothing is to be done about them.
    #[arg(long, value_name = "TEXT", required_unless_present = "undo")]
    pub(crate) note: Option<String>,
    /// Take the word back.
    #[arg(long, conflicts_with = "note")]
    pub(crate) undo: bool,
}

/// What a problem is about: one for each of [`Subject::KINDS`], in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AboutArg {
    /// A resource.
    Resource,
    /// A document or package.
    Document,
    /// An entry of a document.
    Entry,
    /// A message that nobody could work on.
    Message,
}

impl AboutArg {
    /// The same as [`Subject::kind`] says it.
    pub(crate) fn kind(self) -> &'static str {
        Subject::KINDS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_thing_can_be_asked_for_by_its_name() {
        let names = AboutArg::value_variants().iter().map(|about| about.to_possible_value().unwrap());
        assert_eq!(names.map(|name| name.get_name().to_owned()).collect::<Vec<_>>(), Subject::KINDS);
        assert_eq!(
            AboutArg::value_variants().iter().map(|about| about.kind()).collect::<Vec<_>>(),
            Subject::KINDS
        );
    }
}
