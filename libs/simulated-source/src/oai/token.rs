//! Resumption tokens. They hold all of a list, in characters that want encoding.

use std::time::{Duration, Instant};

use super::fault::{Faults, RepositoryFault as Fault, value};
use super::list::{Cursor, Query, SetOf};
use crate::clock::SimTime;

/// A list whose cursor is on the server.
#[derive(Debug, Clone)]
pub(super) struct Scroll {
    pub(super) query: Query,
    pub(super) cursor: Option<Cursor>,
}

/// What is known of the tokens that were issued.
#[derive(Debug)]
pub(super) struct Tokens {
    started: Instant,
    /// Tokens issued so far.
    issued: u64,
    /// Tokens with a smaller number have expired.
    expired: u64,
    scrolls: Vec<Scroll>,
}

/// What a token leads to.
pub(super) enum Resumed {
    At(Query, Cursor),
    /// An empty page, behind the end.
    Empty(Query),
    Bad,
}

impl Tokens {
    pub(super) fn new() -> Tokens {
        Tokens { started: Instant::now(), issued: 0, expired: 0, scrolls: Vec::new() }
    }

    /// Lets all tokens expire that were issued.
    pub(super) fn expire(&mut self) {
        self.expired = self.issued;
    }

    /// The token of the page at a cursor.
    pub(super) fn issue(
        &mut self,
        query: &Query,
        cursor: Cursor,
        faults: &Faults,
        sent: Option<&str>,
    ) -> String {
        self.issued += 1;
        let keeps_cursor = faults.has(&Fault::UnchangedToken);
        if keeps_cursor || faults.has(&Fault::TokenAdvances) {
            let scroll = Scroll { query: query.clone(), cursor: Some(cursor) };
            let number = match sent.and_then(scroll_number) {
                Some(number) if number < self.scrolls.len() => {
                    self.scrolls[number] = scroll;
                    number
                }
                _ => {
                    self.scrolls.push(scroll);
                    self.scrolls.len() - 1
                }
            };
            return if keeps_cursor {
                format!("scroll|{number}|")
            } else {
                format!("scroll|{number}|{}", cursor.page)
            };
        }
        self.text(query, cursor, self.issued, self.started.elapsed().as_millis())
    }

    /// A token that is the same each time, and never expires.
    pub(super) fn issue_loop(&mut self, query: &Query, cursor: Cursor) -> String {
        self.text(query, cursor, u64::MAX, 0)
    }

    /// A token behind the end.
    pub(super) fn issue_end(&mut self, query: &Query, error: bool) -> String {
        let cursor = Cursor { page: u64::MAX, ..Cursor::default() };
        if error { "no such list".to_owned() } else { self.text(query, cursor, u64::MAX, 0) }
    }

    fn text(&self, query: &Query, cursor: Cursor, issued: u64, made: u128) -> String {
        let time = |time: Option<SimTime>| time.map_or(String::new(), |time| time.seconds().to_string());
        let set = match query.set {
            SetOf::All => "-".to_owned(),
            SetOf::Group => "group".to_owned(),
            SetOf::Member(number) => format!("group:{number}"),
        };
        let Cursor { next, delivered, size, page, empty } = cursor;
        format!(
            "{}|{}|{set}|{}|{}|{next}:{delivered}:{size}:{page}:{empty}|{issued}!{made}+",
            query.verb,
            query.prefix,
            time(query.from),
            time(query.until)
        )
    }

    /// What a token means.
    pub(super) fn resume(&mut self, text: &str, faults: &Faults) -> Resumed {
        if let Some(number) = scroll_number(text) {
            let Some(scroll) = self.scrolls.get(number) else { return Resumed::Bad };
            let Scroll { query, cursor } = scroll.clone();
            return match cursor {
                Some(cursor) => Resumed::At(query, cursor),
                None => Resumed::Empty(query),
            };
        }
        match parse(text) {
            Some((query, cursor, number, made)) => {
                let life: Option<Duration> = value!(faults, ShortTokenLife);
                let age = self.started.elapsed().saturating_sub(Duration::from_millis(made));
                let is_old = number != u64::MAX && life.is_some_and(|life| age > life);
                if number < self.expired || is_old {
                    Resumed::Bad
                } else if cursor.page == u64::MAX {
                    Resumed::Empty(query)
                } else {
                    Resumed::At(query, cursor)
                }
            }
            None => Resumed::Bad,
        }
    }

    /// Notes that a list on the server was read to its end.
    pub(super) fn finish(&mut self, sent: Option<&str>) {
        if let Some(scroll) = sent.and_then(scroll_number).and_then(|number| self.scrolls.get_mut(number)) {
            scroll.cursor = None;
        }
    }
}

fn scroll_number(text: &str) -> Option<usize> {
    text.strip_prefix("scroll|")?.split('|').next()?.parse().ok()
}

fn parse(text: &str) -> Option<(Query, Cursor, u64, u64)> {
    let mut parts = text.strip_suffix('+')?.split('|');
    let verb = parts.next()?.to_owned();
    let prefix = parts.next()?.to_owned();
    let set = match parts.next()? {
        "-" => SetOf::All,
        "group" => SetOf::Group,
        member => SetOf::Member(member.strip_prefix("group:")?.parse().ok()?),
    };
    let mut time = || {
        let part = parts.next()?;
        Some(if part.is_empty() { None } else { Some(SimTime::START.plus(part.parse().ok()?)) })
    };
    let (from, until) = (time()?, time()?);
    let mut numbers = parts.next()?.split(':').map(|number| number.parse::<u64>().ok());
    let mut number = || numbers.next().flatten();
    let cursor =
        Cursor { next: number()?, delivered: number()?, size: number()?, page: number()?, empty: number()? };
    let (issued, made) = parts.next()?.split_once('!')?;
    Some((Query { verb, prefix, set, from, until }, cursor, issued.parse().ok()?, made.parse().ok()?))
}
