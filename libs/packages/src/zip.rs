//! ZIP packages, read by ranges (APPNOTE 6.3).
//!
//! [`Directory::open`] reads the end and the central directory. [`Directory::locate`] checks a member's own
//! header against it and returns a [`Data`]: offset, length and method of the member's bytes. With that,
//! [`MemberReader`] can read the member at any later time without a directory; see there for parts of
//! members. If the directory is not available when a member is first read, its [`Claim`] is enough.

mod bytes;
mod claim;
mod data;
mod directory;
mod end;
mod entry;
mod local;
mod member;
mod reader;
mod spans;

pub use claim::Claim;
pub use data::{Data, Method};
pub use directory::{Directory, Members};
pub use member::Member;
pub use reader::MemberReader;
