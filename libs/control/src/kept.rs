//! Values that a bucket keeps.

use model::Message;

/// A value in a bucket, as JSON with its kind and version around it.
pub trait Kept: Message + Send + Sync + 'static {
    /// The type of its ID.
    type Id: Send + Sync + 'static;

    /// The key: letters, digits, `-`, `_`, `=` and `.`.
    fn key(id: &Self::Id) -> String;

    /// What errors call the value.
    fn describe(id: &Self::Id) -> String {
        format!("{} {}", Self::KIND, Self::key(id))
    }
}
