//! The end of an answer: the root element's, what follows it, and the last byte.

use super::frame::{Markup, Skipped};
use super::{MAX_MARKUP_BYTES, Place, Reader, Step};
use crate::error::ReadError;
use crate::quirk::Quirk;
use crate::verb::Verb;

impl Reader {
    /// After the root element's end.
    pub(super) fn finish(&mut self) {
        self.place = Place::Behind;
        self.answer.complete = true;
        let answer = &self.answer;
        let is_list = matches!(answer.verb, Some(Verb::ListRecords | Verb::ListIdentifiers));
        let has_granularity = answer.identify.as_ref().is_none_or(|identify| identify.granularity.is_some());
        let checks = [
            (answer.response_date.is_none(), Quirk::MissingResponseDate),
            (answer.verb.is_none() && answer.errors.is_empty(), Quirk::MissingVerbElement),
            (answer.verb.is_some() && !answer.errors.is_empty(), Quirk::ErrorBesideList),
            (is_list && answer.items == 0 && answer.errors.is_empty(), Quirk::EmptyPage),
            (!has_granularity && answer.quirks.count(Quirk::OddGranularity) == 0, Quirk::OddGranularity),
        ];
        for (is_so, quirk) in checks {
            if is_so {
                self.note(quirk);
            }
        }
        self.seal();
    }

    /// What follows the root element.
    pub(super) fn behind(&mut self, found: &Markup, is_last: bool) -> Step {
        let ahead = self.input.ahead();
        let passed = match *found {
            Markup::Text(length) if ahead[..length].trim_ascii().is_empty() => length,
            Markup::Skipped { length, kind: Skipped::Comment | Skipped::Instruction }
                if length <= MAX_MARKUP_BYTES =>
            {
                length
            }
            Markup::Incomplete if !is_last && ahead.len() <= MAX_MARKUP_BYTES => return Step::More,
            _ => {
                self.note(Quirk::TrailingBytes);
                self.place = Place::Trailing;
                return Step::Again;
            }
        };
        self.input.consume(passed);
        Step::Again
    }

    /// When no more bytes can come.
    pub(super) fn ran_out(&mut self) -> Result<(), ReadError> {
        if self.answer.complete {
            if (self.input.is_gzip_damaged() || self.input.has_gzip_trailer())
                && self.answer.quirks.count(Quirk::DamagedGzipEnd) == 0
            {
                self.note(Quirk::DamagedGzipEnd);
            }
            if let Some(refused) = &self.refused {
                return Err(refused.error());
            }
            return match self.input.fault() {
                Some(error) if !self.input.is_gzip_damaged() => Err(error),
                _ => Ok(()),
            };
        }
        if let Some(error) = self.input.fault() {
            return Err(error);
        }
        let position = self.input.position_at(self.input.ahead().len());
        if self.place == Place::Prolog && !self.opening.anything {
            return Err(if self.input.ahead().is_empty() { ReadError::Empty } else { self.not_xml() });
        }
        self.answer.quirks.add(Quirk::CutDocument);
        Err(ReadError::Truncated { position })
    }
}
