//! The hostile Sources of the case: their addresses, and their behaviour.

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::server::{Bound, Manner, Origin};

/// Origins whose resources drip, in two Sources of eight.
pub(super) const DRIPPING: u8 = 16;
/// Resources of each of them: as many as an origin gets concurrent requests.
const DRIPS_EACH: usize = 4;
/// Sources whose indexes never end.
const ENDLESS_INDEXES: u8 = 8;
/// Sources with an endless body.
const ENDLESS_BODIES: u8 = 8;
/// Origins in one list.
const LISTED_ORIGINS: u32 = 20_000;

/// The hostile Sources, served until this is dropped.
#[derive(Debug)]
pub(super) struct Hostile {
    /// The Sources: the URL of the list of each.
    pub(super) lists: Vec<String>,
    dripping: Vec<Origin>,
    _others: Vec<Origin>,
}

impl Hostile {
    /// Starts all of them. Each origin has an address of its own, so that no budget of a host is shared with
    /// honest Sources.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let mut lists = Vec::new();
        let mut dripping = Vec::new();
        for source in 0..2 {
            let mut bound = Vec::new();
            for origin in 0..DRIPPING / 2 {
                bound.push(Bound::at(Ipv4Addr::new(127, 66, source, 1 + origin)).await?);
            }
            let urls =
                bound.iter().flat_map(|each| (0..DRIPS_EACH).map(|n| each.url(&format!("/drip-{n}.pdf"))));
            let manner = Manner::Drip(Arc::new(urls.collect()));
            let origins: Vec<Origin> = bound.into_iter().map(|each| each.serve(manner.clone())).collect();
            lists.extend(origins.first().map(Origin::list));
            dripping.extend(origins);
        }
        let mut others = Vec::new();
        for number in 0..ENDLESS_INDEXES {
            let bound = Bound::at(Ipv4Addr::new(127, 66, 2, 1 + number)).await?;
            others.push(bound.serve(Manner::EndlessIndex));
        }
        for number in 0..ENDLESS_BODIES {
            let bound = Bound::at(Ipv4Addr::new(127, 66, 3, 1 + number)).await?;
            let urls = vec![bound.url("/endless.pdf")];
            others.push(bound.serve(Manner::EndlessBody(Arc::new(urls))));
        }
        let bound = Bound::at(Ipv4Addr::new(127, 66, 4, 1)).await?;
        // No server listens at these addresses: each connection is refused.
        let urls = (0..LISTED_ORIGINS).map(|number| format!("http://{}:8000/r", nowhere(number)));
        let manner = Manner::ListOnly(Arc::new(urls.collect()));
        others.push(bound.serve(manner));
        lists.extend(others.iter().map(Origin::list));
        Ok(Self { lists, dripping, _others: others })
    }

    /// Bodies that the dripping origins have started to send.
    pub(super) fn drips(&self) -> u64 {
        self.dripping.iter().map(Origin::drips).sum()
    }
}

/// A loopback address without a server: 127.128.0.0 and those that follow.
fn nowhere(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 128, 0, 0)) + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_origin_is_a_loopback_address_of_its_own() {
        assert_eq!(nowhere(0).to_string(), "127.128.0.0");
        assert_eq!(nowhere(LISTED_ORIGINS - 1).to_string(), "127.128.78.31");
        assert!(nowhere(LISTED_ORIGINS - 1).is_loopback());
    }
}
