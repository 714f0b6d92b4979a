//! One answer of a repository, as a stream of its items.

use std::sync::Arc;

use jiff::SignedDuration;
use model::{Clock, Disposition, Evidence, Failure, ProblemReason, TextEncoding};
use oaipmh::{Answer, ErrorCode, Item, Options, Quirk, Quirks, ReadError, Reader, Request, Strictness};
use url::Url;
use web::{Client, GetRequest, Response, WebError};

use crate::oai::{BATCH, signs};
use crate::run::RunContext;

/// How far a clock of a repository may be ahead.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(10);

/// The compression that pages of lists are asked for with.
const GZIP: &str = "gzip";

/// Bytes of metadata that are handed on together.
const BATCH_BYTES: usize = 4 << 20;

/// What requests to a repository need of a run.
#[derive(Clone)]
pub(super) struct Asker {
    client: Client,
    clock: Arc<dyn Clock>,
    strictness: Strictness,
    /// The encoding of what is not UTF-8.
    encoding: Option<TextEncoding>,
}

impl Asker {
    pub(super) fn of(ctx: &RunContext) -> Self {
        let strictness = if ctx.options.strict { Strictness::Strict } else { Strictness::Tolerant };
        let encoding = ctx.options.oai.encoding;
        Self { client: ctx.client.clone(), clock: Arc::clone(&ctx.clock), strictness, encoding }
    }
}

/// How an answer is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Whether a failed request is repeated.
    pub(super) is_patient: bool,
    /// Whether it may come compressed.
    pub(super) is_compressed: bool,
}

/// An answer that is being received.
pub(super) struct AnswerStream {
    response: Response,
    reader: Reader,
    evidence: Evidence,
    is_received: bool,
    /// What ended it, to be told behind the items before it.
    trouble: Option<Trouble>,
}

/// Why an answer does not go on.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The list has to wait for a later run.
    Hold(Box<Failure>),
    /// The server failed, or the answer broke off: a smaller window may do.
    Server(String),
    /// It refuses a list for its length.
    TooLarge(String),
    /// A compressed answer is damaged, or ends too early.
    Compressed(String),
    /// The token expired.
    Token(String),
    /// The repository refuses an argument.
    Argument(String),
    /// There is no such record.
    NoRecord(String),
}

impl AnswerStream {
    /// Sends a request of the run, several times if it `is_patient`, and begins to read the answer.
    pub(super) async fn of(ctx: &mut RunContext, url: &str, is_patient: bool) -> Result<Self, Trouble> {
        Self::of_page(ctx, url, Asked { is_patient, is_compressed: false }).await
    }

    /// The same for a page of a list.
    pub(super) async fn of_page(ctx: &mut RunContext, url: &str, asked: Asked) -> Result<Self, Trouble> {
        let mut requests = 0;
        let opened = Self::open(&Asker::of(ctx), url, asked, &mut requests).await;
        ctx.run.counters.requests += u64::from(requests);
        opened
    }

    /// The same for a page that is read beside others. `requests` counts what was sent.
    pub(super) async fn open(
        asker: &Asker,
        url: &str,
        asked: Asked,
        requests: &mut u32,
    ) -> Result<Self, Trouble> {
        let Ok(parsed) = Url::parse(url) else {
            return Err(hold(ProblemReason::BadUri, format!("{url} is no URL"), Evidence::default()));
        };
        let encoding = asked.is_compressed.then(|| GZIP.to_owned());
        let get = GetRequest { takes_error_documents: true, encoding, ..GetRequest::new(parsed) };
        let client = &asker.client;
        let answered =
            if asked.is_patient { client.get_with_retries(get).await } else { client.get(get).await };
        match answered {
            Err(error) => {
                *requests += error.requests();
                Err(web_trouble(&error))
            }
            Ok(response) => {
                *requests += response.requests();
                let latest = asker.clock.now().checked_add(CLOCKS_DIFFER).ok();
                let encoding = asker.encoding.map(TextEncoding::get);
                let options =
                    Options { strictness: asker.strictness, encoding, latest, ..Options::default() };
                let evidence = response.evidence();
                let reader = Reader::new(options);
                Ok(Self { response, reader, evidence, is_received: false, trouble: None })
            }
        }
    }

