//! What goes wrong between a Source and who asks it.

use std::fmt;

/// Something that goes wrong with some answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpFault {
    /// Which answers.
    pub on: On,
    /// How many of them are spared first.
    pub skip: u32,
    /// How many of them are concerned after that.
    pub times: u32,
    /// What happens.
    pub what: What,
}

/// Which answers are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// All.
    Anything,
    /// Those that are documents.
    Documents,
    /// Those that are packages.
    Packages,
    /// Those that are resources.
    Resources,
    /// Those of one resource.
    Resource(u32),
}

/// What happens to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It is this status, and asks for so many seconds of patience.
    Status(u16, Option<u32>),
    /// There is no connection.
    Refused,
    /// The connection ends before the answer.
    Broken,
    /// The body ends, with the connection, after so many percent.
    Cut(u8),
    /// `Content-Length` says so many bytes more, or fewer, than there are.
    Lie(i32),
    /// One byte is another one.
    Corrupt,
    /// It takes so many seconds to begin.
    Slow(u32),
    /// The Source changes just before: what is asked for, if it is a resource.
    Changes,
    /// The Source makes all its documents anew just before.
    Publishes,
    /// A list is an index of an index of an index, without end.
    Nested,
    /// The body has no end: spaces follow the true one.
    Endless,
}

impl HttpFault {
    /// Whether an answer for this path is concerned; it counts as one.
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
