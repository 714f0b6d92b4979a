use jiff::ToSpan;

use super::{Datetime, DatetimeError, Precision, Zone, civil};
use crate::quirk::{Quirk, QuirkSet};

/// Parses the widest accepted form; deviations from strict W3C Datetime are in the set.
pub(super) fn parse(text: &str) -> Result<(Datetime, QuirkSet), DatetimeError> {
    Cursor { rest: text.as_bytes(), quirks: QuirkSet::default() }
        .datetime()
        .ok_or_else(|| DatetimeError::new(text))
}

/// Parses `2013-01-03T09:00:00Z`, the usual form; `None` for all others.
pub(super) fn parse_common(text: &str) -> Option<Datetime> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2, b'Z'] =
        text.as_bytes()
    else {
        return None;
    };
    let digits = [y1, y2, y3, y4, m1, m2, d1, d2, h1, h2, n1, n2, s1, s2];
    if !digits.iter().fold(true, |all, digit| all & digit.is_ascii_digit()) {
        return None;
    }
    let pair = |ten: u8, one: u8| ((ten - b'0') * 10 + (one - b'0')).cast_signed();
    let year = i16::from(pair(y1, y2)) * 100 + i16::from(pair(y3, y4));
    let civil = civil((year, pair(m1, m2), pair(d1, d2)), (pair(h1, h2), pair(n1, n2), pair(s1, s2), 0))?;
    Datetime::from_civil(civil, Precision::Second, Zone::Utc)
}

struct Cursor<'t> {
    rest: &'t [u8],
    quirks: QuirkSet,
}

impl Cursor<'_> {
    fn datetime(mut self) -> Option<(Datetime, QuirkSet)> {
        let year = i16::try_from(self.number(4)?).ok()?;
        let mut precision = Precision::Year;
        let mut month = 1;
        let mut day = 1;
        if self.eat(b'-') {
            precision = Precision::Month;
            month = self.pair()?;
            if self.eat(b'-') {
                precision = Precision::Day;
                day = self.pair()?;
            }
        }
        if self.rest.is_empty() {
            let datetime =
                Datetime::from_civil(civil((year, month, day), (0, 0, 0, 0))?, precision, Zone::Missing)?;
            return Some((datetime, self.quirks));
        }
        if precision != Precision::Day {
            return None;
        }
        self.separator()?;
        self.time((year, month, day))
    }

    fn separator(&mut self) -> Option<()> {
        let (&first, rest) = self.rest.split_first()?;
        match first {
            b'T' => {}
            b't' => self.quirks.insert(Quirk::OddTimeFormat),
            b' ' => self.quirks.insert(Quirk::SpaceForT),
            _ => return None,
        }
        self.rest = rest;
        Some(())
    }

    fn time(mut self, date: (i16, i8, i8)) -> Option<(Datetime, QuirkSet)> {
        let hour = self.pair()?;
        self.eat(b':').then_some(())?;
        let minute = self.pair()?;
        let mut precision = Precision::Minute;
        let mut second = 0;
        let mut nanosecond = 0;
        if self.eat(b':') {
            precision = Precision::Second;
            second = self.pair()?;
            if let Some(decimals) = self.decimals()? {
                precision = Precision::Subsecond;
                nanosecond = decimals;
            }
        }
        let zone = self.zone()?;
        // POSIX time has no second 60; the next second keeps it after all times of its minute.
        let leap = second == 60;
        let mut civil = civil(date, (hour, minute, if leap { 59 } else { second }, nanosecond))?;
        if leap {
            self.quirks.insert(Quirk::LeapSecond);
            civil = civil.checked_add(1.second()).ok()?;
        }
        Some((Datetime::from_civil(civil, precision, zone)?, self.quirks))
    }

    /// Decimals of a second, truncated to nanoseconds.
    fn decimals(&mut self) -> Option<Option<i32>> {
        match self.rest.first() {
            Some(b'.') => {}
            Some(b',') => self.quirks.insert(Quirk::OddTimeFormat),
            _ => return Some(None),
        }
        self.rest = &self.rest[1..];
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let nanosecond = self.rest[..digits]
            .iter()
            .copied()
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0, |sum, digit| sum * 10 + i32::from(digit - b'0'));
        self.rest = &self.rest[digits..];
        (digits > 0).then_some(Some(nanosecond))
    }

    fn zone(&mut self) -> Option<Zone> {
        if let Some((b' ', rest)) = self.rest.split_first() {
            self.quirks.insert(Quirk::OddTimeFormat);
            self.rest = rest;
        }
        match self.rest {
            b"" => {
                self.quirks.insert(Quirk::ZoneLessTime);
                Some(Zone::Missing)
            }
            b"Z" => Some(Zone::Utc),
            b"z" | b"UTC" | b"GMT" => {
                self.quirks.insert(Quirk::OddTimeFormat);
                Some(Zone::Utc)
            }
            [sign @ (b'+' | b'-'), rest @ ..] => {
                self.rest = rest;
                let ahead = self.offset()?;
                Some(Zone::Offset(if *sign == b'-' { -ahead } else { ahead }))
            }
            _ => None,
        }
    }

    fn offset(&mut self) -> Option<i32> {
        let hours = self.pair()?;
        if !self.eat(b':') {
            self.quirks.insert(Quirk::OddTimeFormat);
        }
        let minutes = if self.rest.is_empty() { 0 } else { self.pair()? };
        (self.rest.is_empty() && hours <= 23 && minutes <= 59)
            .then(|| i32::from(hours) * 3_600 + i32::from(minutes) * 60)
    }

    fn pair(&mut self) -> Option<i8> {
        self.number(2).and_then(|number| i8::try_from(number).ok())
    }

    fn number(&mut self, digits: usize) -> Option<u16> {
        let (number, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        number
            .iter()
            .try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u16::from(digit - b'0')))
    }

    fn eat(&mut self, wanted: u8) -> bool {
        match self.rest.split_first() {
            Some((&first, rest)) if first == wanted => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }
}
