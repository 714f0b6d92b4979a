//! Faults between a Source and its clients.

use std::fmt;

/// A fault of some responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpFault {
    /// The affected responses.
    pub on: On,
    /// How many of them are skipped first.
    pub skip: u32,
    /// How many of them are affected after that.
    pub times: u32,
    /// The fault.
    pub what: What,
}

/// Which responses are affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// All.
    Anything,
    /// Documents.
    Documents,
    /// Packages.
    Packages,
    /// Resources.
    Resources,
    /// One resource.
    Resource(u32),
}

/// A fault of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// This status, with this `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// There is no connection.
    Refused,
    /// The connection ends before the response.
    Broken,
    /// The body and the connection end after this percentage.
    Cut(u8),
    /// `Content-Length` is this much too large, or too small.
    Lie(i32),
    /// One byte is changed.
    Corrupt,
    /// It starts after this many seconds.
    Slow(u32),
    /// The Source changes just before: the requested resource, if it is one.
    Changes,
    /// The Source publishes all its documents anew just before.
    Publishes,
    /// A list is an endless index of indexes.
    Nested,
    /// The body is endless: spaces follow the true one.
    Endless,
}

impl HttpFault {
    /// Whether a response for this path is affected; it is counted.
    pub(crate) fn strikes(&mut self, path: &str) -> bool {
        let is_resource = path.starts_with("/r/");
        let is_package = path.ends_with(".zip");
        let is_meant = match self.on {
            On::Anything => true,
            On::Documents => !is_resource && !is_package,
            On::Packages => is_package,
            On::Resources => is_resource,
            On::Resource(number) => path.strip_prefix("/r/") == Some(&number.to_string()),
        };
        if !is_meant || self.times == 0 {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.times -= 1;
        true
    }
}

impl fmt::Display for HttpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { on, skip, times, what } = self;
        write!(f, "{what:?} on {on:?}, {times} times after {skip}")
    }
}
