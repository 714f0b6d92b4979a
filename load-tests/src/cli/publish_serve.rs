//! The options of `publish-serve`.

use std::num::NonZeroU64;

use clap::Args;

use super::Options;

/// How to ask servers of a publication.
#[derive(Debug, Args)]
pub(crate) struct PublishServeOptions {
    /// As of the other cases; `--resources` means nothing.
    #[command(flatten)]
    pub(crate) common: Options,

    /// Ranges of 1 MiB that are asked for: by default, of more than 10 GB.
    #[arg(long, value_name = "N", default_value = "10240")]
    pub(crate) ranges: NonZeroU64,

    /// Small documents that are asked for.
    #[arg(long, value_name = "N", default_value = "100000")]
    pub(crate) documents: NonZeroU64,
}
