//! `thresher ignore`: ignore problems.

use api::Ignore;
use harvest::ProblemAction;
use model::counted;

use super::select;
use crate::cli::IgnoreArgs;
use crate::client::{self, ReadFrom};
use crate::exit::{CommandResult, Exit, usage};
use crate::terminal::{note, say};

/// Runs the command.
pub(crate) async fn run(args: IgnoreArgs) -> CommandResult {
    let IgnoreArgs { select, note, undo } = &args;
    let note = note.as_deref().map(str::trim).unwrap_or_default();
    if note.is_empty() && !undo {
        return Err(usage("--note must say why the problems are ignored"));
    }
    let into = match client::read_from(&select.location)? {
        ReadFrom::Store(into) => into,
        ReadFrom::Gateway(client) => {
            let (note, unignore) = (Some(note.to_owned()).filter(|_| !undo), *undo);
            return select::submit(&client, select, "ignore", |select| Ignore { select, note, unignore })
                .await;
        }
    };
    let action = if *undo { ProblemAction::Undo } else { ProblemAction::Ignore { note: note.to_owned() } };
    let selected = select::apply(&into, select, &action, |_, _| true).await?;
    let problems = counted(selected.len() as u64, "problem", "problems");
    if *undo {
        say!("{problems} no longer ignored: the next run retries")?
    } else {
        say!(
            "{problems} ignored, as long as the Source says the same of it; `thresher problems --ignored` lists them, \
             `thresher retry` or `ignore --undo` takes that back"
        )?
    }
    let missed = select::missed(select, &selected);
    for uri in &missed {
        note!("{uri}: {}", if *undo { "not ignored" } else { "no open problem" });
    }
    Ok(if missed.is_empty() { Exit::Good } else { Exit::Problems })
}
