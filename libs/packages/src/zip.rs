//! ZIP packages, read by ranges (APPNOTE 6.3).
//!
//! [`Directory::open`] reads the end and the central directory, [`Directory::locate`] checks a member's own header against it and
//! gives a [`Data`]: where the member's bytes lie, how many they are and how they are stored. With that the member can be read
//! for ever after, without a directory, by [`MemberReader`]; see there for parts of members. Where the directory is not at hand when a member
//! is read for the first time, its [`Claim`] does instead.

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