    /// The next items, a bounded number; none at the end.
    pub(super) async fn next(&mut self) -> Result<Vec<Item>, Trouble> {
        let mut items = Vec::new();
        let mut bytes = 0;
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        loop {
            match self.reader.next() {
                Ok(Some(item)) => {
                    bytes += bytes_of(&item);
                    items.push(item);
                    if items.len() >= BATCH || bytes >= BATCH_BYTES {
                        return Ok(items);
                    }
                    continue;
                }
                Ok(None) if self.is_received => return Ok(items),
                Ok(None) => {}
                Err(error) => {
                    let trouble = self.read_trouble(&error);
                    return self.broke_off(items, trouble);
                }
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.reader.feed(&chunk),
                Ok(None) => {
                    self.is_received = true;
                    self.reader.end();
                }
                Err(error) => {
                    // The records before the break are whole.
                    return self.broke_off(items, web_trouble(&error));
                }
            }
        }
    }

    /// Whether the repository answered only when it was asked again.
    pub(super) fn was_asked_again(&self) -> bool {
        let needed = 1 + self.response.redirects().len();
        usize::try_from(self.response.requests()).is_ok_and(|requests| requests > needed)
    }

    /// Quirks of the answer, and of the status and the error that it came with.
    pub(super) fn quirks(&self, request: &Request) -> Quirks {
        let answer = self.answer();
        let mut quirks = Quirks::default();
        for (quirk, times) in answer.quirks.iter() {
            // Compression that was asked for is no quirk.
            if quirk != Quirk::Gzip || !self.is_compressed() {
                quirks.add_many(quirk, times);
            }
        }
        if let (Some(resumption), Some(date)) = (&answer.resumption, &answer.response_date)
            && signs::is_short_lived(resumption, date)
        {
            quirks.add(Quirk::ShortTokenLife);
        }
        if self.response.status() >= 400 && !answer.errors.is_empty() {
            quirks.add(Quirk::ErrorWithStatus);
        }
        if is_wrong_code(request, answer) && !answer.errors.is_empty() {
            quirks.add(Quirk::WrongErrorCode);
        }
        quirks
    }

    /// Whether it is compressed, and says so.
    fn is_compressed(&self) -> bool {
        self.response.content_encoding().is_some_and(|encoding| encoding.eq_ignore_ascii_case(GZIP))
    }

    /// What a trouble is. Compression may be the reason if the whole body came, and breaks off all the same.
    pub(super) fn judged(&self, trouble: Trouble) -> Trouble {
        match trouble {
            Trouble::Server(why) if self.is_received && self.is_compressed() => Trouble::Compressed(why),
            trouble => trouble,
        }
    }

    /// What the answer says beside its items.
    pub(super) fn answer(&self) -> &Answer {
        self.reader.answer()
    }

    /// What the repository refuses; nothing if there are just no records.
    pub(super) fn refusal(&self, request: &Request) -> Result<(), Trouble> {
        let answer = self.answer();
        if answer.errors.is_empty() {
            return answer.check_echo(request).map_err(|wrong| Trouble::Server(wrong.to_string()));
        }
        if answer.is_empty_result() || is_wrong_code(request, answer) {
            return Ok(());
        }
        let all: Vec<String> = answer.errors.iter().map(ToString::to_string).collect();
        let said = format!("the repository answers {}", all.join(", "));
        let has = |code: ErrorCode| answer.has_error(&code);
        Err(if has(ErrorCode::BadResumptionToken) {
            Trouble::Token(said)
        } else if has(ErrorCode::IdDoesNotExist) {
            Trouble::NoRecord(said)
        } else if has(ErrorCode::BadArgument) {
            Trouble::Argument(said)
        } else if has(ErrorCode::CannotDisseminateFormat) || has(ErrorCode::BadVerb) {
            hold(ProblemReason::WrongKind, said, self.evidence.clone())
        } else {
            Trouble::Server(said)
        })
    }

