//! `thresher ignore`: ignore problems.

use api::Ignore;
use harvest::ProblemAction;
use model::counted;

use super::select;
use crate::cli::IgnoreArgs;
use crate::client::{self, ReadFrom};
use crate::exit::{CommandResult, usage};
use crate::terminal::say;

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
            let note = (!undo).then(|| note.to_owned());
            let action = |select| Ignore { select, note, unignore: *undo };
            return select::submit(&client, select, "ignore", action).await;
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
    let remark = if *undo { "not ignored" } else { "no open problem" };
    Ok(select::note_missed(select, &selected, remark))
}
