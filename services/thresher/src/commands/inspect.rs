//! `thresher inspect`: print a document or a package as JSON lines.

mod links;
mod package;

use std::io::{self, Read, Write};
use std::path::Path;

use documents::{DocumentError, Opened, Part};
use jiff::Timestamp;
use model::Validators;
use packages::Packaging;
use resourcesync::{Entry, Header, Item, Link, Mode, Options, Quirks, Reader, Summary};
use serde::Serialize;
use url::Url;
use web::{GetRequest, WebConfig};

use crate::cli::InspectArgs;
use crate::exit::{CommandResult, Exit, Failed, problem, usage};
use crate::terminal::{Out, note};
use crate::{crawl_delays, http};

/// The first line: the kind of document, its URL, and its own metadata.
#[derive(Serialize)]
struct DocumentLine<'a> {
    document: &'a str,
    name: &'a str,
    #[serde(flatten)]
    header: Header,
    links: Vec<Link>,
}

/// The line of an entry: digests as a list, lists also when empty, everything else as in the document.
#[derive(Serialize)]
struct EntryLine {
    #[serde(flatten)]
    entry: Entry,
    hashes: Vec<String>,
    links: Vec<Link>,
    /// In a manifest inside its package: the member, or null if there is none of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<Option<package::Member>>,
}

/// The last line.
#[derive(Serialize)]
struct SummaryLine {
    entries: u64,
    bad: u64,
    complete: bool,
    quirks: Quirks,
}

/// Runs the command.
pub(crate) async fn run(args: InspectArgs) -> CommandResult {
    let mode = if args.strict { Mode::Strict } else { Mode::Tolerant };
    let options = documents::read_options(mode, Timestamp::now());
    if args.links {
        return links::run(&args).await;
    }
    match Url::parse(&args.document) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && Entry::new(url.as_str()).names_package() => {
            of_remote_package(&url, web(&args, &url)?, options).await
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") => of_url(&url, web(&args, &url)?, options).await,
        _ => match of_local_package(&args.document)? {
            Some(found) => package::run(Path::new(&args.document), &args.document, found, options).await,
            None => tokio::task::spawn_blocking(move || of_file(&args.document, options)).await?,
        },
    }
}

/// How to request the document at `url`, and how much of it to read.
fn web(args: &InspectArgs, url: &Url) -> Result<WebConfig, Failed> {
    let mut web = args.http.config(url)?;
    web.bodies.largest = args.max_size.get();
    Ok(web)
}

fn of_local_package(name: &str) -> Result<Option<Packaging>, Failed> {
    match name {
        "-" => Ok(None),
        name => package::packaging(Path::new(name)).map_err(|error| {
            usage(format!("cannot read {name}: {error}; give a file that can be read, or a URL"))
        }),
    }
}

/// A package needs random access, so it is received first.
async fn of_remote_package(url: &Url, web: WebConfig, options: Options) -> CommandResult {
    let client = http::client(web)?;
    let mut response =
        crawl_delays::print_during(&client, client.get_with_retries(GetRequest::new(url.clone()))).await?;
    let mut file = tempfile::NamedTempFile::new()?;
    while let Some(chunk) = response.chunk().await? {
        file.write_all(&chunk)?;
    }
    match package::packaging(file.path())? {
        Some(found) => package::run(file.path(), response.final_url().as_str(), found, options).await,
        None => of_file(&file.path().display().to_string(), options),
    }
}

async fn of_url(url: &Url, web: WebConfig, options: Options) -> CommandResult {
    let client = http::client(web)?;
    let opening = documents::open(&client, url, Validators::default(), options);
    let Opened::Document(mut stream) = crawl_delays::print_during(&client, opening).await? else {
        return Err(DocumentError::NothingSent.into());
    };
    let name = stream.url.to_string();
    let mut out = Lines::new(&name);
    while let Some(part) = stream.next().await {
        match part {
            Part::Header(header) => out.header(&header)?,
            Part::Items(items) => items.iter().try_for_each(|item| out.item(item, None))?,
            Part::End(summary) => return out.end(summary, None),
            Part::Broken(error, summary) => return out.end(summary, Some(error)),
        }
    }
    Err(DocumentError::Stopped.into())
}

fn of_file(name: &str, options: Options) -> CommandResult {
    let input: Box<dyn Read> =
        if name == "-" { Box::new(io::stdin().lock()) } else { Box::new(fs_err::File::open(name)?) };
    let mut out = Lines::new(name);
    let mut reader = match Reader::new(input, options) {
        Ok(reader) => reader,
        Err(error) => return out.end(Summary::default(), Some(error.into())),
    };
    let error = match reader.header() {
        Ok(header) => {
            out.header(header)?;
            loop {
                match reader.next() {
                    Ok(Some(item)) => out.item(&item, None)?,
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            }
        }
        Err(error) => Some(error),
    };
    out.end(reader.summary(), error.map(DocumentError::from))
}

struct Lines<'a> {
    name: &'a str,
    out: Out,
}

impl<'a> Lines<'a> {
    fn new(name: &'a str) -> Self {
        Self { name, out: Out::new() }
    }

    fn header(&mut self, header: &Header) -> Result<(), Failed> {
        let document = header.capability.as_ref().map_or("sitemap".to_owned(), ToString::to_string);
        let name = self.name;
        let mut header = header.clone();
        let links = std::mem::take(&mut header.links);
        self.line(&DocumentLine { document: &document, name, header, links })
    }

    fn item(&mut self, item: &Item, member: Option<Option<package::Member>>) -> Result<(), Failed> {
        match item {
            Item::Entry(entry) => {
                let mut entry = (**entry).clone();
                let hash = entry.metadata.hash.take().unwrap_or_default();
                let hashes = hash.split_whitespace().map(str::to_owned).collect();
                let links = std::mem::take(&mut entry.links);
                self.line(&EntryLine { entry, hashes, links, member })
            }
            Item::Bad(bad) => {
                note!("{}:{}: entry left out: {}", self.name, bad.position, bad.reason);
                Ok(())
            }
        }
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), Failed> {
        Ok(self.out.json(value)?)
    }

    fn summary(&mut self, summary: Summary) -> Result<(), Failed> {
        let Summary { entries, bad, complete, quirks } = summary;
        self.line(&SummaryLine { entries, bad, complete, quirks })
    }

    fn finish(self) -> CommandResult {
        self.out.finish()?;
        Ok(Exit::Good)
    }

    fn end(mut self, summary: Summary, error: Option<DocumentError>) -> CommandResult {
        self.summary(summary)?;
        self.out.finish()?;
        match error {
            None => Ok(Exit::Good),
            Some(error) => Err(problem(format!("{}:{error}", self.name))),
        }
    }
}
