//! `thresher scrub`: find damaged or missing bytes in the store.

mod findings;
mod live;
mod outcome;
mod record;
mod repair;
mod versions;

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Instant;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use store::StoreTarget;
use verifier::scrub::{Choice, Scrub, ScrubItem, ScrubOptions, Share};

use crate::cli::ScrubArgs;
use crate::exit::{CommandResult, Failed, usage};
use crate::target::{self, OpenHarvest};
use findings::Findings;
use outcome::Outcome;

/// Seconds of a day, in UTC for all users.
const DAY: i64 = 24 * 60 * 60;

/// Runs the command.
pub(crate) async fn run(args: ScrubArgs) -> CommandResult {
    let start = Instant::now();
    let target = target::parse(&args.harvest.into)?;
    let owns = args.exclusive || matches!(target, StoreTarget::Directory(_));
    if args.repair && !owns {
        return Err(usage(
            "--repair in s3:// needs exclusive access: stop the fleet and all other syncs into this store, then pass \
             --exclusive. A fleet repairs what its own scrubs find",
        ));
    }
    let seed = args.seed.unwrap_or_else(rand::random);
    let choice = choice(&args, seed)?;
    let harvested = target::open_for_reading(&args.harvest.into, None).await?;
    let mut outcome = Outcome::new(target::place(&harvested.store), choice, seed, args.json);
    let mut findings = Findings::new()?;
    outcome.report = read(&harvested, &args, choice, &mut findings, &outcome).await?;
    if let Some(count) = args.compare_live {
        outcome.live = Some(Box::pin(live::compare(&harvested, count, seed, &args.http, &outcome)).await?);
    }
    for (source, count) in findings.sources() {
        let recorded = if owns {
            let recording = record::record(&target, &source, &findings, args.repair, outcome.handled);
            Box::pin(recording).await?
        } else {
            None
        };
        let Some((catalog, handled)) = recorded else {
            outcome.left(source, count);
            continue;
        };
        outcome.handled = handled;
        let url = harvested.sources.iter().find(|(note, _)| note.source == source).map(|(note, _)| &note.url);
        match url {
            Some(url) if args.repair => {
                let store = target::open_store(&target).await?;
                let repairing = repair::repair(&source, url, catalog, store, &findings, &args.http);
                outcome.handled.repaired += Box::pin(repairing).await?;
            }
            _ => catalog.close().await?,
        }
    }
    outcome.print(start.elapsed())
}

fn choice(args: &ScrubArgs, seed: u64) -> Result<Choice, Failed> {
    if let Some(size) = args.sample {
        return Ok(Choice::Sample { size: size.get(), seed });
    }
    let Some(percent) = args.daily_share else { return Ok(Choice::All) };
    let days = NonZeroU32::new(u32::from(percent)).map(|percent| 100_u32.div_ceil(percent.get()));
    let days = days.and_then(NonZeroU32::new).ok_or_else(|| usage("give a share of at least 1%"))?;
    let day = Timestamp::now().as_second().div_euclid(DAY);
    Ok(Choice::Share(Share { days, day: u64::try_from(day).unwrap_or_default() }))
}

/// Reads the chosen resources of all Sources. Findings are printed at once, and kept.
async fn read(
    harvested: &OpenHarvest,
    args: &ScrubArgs,
    choice: Choice,
    findings: &mut Findings,
    outcome: &Outcome,
) -> Result<verifier::scrub::ScrubReport, Failed> {
    let mut scrub = Scrub::new(choice);
    for (note, catalog) in &harvested.sources {
        let mut resources = catalog.scan_resources(None, None).await?;
        while let Some((uri, record)) = resources.try_next().await? {
            let Some(bitstream) = record.bitstream else { continue };
            let location = bitstream.location;
            let computed = bitstream.computed;
            scrub.offer(ScrubItem { source: note.source.clone(), uri, location, computed, version: None })?;
        }
        // After the resources: a replaced version moves from its resource to the kept versions.
        let mut versions = catalog.scan_versions(None).await?;
        while let Some((uri, versions)) = versions.try_next().await? {
            for kept in versions.kept.into_iter().filter(|version| version.lost.is_none()) {
                let location = kept.bitstream.location;
                let computed = kept.bitstream.computed;
                let source = note.source.clone();
                let uri = uri.clone();
                let version = Some(kept.from);
                scrub.offer(ScrubItem { source, uri, location, computed, version })?;
            }
        }
    }
    let at_a_time = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let options = ScrubOptions { bytes_per_second: args.rate, at_a_time };
    let report = scrub.run(&harvested.store, options, |damaged| {
        outcome.print_finding(&damaged)?;
        Ok(findings.add(&damaged)?)
    });
    Ok(report.await?)
}
