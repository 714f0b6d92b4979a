//! What a list does after a page: it goes on, or bears a failure with a pause, a smaller window or another form of token.

use jiff::SignedDuration;
use model::{OaiReadingKind, OaiWindow, ProblemReason};
use oaipmh::Quirk;
use planning::oai::{List, PageEnd, PageFailure};

use crate::error::HarvestError;
use crate::oai::answer::{Trouble, again};
use crate::oai::reading::Reading;
use crate::run::RunContext;

/// Requests that may fail in a row, each on a window that is smaller or begun anew. Then the server is down. A window
/// of twenty years is halved thirty times until it is a second.
const FAILURES: u32 = 40;

/// How often a window is begun anew until its first token is tried in other ways, where tokens worked before.
const REFUSED: u32 = 2;
/// Failures in a row before the first pause.
const PATIENCE: u32 = 2;
/// The longest pause, in fifths of a second.
const LONGEST_PAUSE: u32 = 25;

impl Reading {
    /// Takes what followed from a page, and waits where it failed. Returns the failure of the whole list, if it cannot
    /// go on.
    pub(super) async fn take(
        &mut self,
        ctx: &RunContext,
        window: &OaiWindow,
        taken: Result<PageEnd, Trouble>,
    ) -> Result<Option<model::Failure>, HarvestError> {
        match taken {
            Ok(step) => {
                self.failures = 0;
                self.follow(&step);
            }
            Err(trouble) => {
                if let Some(failure) = self.meet(ctx, window, trouble) {
                    return Ok(Some(failure));
                }
                ctx.wait_until(ctx.clock.now() + self.pause()).await?;
            }
        }
        Ok(None)
    }

    /// Takes what followed from a page.
    fn follow(&mut self, step: &PageEnd) {
        match step {
            PageEnd::Window { miscounted: Some(_) } => self.quirk(Quirk::WrongCompleteListSize),
            PageEnd::Anew { short: Some((delivered, promised)) } => {
                self.quirk(Quirk::ShortList);
                tracing::warn!(
                    document.uri = self.uri,
                    delivered,
                    promised,
                    "fewer records than promised; the window is read again"
                );
            }
            PageEnd::Gap(gap) => {
                tracing::warn!(
                    document.uri = self.uri,
                    why = gap.why,
                    "a window could not be read; each run tries it again"
                );
            }
            PageEnd::Halved => tracing::info!(document.uri = self.uri, "a window failed and is halved"),
            PageEnd::OneByOne => tracing::info!(
                document.uri = self.uri,
                "a window failed; its records are asked for one by one"
            ),
            PageEnd::GoesOn | PageEnd::Window { .. } | PageEnd::Anew { .. } => {}
        }
    }

    /// Takes a trouble. Returns the failure of the whole list, if it cannot go on.
    fn meet(&mut self, ctx: &RunContext, window: &OaiWindow, trouble: Trouble) -> Option<model::Failure> {
        self.failures += 1;
        let (kind, why) = match trouble {
            Trouble::Hold(failure) => {
                match failure.reason {
                    ProblemReason::UnexpectedHtml => {
                        self.quirk(Quirk::Challenged);
                        // A proxy's page of an error, or a wall: the same page is asked for once more.
                        if self.failures == 1 {
                            return None;
                        }
                    }
                    ProblemReason::Challenged => self.quirk(Quirk::Challenged),
                    // The next comparison lists records.
                    ProblemReason::WrongKind if self.kind == OaiReadingKind::Identifiers => {
                        self.list.progress.without_identifiers = true;
                        self.quirk(Quirk::VerbMissing);
                    }
                    _ => {}
                }
                return Some(*failure);
            }
            Trouble::Token(why) => (PageFailure::Token, why),
            Trouble::Compressed(why) => {
                // The same page is asked for once more. If that fails too, compression is not why.
                let tries = !self.list.progress.uncompressed;
                (self.list.progress.uncompressed, self.signs.tries_uncompressed) = (tries, tries);
                if tries {
                    return None;
                }
                (PageFailure::Server, why)
            }
            Trouble::Server(why) => {
                if std::mem::take(&mut self.signs.tries_uncompressed) {
                    self.list.progress.uncompressed = false;
                }
                (PageFailure::Server, why)
            }
            Trouble::TooLarge(why) => {
                self.quirk(Quirk::WindowTooLarge);
                (PageFailure::Server, why)
            }
            Trouble::Argument(why) => {
                if self.token_of(window).is_some() {
                    (PageFailure::Token, why)
                } else if self.list.by_seconds {
                    // It announced seconds, and refuses them. Days work everywhere.
                    self.list.by_seconds = false;
                    self.quirk(Quirk::GranularityLie);
                    return None;
                } else {
                    return Some(again(ProblemReason::WrongKind, why));
                }
            }
            Trouble::NoRecord(why) => (PageFailure::Server, why),
        };
        if self.failures >= FAILURES {
            let message =
                format!("{FAILURES} requests failed in a row, also of small windows; the last one: {why}");
            return Some(again(ProblemReason::HttpServerError, message));
        }
        let page = self.token_of(window).map(|page| (page.number, page.token.clone()));
        let may_be_refused = !self.list.progress.tokens_work || self.restarts_of(window) >= REFUSED;
        if let Some((1, token)) = &page
            && may_be_refused
            && (kind == PageFailure::Token || self.tokens.are_tried())
            && let Some(other) = self.tokens.other(self.list.progress.tokens, token)
        {
            self.list.progress.tokens = other;
            return None;
        }
        let span = self.span(ctx);
        let step = List::of(&mut self.list.progress, span).failed(window, kind, &why, ctx.clock.now());
        tracing::debug!(document.uri = self.uri, why, ?step, "a page failed");
        match (&page, kind, &step) {
            (Some(_), PageFailure::Server, PageEnd::Halved) => self.quirk(Quirk::DeepPageFails),
            (Some(_), PageFailure::Token, PageEnd::Window { .. }) => self.quirk(Quirk::TokenAfterEnd),
            _ => {}
        }
        self.follow(&step);
        None
    }

    /// How often a window was begun anew.
    fn restarts_of(&self, window: &OaiWindow) -> u32 {
        let mut waiting = self.list.progress.reading.iter().flat_map(|reading| &reading.waiting);
        waiting.find(|other| other.is(window)).map_or(0, |window| window.restarts)
    }

    /// The pause before the next request: failures in a row may mean that the server is overloaded.
    fn pause(&self) -> SignedDuration {
        let beyond = self.failures.saturating_sub(PATIENCE).min(LONGEST_PAUSE);
        SignedDuration::from_millis(200 * i64::from(beyond))
    }
}
