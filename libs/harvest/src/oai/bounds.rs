//! How a repository reads `from` and `until`: as bounds that have records of their own, or not. One request tells,
//! before a window is halved for the first time (docs/adr/0066).

use std::borrow::Borrow;

use jiff::Timestamp;
use model::{OaiReadingKind, OaiWindow};
use oaipmh::{Item, Quirk, RecordHeader, Verb};
use planning::oai::{List, floor};

use crate::oai::answer::{AnswerStream, Trouble};
use crate::oai::reading::Reading;
use crate::run::RunContext;

/// What is known for the request.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// The newest datestamp of a record that came.
    pub(super) newest: Option<Timestamp>,
    /// The oldest one.
    pub(super) oldest: Option<Timestamp>,
    /// Whether an older record than the repository says that its oldest one is was told.
    is_told: bool,
    /// Whether the request was sent.
    is_asked: bool,
}

impl Bounds {
    /// Looks at records that came.
    pub(super) fn see<T: Borrow<Item>>(&mut self, items: &[T]) {
        let times = || items.iter().filter_map(|item| datestamp(item.borrow()));
        self.newest = self.newest.max(times().max());
        self.oldest = self.oldest.into_iter().chain(times()).min();
    }

    /// Whether a record came that is older than `earliest`. It is said once.
    pub(super) fn is_older_than(&mut self, earliest: Option<Timestamp>) -> bool {
        let is_older =
            !self.is_told && self.oldest.zip(earliest).is_some_and(|(oldest, earliest)| oldest < earliest);
        self.is_told |= is_older;
        is_older
    }
}

/// Asks for the records of one unit of time, of which one has a record. Asks once in a run, and only if a window is
/// about to be halved and nothing is known yet.
pub(super) async fn learn(ctx: &mut RunContext, reading: &mut Reading, window: &OaiWindow) {
    let span = reading.span(ctx);
    let Some(newest) = reading.bounds.newest.filter(|_| !reading.bounds.is_asked) else { return };
    if !List::of(&mut reading.list.progress, span).asks_for_bounds(window) {
        return;
    }
    let time = floor(newest, reading.list.by_seconds);
    let has_records = has_records_of(ctx, reading, time).await;
    // Where seconds are refused, it is asked for a day later on.
    reading.bounds.is_asked = !matches!(has_records, Err(Trouble::Argument(_)));
    match has_records {
        Ok(true) => reading.list.progress.inclusive_bounds = true,
        Ok(false) => {
            reading.quirk(Quirk::ExclusiveBounds);
            tracing::info!(document.uri = reading.uri, %time, "from or until leaves out its own records");
        }
        Err(trouble) => tracing::debug!(document.uri = reading.uri, ?trouble, "bounds are not known"),
    }
}

/// Whether a list from and until a time has a record of that time.
async fn has_records_of(ctx: &mut RunContext, reading: &Reading, time: Timestamp) -> Result<bool, Trouble> {
    let is_sweep = reading.kind == OaiReadingKind::Identifiers;
    let verb = if is_sweep { Verb::ListIdentifiers } else { Verb::ListRecords };
    let window = OaiWindow { from: Some(time), until: Some(time), ..OaiWindow::default() };
    let request = reading.request(verb, &window, None);
    let mut stream = AnswerStream::of(ctx, &request.url(&reading.base), false).await?;
    loop {
        let items = stream.next().await?;
        stream.refusal(&request)?;
        if items.is_empty() {
            let why = "the answer ends before its root element does".to_owned();
            return if stream.answer().complete { Ok(false) } else { Err(Trouble::Server(why)) };
        }
        let mut times = items.iter().filter_map(datestamp);
        if times.any(|of| floor(of, reading.list.by_seconds) == time) {
            return Ok(true);
        }
    }
}

/// The datestamp of a record, or of its header.
pub(super) fn datestamp(item: &Item) -> Option<Timestamp> {
    Some(header(item)?.datestamp.as_ref()?.instant())
}

/// The header of a record, if it is known.
pub(super) fn header(item: &Item) -> Option<&RecordHeader> {
    match item {
        Item::Record(record) => Some(&record.header),
        Item::Header(header) => Some(header),
        Item::Bad(bad) => bad.header.as_ref(),
        Item::Set(_) | Item::Format(_) => None,
    }
}
