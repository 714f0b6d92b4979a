//! Limits of the payloads of Change Notifications, to hubs of others and from hubs of its own.

/// The largest payload, in bytes. The specification of Change Notifications calls 750 KB a limit of hubs.
pub(crate) const PAYLOAD_BYTES: usize = 512 * 1024;
/// Changes that are in memory at a time while payloads are made of them.
pub(crate) const CHANGES_AT_A_TIME: usize = 5_000;
