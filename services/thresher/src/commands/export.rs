//! `thresher export`: export stored resources.

use std::ops::ControlFlow;
use std::path::Path;

use export::{Destination, Export, ExportError, Format, Seen, Selection, Sizes};
use indicatif::HumanBytes;
use jiff::Timestamp;
use model::counted;
use url::Url;

use crate::cli::{ExportArgs, ExportFormat};
use crate::commands::sync::stop_on_interrupt;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{self, note};

/// Runs the command.
pub(crate) async fn run(args: ExportArgs) -> CommandResult {
    let export = asked_for(&args)?;
    let (store, note, catalog) = target::open_one(&args.harvest.into, args.source.as_deref()).await?;
    // The first Ctrl-C stops at a point from which the export can be resumed.
    let (stop, _) = stop_on_interrupt();
    let mut see = |seen: Seen<'_>| {
        match seen {
            Seen::Taken(_) => {}
            Seen::Resumed(done) => {
                note!("resuming after {}", counted(done.resources, "resource", "resources"));
            }
            Seen::Damaged(uri, damage) => note!("{uri} is left out: {damage}"),
        }
        if stop.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let made = Box::pin(export.run(&store, &catalog, &note.source, Timestamp::now(), &mut see)).await;
    let is_stdout = args.to.as_os_str() == "-";
    let done = made.map_err(|error| match error {
        ExportError::Refused(why) => usage(why),
        ExportError::Write(error) if is_stdout => terminal::of_stdout(error).into(),
        other => Failed::from(anyhow::Error::from(other)),
    })?;
    // Standard output may be the export itself.
    note!(
        "{}{} exported{}",
        counted(done.resources, "resource", "resources"),
        if done.bytes > 0 { format!(", {},", HumanBytes(done.bytes)) } else { String::new() },
        match done.damaged {
            0 => String::new(),
            damaged => format!("; {damaged} left out as damaged"),
        }
    );
    Ok(if done.damaged == 0 { Exit::Good } else { Exit::Problems })
}

fn asked_for(args: &ExportArgs) -> Result<Export, Failed> {
    let format = match args.format {
        ExportFormat::Resourcedump => {
            let base = args.base.clone().ok_or_else(|| usage("a Resource Dump needs --base".to_owned()))?;
            Format::ResourceDump { base: base_of(base)? }
        }
        ExportFormat::Tree => Format::Tree,
        ExportFormat::Tar => Format::Tar,
        ExportFormat::Jsonl => Format::JsonLines,
        ExportFormat::Parquet => Format::Parquet,
    };
    let to = match &args.to {
        path if path == Path::new("-") => Destination::Stdout,
        path => Destination::Path(path.clone()),
    };
    let ExportArgs { prefix, since, until, types, .. } = args;
    let prefix = prefix.clone();
    let types = types.clone();
    let selection = Selection { prefix, since: *since, until: *until, types };
    Ok(Export { format, to, selection, sizes: Sizes::default() })
}

/// The URL at which the directory will be served, with a slash at its end.
fn base_of(mut base: Url) -> Result<Url, Failed> {
    if !matches!(base.scheme(), "http" | "https") {
        return Err(usage(format!(
            "{base} is no http or https URL; pass the one at which the directory will be served"
        )));
    }
    if !base.path().ends_with('/') {
        base.set_path(&format!("{}/", base.path()));
    }
    Ok(base)
}
