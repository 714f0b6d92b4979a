//! `thresher retry`: retry problems in the next run.

use api::Retry;
use harvest::ProblemAction;
use model::{Subject, counted, plural};

use super::select;
use crate::cli::RetryArgs;
use crate::client::{self, ReadFrom};
use crate::exit::CommandResult;
use crate::terminal::say;

/// Runs the command.
pub(crate) async fn run(args: RetryArgs) -> CommandResult {
    let RetryArgs { select, ignored } = &args;
    let into = match client::read_from(&select.location)? {
        ReadFrom::Store(into) => into,
        ReadFrom::Gateway(client) => {
            let ignored = *ignored;
            return select::submit(&client, select, "retry", |select| Retry { select, ignored }).await;
        }
    };
    let selected = select::apply(&into, select, &ProblemAction::Retry, |subject, problem| {
        problem.ignored.is_none() || *ignored || select.name(subject)
    })
    .await?;
    let count = |is: fn(&Subject) -> bool| selected.iter().filter(|subject| is(subject)).count() as u64;
    let resources = count(|subject| matches!(subject, Subject::Resource(_)));
    let documents = count(|subject| matches!(subject, Subject::Document(_) | Subject::Entry(_)));
    let messages = count(|subject| matches!(subject, Subject::Message(_)));
    say!(
        "{} queued: the next run retries {} first",
        counted(resources, "resource is", "resources are"),
        plural(resources, "it", "them")
    )?;
    if documents > 0 {
        say!(
            "{} of documents, packages or their entries: the next run that needs them reads them again",
            counted(documents, "problem is", "problems are")
        )?;
    }
    if messages > 0 {
        say!(
            "{} of dead letters, which are not sent again: their resources are problems of their own",
            counted(messages, "problem is", "problems are")
        )?;
    }
    let remark = "no open problem; `thresher explain` shows its history";
    Ok(select::note_missed(select, &selected, remark))
}
