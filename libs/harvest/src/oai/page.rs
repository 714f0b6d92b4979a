//! Reads one page of a list, beside the owner of the Source: the owner settles its records as they come.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;
use model::OaiWindow;
use oaipmh::{Answer, Item, Quirks, Request, Step, Token, Trail};
use planning::oai::PageRead;
use tokio::sync::mpsc::Sender;

use crate::oai::answer::{AnswerStream, Asked, Asker, Trouble};
use crate::oai::bounds;
use crate::oai::content::Received;

/// A page that is to be read.
pub(super) struct PageRequest {
    pub(super) request: Request,
    pub(super) url: String,
    pub(super) token: Option<Token>,
    /// Whether a failed request is repeated, before a smaller window is tried.
    pub(super) is_patient: bool,
    /// Whether a compressed answer is asked for.
    pub(super) is_compressed: bool,
    /// The pages of the window so far.
    pub(super) before: Before,
}

/// What is remembered of the pages of a window.
#[derive(Default)]
pub(super) struct Before {
    trail: Trail,
    /// The identifiers of the last page.
    last: HashSet<u64>,
    state: RandomState,
    /// Whether a page was asked for again by the same token.
    pub(super) has_resent: bool,
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
    pub(super) before: Before,
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
    let mut came = PageCame {
        requests: 0,
        was_asked_again: false,
        quirks: Quirks::default(),
        before: Before::default(),
        result: Ok((PageRead::default(), Step::Next)),
    };
    match AnswerStream::open(&asker, &page.url, page.asked(), &mut came.requests).await {
        Err(trouble) => came.result = Err(trouble),
        Ok(mut stream) => {
            let PageRequest { request, token, mut before, .. } = page;
            came.was_asked_again = stream.was_asked_again();
            before.has_resent |= came.was_asked_again && token.is_some();
            let seen = items(&mut stream, &request, Seen::after(&before), &hand_on).await;
            came.quirks = stream.quirks(&request);
            let result = match seen {
                Ok(Some(seen)) => end(stream.answer(), token.as_ref(), &mut before, seen),
                // The owner has gone.
                Ok(None) => return,
                Err(trouble) => Err(trouble),
            };
            came.result = result.map_err(|trouble| stream.judged(trouble));
            came.before = before;
        }
    }
    hand_on.send(Event::End(Box::new(came))).await;
}

/// Hands the items of a page on, and returns what they were; none if the owner has gone.
async fn items(
    stream: &mut AnswerStream,
    request: &Request,
    mut seen: Seen,
    hand_on: &HandOn,
) -> Result<Option<Seen>, Trouble> {
    loop {
        let items = stream.next().await?;
        stream.refusal(request)?;
        if items.is_empty() {
            stream.proves(request)?;
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
    before: &mut Before,
    seen: Seen,
) -> Result<(PageRead, Step), Trouble> {
    if !answer.complete {
        return Err(Trouble::Server("the answer ends before its root element does".to_owned()));
    }
    let step = before.trail.step(token, answer);
    let resumption = answer.resumption.as_ref();
    let read = PageRead {
        records: seen.records,
        repeated: seen.repeated,
        newest: seen.newest,
        is_offset: false,
        has_token_element: resumption.is_some(),
        token: resumption
            .and_then(|resumption| resumption.token.as_ref())
            .map(|token| token.as_str().to_owned()),
        complete: resumption.and_then(|resumption| resumption.complete_list_size),
        response_date: answer.response_date.as_ref().map(|date| date.instant()),
    };
    before.last = seen.hashes;
    Ok((read, step))
}

impl PageRequest {
    /// How it is asked for.
    pub(super) fn asked(&self) -> Asked {
        Asked { is_patient: self.is_patient, is_compressed: self.is_compressed }
    }
}

/// The identifiers of a page, to count each once.
#[derive(Default)]
pub(super) struct Seen {
    hashes: HashSet<u64>,
    /// Those of the page before.
    last: HashSet<u64>,
    state: RandomState,
    records: u64,
    repeated: u64,
    /// The newest datestamp.
    newest: Option<Timestamp>,
}

impl Seen {
    pub(super) fn after(before: &Before) -> Self {
        let (last, state) = (before.last.clone(), before.state.clone());
        Self { last, state, ..Self::default() }
    }

    pub(super) fn add(&mut self, items: &[Item]) {
        for item in items.iter().filter(|item| !matches!(item, Item::Set(_) | Item::Format(_))) {
            let is_new = bounds::header(item).is_none_or(|header| {
                let hash = self.state.hash_one(&header.identifier);
                self.hashes.insert(hash) && !self.last.contains(&hash)
            });
            self.records += u64::from(is_new);
            self.repeated += u64::from(!is_new);
            self.newest = self.newest.max(bounds::datestamp(item));
        }
    }
}
