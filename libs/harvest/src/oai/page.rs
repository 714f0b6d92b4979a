//! Reads one page of a list, beside the owner of the Source: the owner settles its records as they come.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;
use model::OaiWindow;
use oaipmh::{Answer, Item, Quirks, Request, Step, Token, Trail};
use planning::oai::PageRead;
use resourcesync::Datetime;
use tokio::sync::mpsc::Sender;

use crate::oai::answer::{AnswerStream, Asker, Trouble};
use crate::oai::content::Received;

/// A page that is to be read.
pub(super) struct PageRequest {
    pub(super) request: Request,
    pub(super) url: String,
    pub(super) token: Option<Token>,
    /// Whether a failed request is repeated, before a smaller window is tried.
    pub(super) is_patient: bool,
    /// The pages of the window so far.
    pub(super) trail: Trail,
}

/// What comes of a page.
pub(super) enum Event {
    /// Its next items, a bounded number.
    Items(Vec<Received>),
    /// Its end.
    End(Box<PageCame>),
}

/// The end of a page.
pub(super) struct PageCame {
    /// Requests that were sent for it.
    pub(super) requests: u32,
    /// Whether the repository answered only when it was asked again.
    pub(super) was_asked_again: bool,
    pub(super) quirks: Quirks,
    pub(super) trail: Trail,
    /// What it said beside its items, or why it is no basis to go on.
    pub(super) result: Result<(PageRead, Step), Trouble>,
}

/// Where the events of a page go.
pub(super) struct HandOn {
    pub(super) window: OaiWindow,
    pub(super) sender: Sender<(OaiWindow, Event)>,
}

impl HandOn {
    /// Hands an event on. Returns whether the owner of the Source took it.
    async fn send(&self, event: Event) -> bool {
        self.sender.send((self.window.clone(), event)).await.is_ok()
    }
}

/// Reads a page and hands its items on. A page that breaks off has brought those before the break.
pub(super) async fn read(asker: Asker, page: PageRequest, hand_on: HandOn) {
    let PageRequest { request, url, token, is_patient, trail } = page;
    let mut came = PageCame {
        requests: 0,
        was_asked_again: false,
        quirks: Quirks::default(),
        trail,
        result: Ok((PageRead::default(), Step::Next)),
    };
    match AnswerStream::open(&asker, &url, is_patient, &mut came.requests).await {
        Err(trouble) => came.result = Err(trouble),
        Ok(mut stream) => {
            came.was_asked_again = stream.was_asked_again();
            let seen = items(&mut stream, &request, &hand_on).await;
            came.quirks = stream.quirks(&request);
            came.result = match seen {
                Ok(Some(seen)) => end(stream.answer(), token.as_ref(), &mut came.trail, &seen),
                // The owner has gone.
                Ok(None) => return,
                Err(trouble) => Err(trouble),
            };
        }
    }
    hand_on.send(Event::End(Box::new(came))).await;
}

/// Hands the items of a page on, and returns what they were; none if the owner has gone.
async fn items(
    stream: &mut AnswerStream,
    request: &Request,
    hand_on: &HandOn,
) -> Result<Option<Seen>, Trouble> {
    let mut seen = Seen::default();
    loop {
        let items = stream.next().await?;
        stream.refusal(request)?;
        if items.is_empty() {
            return Ok(Some(seen));
        }
        seen.add(&items);
        let received = items.into_iter().map(Received::of).collect();
        if !hand_on.send(Event::Items(received)).await {
            return Ok(None);
        }
    }
}

/// What a page says that was received to its end.
pub(super) fn end(
    answer: &Answer,
    token: Option<&Token>,
    trail: &mut Trail,
    seen: &Seen,
) -> Result<(PageRead, Step), Trouble> {
    if !answer.complete {
        return Err(Trouble::Server("the answer ends before its root element does".to_owned()));
    }
    let step = trail.step(token, answer);
    let resumption = answer.resumption.as_ref();
    let read = PageRead {
        records: seen.records,
        newest: seen.newest,
        is_offset: false,
        token: resumption
            .and_then(|resumption| resumption.token.as_ref())
            .map(|token| token.as_str().to_owned()),
        complete: resumption.and_then(|resumption| resumption.complete_list_size),
        response_date: answer.response_date.as_ref().map(|date| date.instant()),
    };
    Ok((read, step))
}

/// The identifiers of a page, to count each once.
#[derive(Default)]
pub(super) struct Seen {
    hashes: HashSet<u64>,
    state: RandomState,
    records: u64,
    /// The newest datestamp.
    newest: Option<Timestamp>,
}

impl Seen {
    pub(super) fn add(&mut self, items: &[Item]) {
        for item in items {
            let header = match item {
                Item::Record(record) => Some(&record.header),
                Item::Header(header) => Some(&**header),
                Item::Bad(bad) => bad.header.as_ref(),
                Item::Set(_) | Item::Format(_) => continue,
            };
            let is_new =
                header.is_none_or(|header| self.hashes.insert(self.state.hash_one(&header.identifier)));
            self.records += u64::from(is_new);
            let datestamp = header.and_then(|header| header.datestamp.as_ref());
            self.newest = self.newest.max(datestamp.map(Datetime::instant));
        }
    }
}
