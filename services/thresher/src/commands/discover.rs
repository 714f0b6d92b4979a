//! `thresher discover`: show what a Source offers.

use resourcesync::Options;
use scheduler::Discovery;
use web::{Client, WebConfig};

use crate::cli::DiscoverArgs;
use crate::exit::{CommandResult, Exit};

/// Runs the command.
pub(crate) async fn run(args: DiscoverArgs) -> CommandResult {
    let client = Client::new(WebConfig::default())?;
    let found = scheduler::discover(&client, &args.url, &Options::default()).await?;
    if args.json {
        println!("{}", serde_json::to_string(&found)?);
    } else {
        print!("{}", draw(&found));
    }
    Ok(if found.failures.is_empty() { Exit::Good } else { Exit::Problems })
}

/// The tree, as text.
fn draw(found: &Discovery) -> String {
    let mut lines = Vec::new();
    for document in &found.documents {
        let kind =
            document.capability.as_ref().map_or("sitemap (no capability given)".into(), ToString::to_string);
        lines.push(format!("read  {kind}  {}", document.url));
    }
    for (n, (id, set)) in found.sets.iter().enumerate() {
        lines.push(format!("set {}  {id}", n + 1));
        let last = set.capabilities.len().saturating_sub(1);
        for (n, link) in set.capabilities.iter().enumerate() {
            let branch = if n == last { "└─" } else { "├─" };
            lines.push(format!("  {branch} {:<20} {}", link.capability.to_string(), link.uri));
        }
    }
    for unread in &found.failures {
        lines.push(format!("not read  {}: {}", unread.url, unread.why));
    }
    lines.push(format!("{} requests", found.requests));
    lines.join("\n") + "\n"
}
