//! Lists of headers and of records: one Source after the other, since the order in a list means nothing.

use oaipmh::{ProtocolError, Resumption, Selection, StatelessToken, Token, Verb};
use publish::{BodyError, OaiLimits, OaiPage, OaiRecord, PublishError};

use super::member::Member;
use super::repository::{Refusal, Repository, bad_token};

/// A page of records.
const RECORDS: OaiLimits = OaiLimits { records: 250, bytes: 8 * 1024 * 1024, entries: 200_000 };
/// A page of headers.
const HEADERS: OaiLimits = OaiLimits { records: 2_500, ..RECORDS };
/// A look whether there is anything.
const ANY: OaiLimits = OaiLimits { records: 1, ..RECORDS };

/// A page of the repository's list.
struct Page {
    records: Vec<OaiRecord>,
    next: Option<String>,
}

impl Repository<'_> {
    /// A page of a list, behind a position and so many records.
    pub(super) async fn list(
        &self,
        arguments: &[(String, String)],
        verb: Verb,
        selection: Selection,
        after: Option<(String, u64)>,
    ) -> Result<String, Refusal> {
        let (after, delivered) = after.map_or((None, 0), |(after, delivered)| (Some(after), delivered));
        let Page { records, next } = self.page(verb, &selection, after.as_deref()).await?;
        let is_first = after.is_none();
        if records.is_empty() && next.is_none() && is_first {
            return Err(ProtocolError::new(oaipmh::ErrorCode::NoRecordsMatch, "no record matches").into());
        }
        let mut writer = self.writer(arguments)?;
        writer.open(verb);
        for OaiRecord { header, metadata } in &records {
            match verb {
                Verb::ListIdentifiers => writer.header(header)?,
                _ => writer.record(header, metadata.as_deref(), &[])?,
            }
        }
        let count = delivered + records.len() as u64;
        let is_only = is_first && next.is_none();
        let token = next.and_then(|after| {
            Token::new(&StatelessToken { verb, selection, after, delivered: count, made: self.date }.encode())
        });
        let resumption = Resumption { token, cursor: Some(delivered), ..Resumption::default() };
        Ok(writer.finish((!is_only).then_some(&resumption))?)
    }

    async fn page(&self, verb: Verb, selection: &Selection, after: Option<&str>) -> Result<Page, Refusal> {
        let limits = if verb == Verb::ListIdentifiers { HEADERS } else { RECORDS };
        let (mut at, mut own) = match after {
            None => (0, None),
            Some(after) => {
                let found = self.members.iter().enumerate();
                let mut found = found.filter_map(|(at, member)| Some((at, member.own_position(after)?)));
                let (at, own) = found.next_back().ok_or_else(bad_token)?;
                (at, (!own.is_empty()).then_some(own))
            }
        };
        while let Some(member) = self.members.get(at) {
            let page = match member.selection(selection) {
                Some(selection) => {
                    part(member, verb, &selection, own, limits).await?.ok_or_else(bad_token)?
                }
                // Of a token of ours, something was selected.
                None if own.is_some() => return Err(bad_token().into()),
                None => OaiPage { records: Vec::new(), next: None, damaged: Vec::new() },
            };
            own = None;
            at += 1;
            if page.records.is_empty() && page.next.is_none() {
                continue;
            }
            let records = page
                .records
                .into_iter()
                .map(|record| OaiRecord { header: member.header(record.header), metadata: record.metadata });
            let next = match page.next {
                Some(next) => Some(member.position(&next)),
                None => self.begin_of_next(at, selection).await?,
            };
            return Ok(Page { records: records.collect(), next });
        }
        Ok(Page { records: Vec::new(), next: None })
    }

    /// The begin of the next Source that has something for a list.
    async fn begin_of_next(
        &self,
        from: usize,
        selection: &Selection,
    ) -> Result<Option<String>, PublishError> {
        for member in &self.members[from..] {
            let Some(own) = member.selection(selection) else { continue };
            let any = member.records.headers(&own, None, ANY).await?;
            if any.is_some_and(|page| !page.records.is_empty() || page.next.is_some()) {
                return Ok(Some(member.position("")));
            }
        }
        Ok(None)
    }
}

/// A page of one Source. None for a position that it does not have.
async fn part(
    member: &Member<'_>,
    verb: Verb,
    selection: &Selection,
    after: Option<&str>,
    limits: OaiLimits,
) -> Result<Option<OaiPage>, PublishError> {
    let page = match verb {
        Verb::ListIdentifiers => member.records.headers(selection, after, limits).await?,
        _ => member.records.page(selection, after, limits).await?,
    };
    let Some(page) = page else { return Ok(None) };
    for (identifier, error) in &page.damaged {
        tracing::warn!(identifier, %error, "a record is left out: its bytes cannot be taken");
        if let BodyError::Store(error) = error {
            member.note_damage(identifier, &selection.prefix, error).await;
        }
    }
    Ok(Some(page))
}
