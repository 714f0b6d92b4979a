//! What the repository answers to each verb.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use oaipmh::{
    AnswerWriter, DeletedRecord, ErrorCode, Granularity, Identify, MetadataFormat, ProtocolError, Request,
    StatelessToken, Verb, WriteError,
};
use publish::{OaiRecord, PublishError};

use super::member::Member;

/// How long a request reads for sets. The next one goes on from there.
const SETS_TIME: Duration = Duration::from_secs(20);
/// Entries of the change log that are read for sets before the time is looked at.
const SETS_STEP: usize = 20_000;

/// The repository, as it answers one request.
pub(super) struct Repository<'s> {
    /// Its own URL.
    pub(super) base_url: String,
    /// The mail address of its administrator.
    pub(super) contact: &'s str,
    /// The Sources that it has.
    pub(super) members: Vec<Member<'s>>,
    /// The time of the answer: lists have all changes up to it.
    pub(super) date: Timestamp,
}

/// An answer.
pub(super) enum Answered {
    /// What was asked for.
    Content(String),
    /// An error of the protocol.
    Refused(String),
    /// A later request is answered: what it needs is being collected.
    Later,
}

/// Why there is no answer with content.
pub(super) enum Refusal {
    Later,
    Protocol(ProtocolError),
    Publish(PublishError),
}

impl From<PublishError> for Refusal {
    fn from(error: PublishError) -> Self {
        Self::Publish(error)
    }
}

impl From<ProtocolError> for Refusal {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Self {
        Self::Publish(unwritable(&error))
    }
}

impl<'s> Repository<'s> {
    /// A repository of these Sources, at this moment, which has all that others have up to a time.
    ///
    /// # Errors
    /// When a catalog fails.
    pub(super) async fn new(
        base_url: String,
        contact: &'s str,
        members: Vec<Member<'s>>,
        now: Timestamp,
        others: Timestamp,
    ) -> Result<Self, PublishError> {
        let mut date = now.min(others);
        for member in &members {
            date = date.min(member.records.complete_until(now).await?).min(member.withdrawn_until);
        }
        Ok(Self { base_url, contact, members, date })
    }

    /// Answers a request with these arguments, as a query or a form.
    ///
    /// # Errors
    /// When the catalog or the store fails.
    pub(super) async fn answer(&self, query: &str) -> Result<Answered, PublishError> {
        let arguments: Vec<(String, String)> =
            form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let answered = match Request::received(&arguments) {
            Ok(request) => self.respond(&arguments, request).await,
            Err(refused) => Err(Refusal::Protocol(refused)),
        };
        let refused = match answered {
            Ok(text) => return Ok(Answered::Content(text)),
            Err(Refusal::Later) => return Ok(Answered::Later),
            Err(Refusal::Protocol(refused)) => refused,
            Err(Refusal::Publish(error)) => return Err(error),
        };
        // Arguments that are not understood are not repeated (section 3.2).
        let is_understood = !matches!(refused.code, ErrorCode::BadVerb | ErrorCode::BadArgument);
        let arguments = if is_understood { arguments } else { Vec::new() };
        let written = self.writer(&arguments).and_then(|writer| writer.errors(&[refused]));
        written.map(Answered::Refused).map_err(|error| unwritable(&error))
    }

    async fn respond(&self, arguments: &[(String, String)], request: Request) -> Result<String, Refusal> {
        match request {
            Request::Identify => Ok(self.writer(arguments)?.identify(&self.identify().await?, &[])?),
            Request::ListMetadataFormats { identifier } => self.formats(arguments, identifier).await,
            Request::ListSets => self.sets(arguments).await,
            Request::List { verb, selection, .. } => {
                self.is_held(&selection.prefix, ErrorCode::CannotDisseminateFormat)?;
                self.list(arguments, verb, selection, None).await
            }
            Request::Resume { verb, token, .. } => {
                let token = StatelessToken::decode(&token).filter(|token| token.verb == verb);
                let token = token.ok_or_else(bad_token)?;
                self.is_held(&token.selection.prefix, ErrorCode::BadResumptionToken)?;
                let StatelessToken { selection, after, delivered, .. } = token;
                self.list(arguments, verb, selection, Some((after, delivered))).await
            }
            Request::GetRecord { identifier, prefix } => self.record(arguments, &identifier, &prefix).await,
        }
    }

