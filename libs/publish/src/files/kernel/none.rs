//! No kernel that tells of changes.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;

use super::Event;
use crate::unheard::Unheard;

/// There is none.
#[derive(Debug)]
pub(in crate::files) enum Kernel {}

impl Kernel {
    pub(in crate::files) fn begin() -> Result<Self, Unheard> {
        Err(Unheard::NoKernel)
    }

    pub(in crate::files) fn add(&self, _: BorrowedFd<'_>, _: &mut BTreeSet<u64>) -> Result<i32, Unheard> {
        match *self {}
    }

    pub(in crate::files) fn remove(&self, _: i32) {
        match *self {}
    }

    pub(in crate::files) async fn wait(&self) -> io::Result<()> {
        match *self {}
    }

    pub(in crate::files) fn read(&self, _: impl FnMut(Event<'_>)) -> io::Result<()> {
        match *self {}
    }
}
