//! The kinds of errors.

use crate::wall::Wall;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The host name has no address.
    Dns,
    /// No connection.
    Connect(ConnectFault),
    /// No secure connection.
    Tls {
        /// Whether the server's certificate was rejected.
        certificate: bool,
    },
    /// A time limit was exceeded.
    Timeout(Phase),
    /// The server answered with this status, without content to keep.
    Status(u16),
    /// A response that does not fit the request: 304 without a condition, 206 without a range, or another
    /// range than requested.
    Unasked(u16),
    /// A bot defence, or a login form, answered in place of the content.
    Walled(Wall),
    /// The response broke off.
    Interrupted,
    /// The body is larger than [`BodyLimits`](crate::BodyLimits) or the request allows.
    TooLarge,
    /// The body is slower than [`BodyLimits`](crate::BodyLimits) allow.
    TooSlow,
    /// More redirects than allowed.
    TooManyRedirects,
    /// A redirect leads back to where it came from.
    RedirectLoop,
    /// A redirect without a usable target.
    BadRedirect,
    /// Not a URL that can be requested.
    BadUrl,
    /// The origin is in cooldown for longer than a request waits; nothing was sent.
    CoolingDown,
    /// The host has only addresses that [`AddressPolicy`](crate::AddressPolicy) does not allow.
    RefusedAddress,
    /// The URL's port is one that browsers refuse, since it belongs to another service than HTTP. The port of
    /// the entry is exempt.
    RefusedPort,
    /// The origin's robots.txt disallows it, and the [`RobotsPolicy`](crate::RobotsPolicy) obeys it.
    Disallowed,
    /// The origin's robots.txt could not be fetched, so its rules are unknown, and the
    /// [`RobotsPolicy`](crate::RobotsPolicy) obeys them (RFC 9309, 2.3.1.4). It is not requested again for a
    /// while.
    RobotsUnreachable,
    /// The client could not be made from its configuration.
    Builder,
}

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFault {
    /// The machine answers, and nothing listens at that port.
    Refused,
    /// No route to the machine.
    Unreachable,
    /// Broken while connecting, or for a reason of this machine.
    Other,
}

/// What the request waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The connection.
    Connect,
    /// The response head.
    FirstByte,
    /// The next piece of the body.
    Body,
}
