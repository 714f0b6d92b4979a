//! What `thresher publish` prints.

use indicatif::HumanBytes;
use model::counted;
use publish::files::Scanned;
use publish::{Base, Published};
use serde::Serialize;

use crate::cli::PublishArgs;
use crate::terminal::{self, note, say};

/// Names what is not published, and why.
pub(super) fn show_problems(scanned: &Scanned) {
    for (problem, count, first) in scanned.problems.iter() {
        if problem.is_rule() {
            note!("{} not published: {problem}", counted(count, "name is", "names are"));
            continue;
        }
        for path in first {
            note!("{path} is not published as it is now: {problem}");
        }
        let more = count.saturating_sub(first.len() as u64);
        if more > 0 {
            note!("{} for the same reason", counted(more, "more path", "more paths"));
        }
    }
}

/// The totals as JSON.
#[derive(Serialize)]
struct Totals<'a> {
    #[serde(flatten)]
    published: &'a Published,
    #[serde(skip_serializing_if = "Option::is_none")]
    scan: Option<&'a Scanned>,
}

/// Prints the totals.
pub(super) fn print(
    args: &PublishArgs,
    published: &Published,
    scan: Option<&Scanned>,
) -> std::io::Result<()> {
    if args.json {
        return terminal::json(&Totals { published, scan });
    }
    let done = published;
    let damaged = match done.damaged {
        0 => String::new(),
        damaged => format!("; {damaged} left out"),
    };
    let files = match done.files {
        0 => String::new(),
        files => format!(", {} ({})", counted(files, "file", "files"), HumanBytes(done.bytes)),
    };
    say!(
        "{} published: {}{files}, {}{damaged}",
        counted(done.resources, "resource", "resources"),
        counted(done.changes, "change", "changes"),
        counted(done.documents, "document", "documents"),
    )
}

/// Harvesters look for the Source Description at the host.
pub(super) fn well_known_hint(base: &Base) {
    let description = base.url(publish::paths::DESCRIPTION);
    note!(
        "hint: redirect /.well-known/resourcesync of the host to {description}, so that harvesters find it"
    );
}
