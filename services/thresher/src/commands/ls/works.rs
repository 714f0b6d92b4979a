//! `thresher ls --group`: list works, each with its metadata and files.

use std::io;
use std::pin::pin;

use futures::TryStreamExt;
use model::counted;
use report::works::{self, Member, Work, WorksError};

use crate::cli::LsArgs;
use crate::client::{self, ReadFrom};
use crate::exit::{CommandResult, Exit, Failed, problem};
use crate::target;
use crate::terminal::Out;

/// Runs the command.
pub(super) async fn run(args: LsArgs) -> CommandResult {
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let mut out = Out::new();
    match client::read_from(&args.location)? {
        ReadFrom::Store(into) => {
            let harvested = target::open_for_reading(&into, args.source.as_deref()).await?;
            for (_, catalog) in &harvested.sources {
                let mut works = pin!(works::scan(catalog, prefix, None, None).await.map_err(failed)?);
                while let Some(work) = works.try_next().await.map_err(failed)? {
                    print(&mut out, &work, args.json)?;
                }
            }
        }
        ReadFrom::Gateway(client) => {
            for about in client.selected(args.source.as_deref()).await? {
                let path = ["sources", about.id.as_str(), "works"];
                let query = [("prefix", prefix.to_owned())];
                let mut works = pin!(client.items::<Work>(&path, &query));
                while let Some(work) = about.found(works.try_next().await)?.flatten() {
                    print(&mut out, &work, args.json)?;
                }
            }
        }
    }
    out.finish()?;
    Ok(Exit::Good)
}

fn failed(error: WorksError) -> Failed {
    match error {
        WorksError::Catalog(error) => error.into(),
        error => problem(error.to_string()),
    }
}

fn print(out: &mut Out, work: &Work, json: bool) -> io::Result<()> {
    out.json_or_lines(json, work, || lines(work))
}

/// A work in words: its head, then a line for each of its resources and statements.
fn lines(work: &Work) -> Vec<String> {
    let mut said = Vec::new();
    if work.landing_page.as_ref() == Some(&work.uri) {
        said.push("landing page".to_owned());
    }
    if !work.complete {
        said.push("incomplete".to_owned());
    }
    if let Some(orphan) = &work.orphan {
        said.push(format!("orphan: {} {} is not stored", orphan.rel, orphan.uri));
    }
    let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) };
    let mut lines = vec![format!("{}{said}", work.uri)];
    lines.extend(work.metadata.iter().map(|member| line("metadata", member)));
    lines.extend(work.files.iter().map(|member| line("file", member)));
    lines.extend(
        (work.more > 0).then(|| format!("    and {} more", counted(work.more, "resource", "resources"))),
    );
    for (what, targets) in [
        ("collection", &work.collections),
        ("license", &work.licenses),
        ("cite-as", &work.cite_as),
        ("author", &work.authors),
    ] {
        lines.extend(targets.iter().map(|target| format!("    {what:<10}  {target}")));
    }
    lines.extend(
        work.part_of.iter().map(|part| format!("    {:<10}  {} ({})", "part of", part.uri, part.rel)),
    );
    lines
}

fn line(what: &str, member: &Member) -> String {
    let state = member.state.map_or("not stored".to_owned(), |state| state.to_string());
    let mut said = vec![member.rel.as_str()];
    said.extend(member.media_type.as_deref());
    said.extend(member.profile.as_deref());
    said.extend(member.linked.then_some("linked only"));
    format!("    {what:<10}  {}: {state} ({})", member.uri, said.join(", "))
}
