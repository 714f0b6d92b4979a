//! `thresher source`: the Sources that a fleet harvests.

use comfy_table::{Table, presets};
use control::{ControlError, PollBounds, RunMode, Schedule, SourceSpec, Times};
use model::SourceId;

use crate::cli::{AbsentArg, ModeArg, PreferArg, SourceAddArgs, SourceCommand};
use crate::commands::fleet::connect;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::http::RobotsArg;

/// Runs the command.
pub(crate) async fn run(command: SourceCommand) -> CommandResult {
    match command {
        SourceCommand::Add(args) => add(*args).await,
        SourceCommand::Ls { fleet, json } => {
            let control = connect(&fleet).await?;
            let sources = control.sources().list().await?;
            if json {
                for source in &sources {
                    println!("{}", serde_json::to_string(&*source.value)?);
                }
                return Ok(Exit::Good);
            }
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            table.set_header(["source", "when", "limit", "entry"]);
            for source in &sources {
                let limit = format!("{} at a time", source.concurrency);
                table.add_row([source.id.to_string(), when(source), limit, source.entry.to_string()]);
            }
            println!("{table}");
            Ok(Exit::Good)
        }
        SourceCommand::Rm { source, fleet } => {
            let control = connect(&fleet).await?;
            let id = source_id(&source)?;
            let read = control.sources().get(&id).await?;
            control.sources().delete(&id, read.revision).await?;
            println!("{id} is not harvested any more; what is held of it stays");
            Ok(Exit::Good)
        }
    }
}

async fn add(args: SourceAddArgs) -> CommandResult {
    let spec = spec(&args)?;
    let control = connect(&args.fleet).await?;
    match control.sources().create(&spec).await {
        Ok(_) => println!("{} is added", spec.id),
        Err(ControlError::Exists { .. }) if args.replace => {
            let read = control.sources().get(&spec.id).await?;
            control.sources().update(&spec, read.revision).await?;
            println!("{} is changed", spec.id);
        }
        Err(ControlError::Exists { .. }) => {
            return Err(usage(format!("there is a source {} already; give --replace to change it", spec.id)));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Exit::Good)
}

fn spec(args: &SourceAddArgs) -> Result<SourceSpec, Failed> {
    let schedule = match (args.every, &args.cron) {
        (Some(every), _) => Some(Schedule::every(every.as_secs().unsigned_abs())),
        (None, Some(expression)) => Some(Schedule::cron(expression.clone())),
        (None, None) => None,
    };
    let wanted = &args.wanted;
    let scope = &wanted.scope;
    let text = |regex: &Option<regex::Regex>| regex.as_ref().map(|regex| regex.as_str().to_owned());
    Ok(SourceSpec {
        enabled: !args.disabled,
        schedule,
        continuous: args.follow.then(PollBounds::default),
        mode: mode(wanted.mode),
        prefer: wanted.prefer.map(|prefer| match prefer {
            PreferArg::List => control::Prefer::List,
            PreferArg::Dump => control::Prefer::Dump,
        }),
        absent: match scope.absent {
            AbsentArg::Confirm => control::Absent::Confirm,
            AbsentArg::Delete => control::Absent::Delete,
            AbsentArg::Keep => control::Absent::Keep,
        },
        max_deletes_percent: scope.max_deletes,
        history: wanted.history,
        include: text(&scope.include),
        exclude: text(&scope.exclude),
        strict: scope.strict,
        concurrency: args.concurrency,
        requests_per_second: args.max_rate,
        robots: match args.robots {
            RobotsArg::Obey => control::Robots::Crawling,
            RobotsArg::Invited => control::Robots::Invited,
            RobotsArg::Ignore => control::Robots::Ignore,
        },
        contact: args.contact.clone(),
        credential: args.credential.clone(),
        ..SourceSpec::new(args.url.clone())
    })
}

pub(super) fn mode(mode: ModeArg) -> RunMode {
    match mode {
        ModeArg::Auto => RunMode::Auto,
        ModeArg::Baseline => RunMode::Baseline,
        ModeArg::Incremental => RunMode::Incremental,
        ModeArg::Audit => RunMode::Audit,
    }
}

/// A Source's name, or the URL it was added with.
pub(super) fn source_id(text: &str) -> Result<SourceId, Failed> {
    if text.contains("://") {
        let url = text.parse().map_err(|error| usage(format!("{text} is no URL: {error}")))?;
        return Ok(SourceId::of_entry(&url));
    }
    text.parse().map_err(usage)
}

fn when(source: &SourceSpec) -> String {
    let mut words = Vec::new();
    if !source.enabled {
        words.push("disabled".to_owned());
    }
    match source.schedule.as_ref().map(|schedule| &schedule.times) {
        Some(Times::EverySeconds(seconds)) => words.push(format!("every {seconds} s")),
        Some(Times::Cron(expression)) => words.push(format!("cron {expression}")),
        None => {}
    }
    if let Some(bounds) = source.continuous {
        words.push(format!("followed, every {} to {} s", bounds.least_seconds, bounds.most_seconds));
    }
    if words.is_empty() { "when asked".to_owned() } else { words.join(", ") }
}
