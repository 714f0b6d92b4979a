use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::answer::Answer;
use crate::page_digest::{PageDigest, first_bytes};
use crate::token::Token;

/// The pages of one list so far, to find a token that leads back to them.
///
/// It remembers the last 256 pages exactly, and one older page in addition (Brent's algorithm), so a loop of any
/// length ends in bounded time and memory. It is kept with the list's progress, so a crash forgets nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trail {
    /// Token and page, newest last.
    recent: Vec<(u64, PageDigest)>,
    /// The remembered older page.
    mark: Option<(u64, PageDigest)>,
    pages: u64,
    /// Pages without items in a row.
    empty: u32,
}

/// What a page's token means for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The list goes on.
    Next,
    /// The token is the one that was sent, but the records are new: the cursor is on the server
    /// ([`Quirk::UnchangedToken`](crate::Quirk::UnchangedToken)). Go on, never resend.
    UnchangedToken,
    /// Token and records came before ([`Quirk::TokenLoop`](crate::Quirk::TokenLoop)): the list does not end.
    Loop,
    /// More than [`Trail::MAX_EMPTY_PAGES`] pages without an item in a row: hold the list.
    TooManyEmptyPages,
}

impl Trail {
    /// Pages that are remembered exactly.
    const RECENT: usize = 256;
    /// Empty pages in a row that are borne.
    pub const MAX_EMPTY_PAGES: u32 = 100;

    /// Notes a page that goes on: the token that it was asked for with (none: the first page), the token that it
    /// has, its digest, and how many items it had.
    pub fn step(&mut self, sent: Option<&Token>, answer: &Answer) -> Step {
        let next = answer.resumption.as_ref().and_then(|resumption| resumption.token.as_ref());
        self.pages += 1;
        self.empty = if answer.items == 0 { self.empty.saturating_add(1) } else { 0 };
        let Some(next) = next else { return Step::Next };
        if self.empty > Self::MAX_EMPTY_PAGES {
            return Step::TooManyEmptyPages;
        }
        let page = (hash(next.as_str()), answer.digest);
        if self.recent.contains(&page) || self.mark == Some(page) {
            return Step::Loop;
        }
        // The mark moves on when the number of pages doubles (Brent), so that it comes to stand in any loop.
        if self.pages.is_power_of_two() {
            self.mark = Some(page);
        }
        if self.recent.len() >= Self::RECENT {
            self.recent.remove(0);
        }
        self.recent.push(page);
        if sent == Some(next) { Step::UnchangedToken } else { Step::Next }
    }

    /// Pages so far.
    pub fn pages(&self) -> u64 {
        self.pages
    }
}

/// A digest that is the same on every machine and in every version, unlike that of a hash map.
fn hash(text: &str) -> u64 {
    first_bytes(&Sha256::digest(text.as_bytes()))
}
