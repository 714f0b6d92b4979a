//! `thresher report`: what is to be said of a Source to whoever runs it.

use catalog::CatalogReader;
use model::SourceId;
use store::SourceNote;
use url::Url;

use crate::cli::ReportArgs;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;

/// Runs the command.
pub(crate) async fn run(args: ReportArgs) -> CommandResult {
    let harvested = target::open_for_reading(&args.harvest.into).await?;
    let (note, catalog) = choose(&harvested.sources, args.source.as_deref(), &args.harvest.into)?;
    let card = report::gather(&note.source, &note.url, catalog).await?;
    if args.json {
        println!("{}", serde_json::to_string(&card)?);
    } else {
        print!("{}", card.text());
    }
    Ok(Exit::Good)
}

/// The Source that is asked for; where only one lies, it need not be named.
fn choose<'a>(
    sources: &'a [(SourceNote, CatalogReader)],
    asked: Option<&str>,
    into: &str,
) -> Result<&'a (SourceNote, CatalogReader), Failed> {
    let names = || sources.iter().map(|(note, _)| note.source.as_str()).collect::<Vec<_>>().join(", ");
    match (asked, sources) {
        (None, [only]) => Ok(only),
        (None, _) => Err(usage(format!(
            "{into} holds {} Sources; give the URL or the name of one of them: {}",
            sources.len(),
            names()
        ))),
        (Some(asked), _) => {
            let by_url = Url::parse(asked).ok().map(|url| SourceId::of_entry(&url));
            let is_asked =
                |note: &SourceNote| note.source.as_str() == asked || Some(&note.source) == by_url.as_ref();
            sources.iter().find(|(note, _)| is_asked(note)).ok_or_else(|| {
                usage(format!(
                    "{into} holds no Source that is called {asked} or was entered at that URL; give one of: {}",
                    names()
                ))
            })
        }
    }
}