    async fn identify(&self) -> Result<Identify, PublishError> {
        let mut earliest = self.date;
        for member in &self.members {
            earliest = earliest.min(member.records.earliest().await?.unwrap_or(earliest));
        }
        let name = match &self.members[..] {
            [one] => format!("{} (copy)", one.records.name().unwrap_or(one.url)),
            several => format!("Copies of {} repositories", several.len()),
        };
        Ok(Identify {
            repository_name: name,
            base_url: self.base_url.clone(),
            protocol_version: "2.0".to_owned(),
            admin_emails: vec![self.contact.to_owned()],
            earliest_datestamp: Some(earliest.into()),
            deleted_record: Some(DeletedRecord::Persistent),
            granularity: Some(Granularity::Second),
            compression: Vec::new(),
            descriptions: Vec::new(),
        })
    }

    async fn formats(
        &self,
        arguments: &[(String, String)],
        identifier: Option<String>,
    ) -> Result<String, Refusal> {
        let mut formats: Vec<MetadataFormat> = Vec::new();
        let mut is_known = identifier.is_none();
        for member in &self.members {
            let own = match &identifier {
                None => member.records.formats().to_vec(),
                Some(identifier) => match member.records.formats_of(identifier).await? {
                    None => continue,
                    Some(own) => own,
                },
            };
            is_known = true;
            for format in own {
                if !formats.iter().any(|known| known.prefix == format.prefix) {
                    formats.push(format);
                }
            }
        }
        if !is_known {
            return Err(no_item().into());
        }
        if formats.is_empty() {
            return Err(ProtocolError::new(ErrorCode::NoMetadataFormats, "the item was deleted").into());
        }
        let mut writer = self.writer(arguments)?;
        writer.open(Verb::ListMetadataFormats);
        formats.iter().try_for_each(|format| writer.format(format))?;
        Ok(writer.finish(None)?)
    }

    async fn sets(&self, arguments: &[(String, String)]) -> Result<String, Refusal> {
        let begun = Instant::now();
        let mut sets = Vec::new();
        for member in &self.members {
            let mut seen = member.seen.lock().await;
            while !member.records.see_sets(&mut seen, SETS_STEP).await? {
                if begun.elapsed() > SETS_TIME {
                    return Err(Refusal::Later);
                }
            }
            sets.extend(member.sets(&seen));
        }
        if sets.is_empty() {
            return Err(ProtocolError::new(ErrorCode::NoSetHierarchy, "no sets are known").into());
        }
        let mut writer = self.writer(arguments)?;
        writer.open(Verb::ListSets);
        sets.iter().try_for_each(|set| writer.set(set))?;
        Ok(writer.finish(None)?)
    }

    async fn record(
        &self,
        arguments: &[(String, String)],
        identifier: &str,
        prefix: &str,
    ) -> Result<String, Refusal> {
        self.is_held(prefix, ErrorCode::CannotDisseminateFormat)?;
        for member in self.members.iter().filter(|member| member.has_format(prefix)) {
            let found = member.records.record(identifier, prefix).await;
            if let Err(PublishError::Store(error)) = &found {
                member.note_damage(identifier, prefix, error).await;
            }
            let Some(record) = found? else { continue };
            let OaiRecord { header, metadata } = record;
            let mut writer = self.writer(arguments)?;
            writer.open(Verb::GetRecord);
            writer.record(&member.header(header), metadata.as_deref(), &[])?;
            return Ok(writer.finish(None)?);
        }
        Err(no_item().into())
    }

    /// Refuses a format that is not held.
    fn is_held(&self, prefix: &str, code: ErrorCode) -> Result<(), ProtocolError> {
        if self.members.iter().any(|member| member.has_format(prefix)) {
            return Ok(());
        }
        Err(ProtocolError::new(code, "this format is not held; ListMetadataFormats names those that are"))
    }

    pub(super) fn writer(&self, arguments: &[(String, String)]) -> Result<AnswerWriter, WriteError> {
        let arguments: Vec<(&str, &str)> =
            arguments.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        AnswerWriter::new(self.date, &self.base_url, &arguments, Granularity::Second)
    }
}

pub(super) fn bad_token() -> ProtocolError {
    let why = "the token is none of this repository, or its records were made anew; begin the list again";
    ProtocolError::new(ErrorCode::BadResumptionToken, why)
}

fn no_item() -> ProtocolError {
    ProtocolError::new(ErrorCode::IdDoesNotExist, "there is no such item")
}

fn unwritable(error: &WriteError) -> PublishError {
    PublishError::Refused(format!("an answer cannot be written: {error}"))
}
