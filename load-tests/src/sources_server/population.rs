//! The Sources: how many, at which addresses, and of which kinds.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// Sources per third byte of the addresses 127.1.a.b.
const PER_BYTE: u32 = 250;
/// The most Sources: one at each address from 127.1.0.1 to 127.1.239.250.
pub(crate) const MOST_SOURCES: u32 = 60_000;

/// The Sources of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Population {
    /// How many there are.
    pub(crate) sources: u32,
    /// Resources of each.
    pub(crate) resources: u32,
    /// How many of a hundred never respond.
    pub(crate) dead_percent: u8,
    /// How many of a hundred send one byte a second.
    pub(crate) slow_percent: u8,
    /// How many of a hundred respond with 503 only.
    pub(crate) unavailable_percent: u8,
    /// How many of a hundred fail at first, and work later.
    pub(crate) flapping_percent: u8,
}

/// The behaviour of a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// It works.
    Ok,
    /// It sends the head of each response, and then one byte a second.
    Slow,
    /// It accepts connections, and never responds.
    Dead,
    /// It responds with 503 and `Retry-After`.
    Unavailable,
    /// For a while from its first connection, it closes every other connection and responds with 500. Then it works.
    Flapping,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Self; 5] = [Self::Ok, Self::Slow, Self::Dead, Self::Unavailable, Self::Flapping];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Slow => "slow",
            Self::Dead => "dead",
            Self::Unavailable => "unavailable",
            Self::Flapping => "flapping",
        }
    }
}

impl Population {
    /// Sources that all work.
    pub(crate) fn healthy(sources: u32, resources: u32) -> Self {
        Self {
            sources,
            resources,
            dead_percent: 0,
            slow_percent: 0,
            unavailable_percent: 0,
            flapping_percent: 0,
        }
    }

    /// Fails when there are too many Sources, or more than a hundred of a hundred.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let sources = self.sources;
        anyhow::ensure!(
            (1..=MOST_SOURCES).contains(&sources),
            "{sources} Sources are out of range: 1 to {MOST_SOURCES}"
        );
        let percent: u32 = self.shares().iter().map(|(_, percent)| u32::from(*percent)).sum();
        anyhow::ensure!(percent <= 100, "the kinds are {percent} % of the Sources: at most 100 %");
        Ok(())
    }

    /// The kind of a Source. Each hundred Sources have as many of each kind, scattered among the others.
    pub(crate) fn kind(&self, number: u32) -> Kind {
        // 37 and 100 have no common divisor, so a hundred numbers take a hundred places.
        let mut place = (number % 100 * 37 + 11) % 100;
        for (kind, percent) in self.shares() {
            let percent = u32::from(percent);
            if place < percent {
                return kind;
            }
            place -= percent;
        }
        Kind::Ok
    }

    /// The numbers of the Sources of a kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = u32> {
        let all = *self;
        (0..self.sources).filter(move |number| all.kind(*number) == kind)
    }

    /// The Source at an address; none if there is none.
    pub(crate) fn at(&self, address: Ipv4Addr) -> Option<u32> {
        let [127, 1, high, low] = address.octets() else { return None };
        let low = u32::from(low).checked_sub(1).filter(|low| *low < PER_BYTE)?;
        Some(u32::from(high) * PER_BYTE + low).filter(|number| *number < self.sources)
    }

    fn shares(&self) -> [(Kind, u8); 4] {
        [
            (Kind::Dead, self.dead_percent),
            (Kind::Slow, self.slow_percent),
            (Kind::Unavailable, self.unavailable_percent),
            (Kind::Flapping, self.flapping_percent),
        ]
    }
}

/// The address of a Source.
pub(crate) fn address(number: u32) -> Ipv4Addr {
    // Both fit: there are at most MOST_SOURCES.
    Ipv4Addr::new(127, 1, (number / PER_BYTE) as u8, (number % PER_BYTE + 1) as u8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn mixed(sources: u32) -> Population {
        Population {
            dead_percent: 2,
            slow_percent: 1,
            unavailable_percent: 3,
            flapping_percent: 4,
            ..Population::healthy(sources, 20)
        }
    }

    #[test]
    fn each_hundred_sources_have_the_requested_kinds() {
        let all = mixed(1_000);
        for hundred in 0..10 {
            let mut kinds: BTreeMap<Kind, u32> = BTreeMap::new();
            for number in hundred * 100..(hundred + 1) * 100 {
                *kinds.entry(all.kind(number)).or_default() += 1;
            }
            let expected = [
                (Kind::Ok, 90),
                (Kind::Slow, 1),
                (Kind::Dead, 2),
                (Kind::Unavailable, 3),
                (Kind::Flapping, 4),
            ];
            assert_eq!(kinds, BTreeMap::from(expected));
        }
        assert_eq!(all.of_kind(Kind::Dead).count(), 20);
    }

    #[test]
    fn each_source_has_a_loopback_address_of_its_own() {
        let all = mixed(MOST_SOURCES);
        for number in 0..MOST_SOURCES {
            assert_eq!(all.at(address(number)), Some(number));
        }
        assert_eq!(address(0).to_string(), "127.1.0.1");
        assert_eq!(address(MOST_SOURCES - 1).to_string(), "127.1.239.250");
    }

    #[test]
    fn other_addresses_have_no_source() {
        let all = mixed(300);
        for other in ["127.1.1.51", "127.1.0.0", "127.1.0.251", "127.0.0.1", "10.1.0.1"] {
            assert_eq!(all.at(other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn more_than_a_hundred_percent_are_refused() {
        let all = Population { dead_percent: 99, slow_percent: 2, ..mixed(10) };
        assert!(all.check().unwrap_err().to_string().contains("108 %"), "{:?}", all.check());
        assert!(mixed(MOST_SOURCES + 1).check().is_err());
        mixed(10).check().unwrap();
    }
}
