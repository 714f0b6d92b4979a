//! What subscribers were told: which changes, in which order, and when.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use resourcesync::{Item, Options, Reader};
use testkit::callbacks::Delivery;

use super::changing::Changing;
use super::subscribers::Subscribers;
use crate::check::Check;

/// A payload.
struct Payload {
    /// Kept, so that no other one is at its address.
    delivery: Delivery,
    from: Timestamp,
    until: Timestamp,
    /// The numbers of its resources.
    numbers: Vec<u64>,
    /// Whether its changes are in order, within its interval.
    is_in_order: bool,
}

/// What one subscriber was told.
struct Told {
    /// Deliveries that were looked at.
    seen: usize,
    until: Option<Timestamp>,
    joins: bool,
    has_gap: bool,
    is_in_order: bool,
    is_known: Vec<bool>,
    changes: u64,
    took: Vec<(Instant, Arc<Payload>)>,
}

/// What all were told.
pub(super) struct Tally {
    payloads: HashMap<usize, Arc<Payload>>,
    told: Vec<Told>,
}

impl Tally {
    pub(super) fn new(subscribers: usize, resources: u64) -> Self {
        let none = || Told {
            seen: 0,
            until: None,
            joins: true,
            has_gap: false,
            is_in_order: true,
            is_known: vec![false; usize::try_from(resources).unwrap_or(usize::MAX)],
            changes: 0,
            took: Vec::new(),
        };
        Self { payloads: HashMap::new(), told: std::iter::repeat_with(none).take(subscribers).collect() }
    }

    /// Takes in what was delivered since the last time.
    pub(super) fn take(&mut self, subscribers: &Subscribers) -> anyhow::Result<()> {
        for (number, told) in self.told.iter_mut().enumerate() {
            let (taken, by_now) = subscribers.taken_after(number, told.seen);
            told.seen = by_now;
            for delivery in taken {
                let at = delivery.at;
                let payload = match self.payloads.get(&(delivery.body.as_ptr() as usize)) {
                    Some(known) => Arc::clone(known),
                    None => {
                        let read = Arc::new(Payload::read(delivery)?);
                        let place = read.delivery.body.as_ptr() as usize;
                        self.payloads.insert(place, Arc::clone(&read));
                        read
                    }
                };
                told.take(at, payload);
            }
        }
        Ok(())
    }

    /// All deliveries.
    pub(super) fn deliveries(&self) -> u64 {
        self.told.iter().map(|told| told.took.len() as u64).sum()
    }

    /// How many changes the subscriber knows that knows the fewest.
    pub(super) fn least(&self) -> u64 {
        self.told.iter().map(|told| told.changes).min().unwrap_or_default()
    }

    /// Whether each payload begins where the one before ended.
    pub(super) fn joins(&self) -> bool {
        self.told.iter().all(|told| told.joins)
    }

    /// From each change to each of its deliveries, in milliseconds.
    pub(super) fn lags(&self, changing: &Changing) -> Vec<f64> {
        let took = self.told.iter().flat_map(|told| &told.took);
        let each = took.flat_map(|(at, payload)| payload.numbers.iter().map(move |number| (*at, *number)));
        let lags = each.filter_map(|(at, number)| {
            let made = changing.made_at(number)?;
            Some(at.saturating_duration_since(made).as_secs_f64() * 1e3)
        });
        lags.collect()
    }

    /// None was lost, and all came in order.
    pub(super) fn checks(&self, changes: u64) -> Vec<Check> {
        let most = self.told.iter().map(|told| told.changes).max().unwrap_or_default();
        vec![
            Check::equal("changes that each subscriber was told of", changes, self.least()),
            Check::equal("changes that any subscriber was told of", changes, most),
            Check::holds("changes are in order", self.told.iter().all(|told| told.is_in_order)),
            Check::holds("there is no gap", self.told.iter().all(|told| !told.has_gap)),
        ]
    }

    pub(super) fn counted(&self) -> BTreeMap<String, u64> {
        BTreeMap::from([
            ("deliveries".to_owned(), self.deliveries()),
            ("payloads".to_owned(), self.payloads.len() as u64),
        ])
    }
}

