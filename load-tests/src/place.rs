//! Where a harvest lies.

use std::path::Path;

use testkit::servers::S3Fixture;

/// Where a harvest lies: what `--into` is given, and the environment that it takes.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// A directory, or `s3://bucket/prefix`.
    pub(crate) into: String,
    /// What a program needs in its environment to reach it.
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Place {
    /// A directory.
    pub(crate) fn directory(path: &Path) -> Self {
        Self { into: path.display().to_string(), environment: Vec::new() }
    }

    /// In a bucket.
    pub(crate) fn bucket(s3: &S3Fixture) -> Self {
        Self {
            into: format!("s3://{}/harvest", s3.bucket),
            environment: s3.aws_environment().into_iter().collect(),
        }
    }
}
