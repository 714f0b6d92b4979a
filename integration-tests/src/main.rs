//! Simulates any number of seeds: `cargo run -p integration-tests -- --seeds 0..2000`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use simulation::plan::Plan;

/// Simulates what follows from seeds, and says which of them break a promise.
#[derive(Debug, Parser)]
struct Args {
    /// The seeds, as `first..end`, or one.
    #[arg(long, default_value = "0..200")]
    seeds: String,
    /// Threads; each simulates one seed at a time.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Simulates Sources that speak OAI-PMH.
    #[arg(long)]
    oai: bool,
    /// Publishes the copy, and has a second copy follow it.
    #[arg(long, conflicts_with = "oai")]
    chain: bool,
    /// Shows what is planned, and simulates nothing.
    #[arg(long)]
    plan: bool,
    /// Ends with the first seed that fails.
    #[arg(long)]
    first: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if std::env::var_os("RUST_LOG").is_some() {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
    let parsed = match args.seeds.split_once("..") {
        Some((first, end)) => first.parse::<u64>().and_then(|first| Ok(first..end.parse()?)),
        None => args.seeds.parse::<u64>().map(|one| one..one + 1),
    };
    let Ok(seeds) = parsed else {
        eprintln!("--seeds {} is neither a number nor two of them, as 0..2000", args.seeds);
        return ExitCode::from(2);
    };
    if args.plan {
        let plan = if args.oai { Plan::of_repository } else { Plan::of };
        seeds.for_each(|seed| println!("{}", plan(seed)));
        return ExitCode::SUCCESS;
    }
    let next = AtomicU64::new(seeds.start);
    let failed = AtomicU64::new(0);
    let idle_polls = AtomicU64::new(0);
    let begin = Instant::now();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seed >= seeds.end || (args.first && failed.load(Ordering::SeqCst) > 0) {
                return;
            }
            let idle = if args.chain {
                simulation::simulate_chain(seed).map(|()| 0)
            } else if args.oai {
                simulation::simulate_repository(seed).map(|summary| summary.idle_polls)
            } else {
                simulation::simulate(seed).map(|summary| summary.idle_polls)
            };
            match idle {
                Ok(idle) => {
                    idle_polls.fetch_add(idle, Ordering::SeqCst);
                }
                Err(why) => {
                    failed.fetch_add(1, Ordering::SeqCst);
                    println!("seed {seed} fails: {why}\n");
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(work);
        }
    });
    let failed = failed.load(Ordering::SeqCst);
    let idle_polls = idle_polls.load(Ordering::SeqCst);
    let took = begin.elapsed().as_secs_f64();
    println!(
        "{} seeds, {failed} failed, {idle_polls} polls without news, {took:.1} s",
        seeds.end - seeds.start
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
