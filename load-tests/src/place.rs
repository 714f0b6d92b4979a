//! The location of a harvest.

use std::path::Path;

use testkit::servers::S3Fixture;

/// The location of a harvest: the value of `--into`, and its environment.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// A directory, or `s3://bucket/prefix`.
    pub(crate) into: String,
    /// Variables for a program's environment.
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