impl Told {
    fn take(&mut self, at: Instant, payload: Arc<Payload>) {
        if let Some(until) = self.until {
            self.joins &= payload.from == until;
            self.has_gap |= payload.from > until;
        }
        // After a kill, a payload may come again, or be cut at another time.
        self.is_in_order &= payload.is_in_order && self.until.is_none_or(|until| payload.until >= until);
        self.until = self.until.max(Some(payload.until));
        for number in &payload.numbers {
            let known = usize::try_from(*number).ok().and_then(|number| self.is_known.get_mut(number));
            if let Some(known) = known.filter(|known| !**known) {
                *known = true;
                self.changes += 1;
            }
        }
        self.took.push((at, payload));
    }
}

impl Payload {
    fn read(delivery: Delivery) -> anyhow::Result<Self> {
        // Not strictly, which would end at a change out of order: that is to be counted.
        let mut reader = Reader::new(&delivery.body[..], Options::default())?;
        let header = reader.header().context("a payload has no header")?.clone();
        let time = |time: Option<resourcesync::Datetime>| time.map(|time| time.instant());
        let from = time(header.from).context("a payload has no begin")?;
        let until = time(header.until).context("a payload has no end")?;
        let (mut numbers, mut before, mut is_in_order) = (Vec::new(), from, true);
        while let Some(item) = reader.next()? {
            let Item::Entry(entry) = item else { bail!("a payload has a bad entry") };
            let at = time(entry.metadata.datetime).context("a change has no time")?;
            is_in_order &= at > before && at <= until;
            before = at;
            numbers.push(number(&entry.loc).with_context(|| format!("{} has no number", entry.loc))?);
        }
        Ok(Self { delivery, from, until, numbers, is_in_order })
    }
}

/// The number of a resource of [`Held`](crate::cases::publish::Held), by its URL.
fn number(loc: &str) -> Option<u64> {
    loc.rsplit('/').next()?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn delivery(from: u32, until: u32, numbers: &[(u64, u32)]) -> Delivery {
        let time = |second: u32| format!("2026-01-01T00:00:{second:02}Z");
        let entries: String = numbers
            .iter()
            .map(|(number, at)| {
                format!(
                    "<url><loc>http://h.test/a/{number:09}.pdf</loc><rs:md change=\"updated\" datetime=\"{}\"/></url>",
                    time(*at)
                )
            })
            .collect();
        let body = format!(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
             <rs:ln rel=\"up\" href=\"http://h.test/capabilitylist.xml\"/>\
             <rs:md capability=\"change-notification\" from=\"{}\" until=\"{}\"/>{entries}</urlset>",
            time(from),
            time(until)
        );
        Delivery { headers: Default::default(), body: body.into(), at: Instant::now(), is_taken: true }
    }

    fn told(deliveries: &[Delivery]) -> (Tally, u64) {
        let mut tally = Tally::new(1, 10);
        for each in deliveries {
            let payload = Arc::new(Payload::read(each.clone()).unwrap());
            tally.told[0].take(each.at + Duration::from_millis(1), payload);
        }
        let least = tally.least();
        (tally, least)
    }

    fn broken(tally: &Tally, changes: u64) -> Vec<String> {
        let checks = tally.checks(changes).into_iter().filter(|check| !check.holds);
        checks.map(|check| check.what).collect()
    }

    #[test]
    fn what_joins_and_is_in_order_holds() {
        let (tally, least) = told(&[delivery(0, 10, &[(1, 3), (2, 10)]), delivery(10, 20, &[(3, 15)])]);
        assert_eq!((least, tally.joins()), (3, true));
        assert!(broken(&tally, 3).is_empty());
    }

    #[test]
    fn a_gap_a_change_out_of_order_and_a_lost_one_are_found() {
        let (gap, _) = told(&[delivery(0, 10, &[(1, 3)]), delivery(11, 20, &[(3, 15)])]);
        assert!(!gap.joins());
        assert_eq!(broken(&gap, 2), ["there is no gap"]);
        let (order, _) = told(&[delivery(0, 10, &[(1, 5), (2, 3)])]);
        assert_eq!(broken(&order, 2), ["changes are in order"]);
        let (lost, _) = told(&[delivery(0, 10, &[(1, 3), (1, 5)])]);
        assert_eq!(broken(&lost, 2).len(), 2);
    }

    #[test]
    fn a_payload_that_comes_again_is_no_gap_and_joins_not() {
        let first = delivery(0, 10, &[(1, 3)]);
        let (again, least) = told(&[first.clone(), first]);
        assert_eq!((least, again.joins()), (1, false));
        assert!(broken(&again, 1).is_empty());
    }
}
