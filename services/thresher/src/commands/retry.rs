//! `thresher retry`: have problems tried again.

use api::Retry;
use model::Subject;
use scheduler::Word;

use super::select;
use crate::ask::{self, Held};
use crate::cli::RetryArgs;
use crate::exit::{CommandResult, Exit};

/// Runs the command.
pub(crate) async fn run(args: RetryArgs) -> CommandResult {
    let RetryArgs { select, ignored } = &args;
    let into = match ask::held(&select.held)? {
        Held::Into(into) => into,
        Held::Gateway(server) => {
            let ignored = *ignored;
            return select::say(&server, select, "retry", |select| Retry { select, ignored }).await;
        }
    };
    let told = select::tell(&into, select, &Word::Retry, |subject, problem| {
        problem.ignored.is_none() || *ignored || select.name(subject)
    })
    .await?;
    let count = |is: fn(&Subject) -> bool| told.iter().filter(|subject| is(subject)).count();
    let resources = count(|subject| matches!(subject, Subject::Resource(_)));
    let documents = count(|subject| matches!(subject, Subject::Document(_) | Subject::Entry(_)));
    let messages = count(|subject| matches!(subject, Subject::Message(_)));
    println!(
        "{resources} resources are queued: the next `thresher sync`, or run of the fleet, asks for them first"
    );
    if documents > 0 {
        println!(
            "{documents} problems are of documents, packages or their entries: the next run that needs them reads them again"
        );
    }
    if messages > 0 {
        println!(
            "{messages} are of messages, which are not sent again: the resources they were about are problems of their own"
        );
    }
    let missed = select::missed(select, &told);
    for uri in &missed {
        eprintln!("{uri}: no problem is known of it; `thresher explain` says what is");
    }
    Ok(if missed.is_empty() { Exit::Good } else { Exit::Problems })
}
