//! `thresher gc`: delete unreferenced data after its retention.

use std::io;
use std::time::Duration;

use comfy_table::CellAlignment;
use gc::{Counted, GcError, Options, Report};
use indicatif::{HumanBytes, HumanDuration};
use jiff::SignedDuration;
use model::{SystemClock, count, counted, plural};
use serde::Serialize;
use store::{Amount, StoreTarget};

use crate::cli::GcArgs;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{self, say};

/// The shortest retention in a bucket: its clock and those of its writers may differ.
const LEAST_IN_A_BUCKET: Duration = Duration::from_secs(60 * 60);

/// The result as `--json` prints it.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    into: String,
    removed: Amount,
    #[serde(flatten)]
    report: &'a Report,
}

/// Runs the command.
pub(crate) async fn run(args: GcArgs) -> CommandResult {
    let target = target::parse(&args.harvest.into)?;
    let is_bucket = matches!(target, StoreTarget::S3 { .. });
    if is_bucket && args.retention < LEAST_IN_A_BUCKET {
        return Err(usage(
            "--retention must be at least 1h for s3://, because the clocks of the store and of its writers may differ",
        ));
    }
    let keep_for = SignedDuration::try_from(args.retention).map_err(usage)?;
    let options = Options { keep_for, dry_run: args.dry_run, as_owner: !is_bucket || args.exclusive };
    // Reports a wrong --into, and creates nothing.
    target::must_hold_a_harvest(&target)?;
    let mut store = target::open_store_read_only(&target).await?;
    let mut temporary = Amount::default();
    if !args.dry_run {
        // Opening a store for writing removes them.
        temporary = store.temporaries().await?;
        store = target::open_store(&target).await?;
    }
    let mut report = match Box::pin(gc::collect(&store, &options, &SystemClock)).await {
        Ok(report) => report,
        Err(error @ GcError::NoCatalog { .. }) => return Err(usage(error)),
        Err(error) => return Err(Failed::from(error)),
    };
    report.leftovers += temporary;
    let place = target::place(&store);
    if args.json {
        let outcome = Outcome { into: place, removed: report.removed(), report: &report };
        terminal::json(&outcome)?;
    } else {
        show(&report, &place, is_bucket)?
    }
    Ok(Exit::Good)
}

fn show(report: &Report, place: &str, is_bucket: bool) -> io::Result<()> {
    let verb = if report.dry_run { "would remove" } else { "removed" };
    let mut table = terminal::table(["", verb, "", "within retention", "", "in use", ""]);
    let kinds: [(&str, &Counted); 4] = [
        ("packs", &report.packs),
        ("bitstreams", &report.bitstreams),
        ("packages", &report.packages),
        ("uploads", &report.uploads),
    ];
    for (name, Counted { removed, young, in_use }) in kinds {
        let amounts = [removed, young, in_use].into_iter().flat_map(amount);
        table.add_row(std::iter::once(name.to_owned()).chain(amounts));
    }
    table.add_row(std::iter::once("left by killed processes".to_owned()).chain(amount(&report.leftovers)));
    for column in 1..7 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    terminal::text(&format!("{table}\n"))?;
    let Amount { objects, bytes } = report.removed();
    let keep_for = Duration::from_secs(u64::try_from(report.keep_for_seconds).unwrap_or_default());
    say!(
        "{} {verb} in {} of {place}; retention is {}",
        HumanBytes(bytes),
        counted(objects, "object", "objects"),
        HumanDuration(keep_for)
    )?;
    let tombstones = &report.tombstones;
    let rewritten = &report.rewritten;
    let will = if report.dry_run { "would be " } else { "" };
    if tombstones.given_up > 0 {
        let deletions = counted(tombstones.given_up, "deletion", "deletions");
        say!("{deletions} {will}made final, and cannot be restored any more")?;
    }
    if rewritten.packs > 0 {
        say!(
            "{} {will}rewritten, with {} in use; a later gc removes {} ({})",
            counted(rewritten.packs, "sparse pack", "sparse packs"),
            counted(rewritten.bitstreams, "bitstream", "bitstreams"),
            plural(rewritten.packs, "the old one", "the old ones"),
            HumanBytes(rewritten.bytes)
        )?;
    }
    if tombstones.left > 0 || rewritten.left > 0 {
        say!(
            "not done: {} to finish, {} to rewrite. {}",
            counted(tombstones.left, "deletion", "deletions"),
            counted(rewritten.left, "pack", "packs"),
            if is_bucket {
                "Stop all syncs into this store, then pass --exclusive"
            } else {
                "Run it again when no sync is running"
            }
        )?;
    }
    for held_back in &report.held_back {
        say!(
            "a run of {} is not finished: what was stored since {} stays until it is",
            held_back.source,
            held_back.since
        )?;
    }
    for stranger in &report.strangers {
        say!("packs and packages of {stranger} stay: it has no catalog here")?;
    }
    Ok(())
}

fn amount(amount: &Amount) -> [String; 2] {
    match amount.objects {
        0 => ["-".to_owned(), String::new()],
        _ => [count(amount.objects), HumanBytes(amount.bytes).to_string()],
    }
}