    /// Whether an answer that came to its end says that a list is empty. An answer without a list, and a list that is
    /// empty without saying `noRecordsMatch`, prove nothing: records would be deleted, or changes missed.
    pub(super) fn proves(&self, request: &Request) -> Result<(), Trouble> {
        let answer = self.answer();
        if !answer.complete || !answer.errors.is_empty() {
            return Ok(());
        }
        let evidence = || self.evidence.clone();
        if answer.quirks.count(Quirk::MissingVerbElement) > 0 {
            let why = "the answer has neither a list nor an error".to_owned();
            return Err(hold(ProblemReason::WrongKind, why, evidence()));
        }
        let is_first = matches!(request, Request::List { .. });
        let has_more = answer.resumption.as_ref().is_some_and(|resumption| resumption.token.is_some());
        if is_first && answer.items == 0 && !has_more {
            let why = "the list is empty, and does not say noRecordsMatch".to_owned();
            return Err(hold(ProblemReason::WrongKind, why, evidence()));
        }
        Ok(())
    }

    fn broke_off(&mut self, items: Vec<Item>, trouble: Trouble) -> Result<Vec<Item>, Trouble> {
        if items.is_empty() {
            return Err(trouble);
        }
        self.trouble = Some(trouble);
        Ok(items)
    }

    fn read_trouble(&self, error: &ReadError) -> Trouble {
        let status = self.response.status();
        if status >= 400 {
            return Trouble::Server(format!("the server answers with the status {status}"));
        }
        let why = error.to_string();
        match error {
            ReadError::Html { .. } => hold(ProblemReason::UnexpectedHtml, why, self.evidence.clone()),
            ReadError::Empty
            | ReadError::NotXml { .. }
            | ReadError::UnknownRoot { .. }
            | ReadError::Encoding { .. } => hold(ProblemReason::WrongKind, why, self.evidence.clone()),
            ReadError::DoctypeRefused { .. } | ReadError::Quirk { .. } | ReadError::BadRecord { .. } => {
                hold(ProblemReason::Malformed, why, self.evidence.clone())
            }
            ReadError::Malformed { .. }
            | ReadError::Truncated { .. }
            | ReadError::Gzip { .. }
            | ReadError::Limit { .. } => Trouble::Server(why),
        }
    }
}

/// Whether a list of a time, of a format that the repository has, is said to be of no such format: nothing is of that
/// time. A list of all records says whether the format is there.
fn is_wrong_code(request: &Request, answer: &Answer) -> bool {
    let is_of_a_time = matches!(request, Request::List { selection, .. } if !selection.window.is_all());
    let is_format = |error: &oaipmh::ProtocolError| error.code == ErrorCode::CannotDisseminateFormat;
    is_of_a_time && answer.errors.iter().all(is_format)
}

/// The bytes of a record's metadata.
fn bytes_of(item: &Item) -> usize {
    match item {
        Item::Record(record) => record.metadata.as_ref().map_or(0, |metadata| metadata.document.len()),
        _ => 0,
    }
}

impl Trouble {
    /// Whether the list has to wait for a later run, since no smaller window helps.
    pub(super) fn holds(&self) -> bool {
        matches!(self, Self::Hold(_))
    }

    /// The same as the failure of a document or a record.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Hold(failure) => *failure,
            Self::Server(message) | Self::TooLarge(message) | Self::Compressed(message) => {
                again(ProblemReason::HttpServerError, message)
            }
            Self::Token(message) => again(ProblemReason::Malformed, message),
            Self::Argument(message) => again(ProblemReason::WrongKind, message),
            Self::NoRecord(message) => again(ProblemReason::HttpClientError, message),
        }
    }
}

/// A failure that a later run may not meet.
pub(super) fn again(reason: ProblemReason, message: String) -> Failure {
    Failure {
        reason,
        message,
        disposition: Disposition::Retry { after: None },
        evidence: Evidence::default(),
    }
}

fn hold(reason: ProblemReason, message: String, evidence: Evidence) -> Trouble {
    Trouble::Hold(Box::new(Failure { evidence, ..again(reason, message) }))
}

/// Whether a smaller window may help, or the list has to wait.
fn web_trouble(error: &WebError) -> Trouble {
    use ProblemReason::{HttpServerError, Interrupted, Timeout, TooLarge, TooSlow};
    let failure = error.to_failure();
    if error.status() == Some(413) {
        return Trouble::TooLarge(failure.message);
    }
    let may_be_smaller =
        matches!(failure.reason, HttpServerError | Interrupted | Timeout | TooLarge | TooSlow)
            || matches!(error.status(), Some(400 | 414 | 422));
    if may_be_smaller { Trouble::Server(failure.message) } else { Trouble::Hold(Box::new(failure)) }
}
