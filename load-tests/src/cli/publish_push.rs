//! The options of `publish-push`.

use std::num::NonZeroU64;

use clap::Args;

use super::Options;

/// How to push changes to subscribers.
#[derive(Debug, Args)]
// A round takes minutes.
#[command(mut_arg("rounds", |rounds| rounds.default_value("1")))]
pub(crate) struct PublishPushOptions {
    /// As of the other cases; `--resources` means nothing.
    #[command(flatten)]
    pub(crate) common: Options,

    /// Changes in a second.
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) per_second: NonZeroU64,

    /// For how many seconds.
    #[arg(long, value_name = "N", default_value = "60")]
    pub(crate) seconds: NonZeroU64,

    /// Subscribers of the hub.
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) subscribers: NonZeroU64,

    /// Changes while the hub is down: those of ten minutes.
    #[arg(long, value_name = "N", default_value = "600000")]
    pub(crate) missed: NonZeroU64,

    /// Subscribers while it is down.
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) missing: NonZeroU64,
}
