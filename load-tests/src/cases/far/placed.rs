//! The resources at one distance by one protocol, and how fast they can come.

use std::time::Duration;

use super::Task;
use crate::cases::small_files::whole;
use crate::far_proxy::{FarProxy, Link};
use crate::get_all::Got;
use crate::tls_source::{Protocol, Site, TlsSource};

/// Round trips before the first byte of content: TCP, TLS and the list; and again for the connections that follow.
const TRIPS_BEFORE: u32 = 3;

/// The resources at one distance by one protocol.
pub(super) struct Placed {
    pub(super) site: Site,
    pub(super) protocol: Protocol,
    pub(super) link: Option<Link>,
    /// The expected result of a bare loop.
    pub(super) all: Got,
    _proxy: Option<FarProxy>,
}

impl Placed {
    pub(super) fn new(source: &TlsSource, protocol: Protocol, link: Option<Link>) -> anyhow::Result<Self> {
        let address = source.address(protocol);
        let proxy = link.map(|link| FarProxy::start(address, link)).transpose()?;
        let site = source.site(proxy.as_ref().map_or(address.port(), FarProxy::port))?;
        let all = whole(&site.expected)?;
        Ok(Self { site, protocol, link, all, _proxy: proxy })
    }

    /// The shortest possible time: the list, and then the content over as many connections as the protocol has. A
    /// server that offers HTTP/2 speaks HTTP/1.1 too, so the shorter of both counts.
    pub(super) fn least(&self, task: Task) -> Option<Duration> {
        let link = self.link?;
        let at_once = u64::from(task.at_once).min(task.resources);
        let by = |connections, trips| {
            let all = task.resources * task.bytes_each;
            link.round_trip * trips + link.least(all, at_once * task.bytes_each, connections)
        };
        // HTTP/1.1 opens other connections beside that of the list. HTTP/2 goes on with it.
        let http1 = by(at_once, 2 * TRIPS_BEFORE - 1);
        Some(match self.protocol {
            Protocol::Http1 => http1,
            Protocol::Http2 => http1.min(by(1, TRIPS_BEFORE)),
        })
    }
}
